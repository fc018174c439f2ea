"""Accounts of API keys: their limits, what they have used in this period, and what requests in flight reserve."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from dragoman_protocols.errors import QuotaError, RateLimitedError

REQUESTS, CHARACTERS = "requests", "characters"


@dataclass(frozen=True, slots=True)
class AccountLimits:
    """What one key may use at all routers together; None is without limit.

    Args:
        requests_per_s: Average requests a second; as many as `burst_s` of them at once, at least one.
        characters_per_s: Average characters a second, likewise.
        character_limit: Characters in a period, usually a month.
        burst_s: Seconds of the rate that a pause saves up.
        deployments: That it may use, as `NAMESPACE/NAME` or `NAMESPACE/*`; None: all.
        fleet: Whether it may see the fleet view, of these deployments.
    """

    requests_per_s: float | None = None
    characters_per_s: float | None = None
    character_limit: int | None = None
    burst_s: float = 10.0
    deployments: tuple[str, ...] | None = None
    fleet: bool = False

    @property
    def limited(self) -> bool:
        """Whether there is any limit."""
        return (
            self.character_limit is not None
            or self.requests_per_s is not None
            or self.characters_per_s is not None
        )


class Bucket:
    """A token bucket: it fills by `rate` a second up to `size`, and may be overdrawn once.

    Overdrawing admits a request that is larger than the bucket; the next one waits until the debt is refilled.
    `state/scripts.py` has the same bucket in Lua.
    """

    __slots__ = ("_at_s", "_level", "_rate", "_size")

    def __init__(self, rate: float, size: float, now_s: float) -> None:
        self._rate, self._size = rate, size
        self._level, self._at_s = size, now_s

    def wait_s(self, now_s: float) -> float:
        """Seconds until the next request is admitted; 0: it is now."""
        self._level = min(self._size, self._level + max(0.0, now_s - self._at_s) * self._rate)
        self._at_s = now_s
        return max(0.0, (1.0 - self._level) / self._rate)

    def take(self, amount: float) -> None:
        """Remove what was admitted; a negative amount is given back."""
        self._level -= amount


def bucket_size(rate: float, burst_s: float) -> float:
    """Tokens in a full bucket: at least one, or nothing would ever be admitted."""
    return max(1.0, rate * burst_s)


class Count(NamedTuple):
    """An amount of usage; a correction may be negative.

    Args:
        characters: Of texts, times their targets.
        requests: Admitted.
        taken: Characters to take from the shared bucket, beyond those that were taken at admission.
    """

    characters: int = 0
    requests: int = 0
    taken: int = 0


class Counter(Protocol):
    """Counts usage for all routers."""

    def add(self, account: Account, period: str, count: Count) -> None:
        """Count later; never waits."""
        ...


class Account:
    """What one key, or one client's address, has used.

    Args:
        counted: Whether its usage is counted; that of an address is not.
    """

    def __init__(self, name: str, limits: AccountLimits, now_s: float, counted: bool = True) -> None:
        self.name, self.counted = name, counted
        self.period = ""
        self.characters = 0
        """Charged in this period, at all routers as far as this one knows."""
        self.reserved = 0
        """Characters of requests in flight here that are not charged yet."""
        self.change(limits, now_s)

    def change(self, limits: AccountLimits, now_s: float) -> None:
        """Apply other limits from now on."""
        self.limits = limits
        rates = {REQUESTS: limits.requests_per_s, CHARACTERS: limits.characters_per_s}
        self._buckets = {
            what: Bucket(rate, bucket_size(rate, limits.burst_s), now_s)
            for what, rate in rates.items()
            if rate is not None
        }
        """Of those that are limited."""

    def begin(self, period: str) -> None:
        """Start from zero if this is another period."""
        if period != self.period:
            self.period, self.characters = period, 0

    def take(self, characters: int, now_s: float) -> None:
        """Take one request from the buckets of this router.

        Raises:
            RateLimitedError: The rate is exceeded.
            QuotaError: The quota is used up.
        """
        limit = self.limits.character_limit
        if limit is not None and (used := self.characters + self.reserved) + characters > limit:
            raise quota_exceeded(used, limit, characters)
        for what, bucket in self._buckets.items():
            wait_s = bucket.wait_s(now_s)
            if wait_s > 0:
                raise rate_limited(self, what, wait_s)
        for what, bucket in self._buckets.items():
            bucket.take(1 if what is REQUESTS else characters)

    def reserve(self, characters: int, now_s: float, counter: Counter | None = None) -> Charge:
        """Admit one request, whose characters are charged once it is known what was translated.

        Args:
            characters: In its texts, times its targets, as far as they are known.
            now_s: Monotonic seconds.
            counter: Counts for all routers what is charged; None counts here alone.

        Raises:
            RateLimitedError: The rate is exceeded.
            QuotaError: The quota is used up.
        """
        self.take(characters, now_s)
        self.reserved += characters
        if counter is not None:
            counter.add(self, self.period, Count(requests=1))
        return Charge(self, characters, counter)

    def settle(self, reserved: int, characters: int) -> None:
        """Release a reservation of this router."""
        self.reserved -= reserved
        if CHARACTERS in self._buckets:
            self._buckets[CHARACTERS].take(characters - reserved)

    def charge(self, period: str, characters: int) -> None:
        """Add to what is charged; what belongs to an earlier period is not of this one."""
        if period == self.period:
            self.characters = max(0, self.characters + characters)


class Charge:
    """What one request reserves of its key's quota until it is settled.

    Args:
        account: Of the key; None if no key is required.
        characters: That are reserved.
        counter: Counts for all routers; None: there is no shared state.
        shared: Whether the reservation was made in the shared state.
    """

    __slots__ = ("_account", "_characters", "_counter", "_period", "_shared")

    def __init__(
        self,
        account: Account | None = None,
        characters: int = 0,
        counter: Counter | None = None,
        shared: bool = False,
    ) -> None:
        self._account, self._characters = account, characters
        self._counter, self._shared = counter, shared
        self._period = "" if account is None else account.period

    @property
    def left(self) -> int | None:
        """Characters that this request may have; None is without limit."""
        account = self._account
        if account is None or account.limits.character_limit is None:
            return None
        others = account.characters + account.reserved - self._characters
        return max(0, account.limits.character_limit - others)

    def settle(self, characters: int) -> None:
        """Charge for what was translated, instead of what was reserved.

        Args:
            characters: That were translated; negative where earlier ones are taken back.
        """
        account = self._account
        if account is None:
            return
        taken = 0
        if self._shared:
            # What is reserved there is charged already.
            characters = taken = characters - self._characters
        else:
            account.settle(self._characters, characters)
        account.charge(self._period, characters)
        if self._counter is not None:
            self._counter.add(account, self._period, Count(characters, taken=taken))


NO_CHARGE = Charge()
"""Of a request without a key."""


def quota_exceeded(used: int, limit: int, characters: int) -> QuotaError:
    """The error of a request that would exceed its key's quota."""
    return QuotaError(
        f"this key has used {used} of {limit} characters of this period; this request has {characters}"
    )


def rate_limited(account: Account, what: str, wait_s: float) -> RateLimitedError:
    """The error of a request that exceeds its rate."""
    whose = "with this key or token" if account.counted else "from this address"
    return RateLimitedError(f"too many {what} {whose}", math.ceil(wait_s))
