"""How much a key may ask for: token buckets, and counters of what it used."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dragoman_router.access.counts import NOTHING, Count
from dragoman_router.errors import QuotaExceededError, RateLimitedError
from dragoman_router.usage.shares import Pace, refill


@dataclass(frozen=True, slots=True)
class Limits:
    """What one key may do at all routers together; None is without limit.

    Args:
        requests_per_s: Requests a second on average; as many as `burst_s` of them at once, at least one.
        characters_per_s: Characters a second on average, likewise.
        character_limit: Characters in a period, usually a month.
        burst_s: For how many seconds a pause may be made up for.
    """

    requests_per_s: float | None = None
    characters_per_s: float | None = None
    character_limit: int | None = None
    burst_s: float = 10.0

    @property
    def rated(self) -> bool:
        """Whether there is a rate among them."""
        return self.requests_per_s is not None or self.characters_per_s is not None


class Bucket:
    """A token bucket: it fills by `rate` a second up to `most`, and may be overdrawn once.

    Overdrawing lets a request through that is larger than the bucket; the next one waits until it is made up for.
    """

    __slots__ = ("_at_s", "_level", "_most", "_rate")

    def __init__(self, rate: float, most: float, now_s: float) -> None:
        self._rate, self._most = rate, most
        self._level, self._at_s = most, now_s

    def wait_s(self, now_s: float) -> float:
        """Seconds until something may be taken; 0 where it may now."""
        self._level = min(self._most, self._level + max(0.0, now_s - self._at_s) * self._rate)
        self._at_s = now_s
        need = min(1.0, self._most)
        return 0.0 if self._level >= need else (need - self._level) / self._rate

    def take(self, amount: float) -> None:
        """Account for what was let through."""
        self._level -= amount

    def change(self, rate: float, most: float, now_s: float) -> None:
        """Fill differently from now on."""
        self.wait_s(now_s)
        self._rate, self._most = rate, most
        self._level = min(self._level, most)


class Account:
    """What one key has used: `characters` and `requests` of this period, at all routers as far as they tell.

    `reserved` are the characters of requests that are under way here: they are not charged yet.

    Args:
        limits: What it may.
        now_s: Monotonic seconds.
    """

    def __init__(self, limits: Limits, now_s: float) -> None:
        self.requests = 0
        self.characters = 0
        self.reserved = 0
        self._noted = self._collected = NOTHING
        self.change(limits, now_s)

    def change(self, limits: Limits, now_s: float) -> None:
        """It may something else from now on."""
        self.limits = limits
        self._requests = _bucket(limits.requests_per_s, limits.burst_s, now_s)
        self._characters = _bucket(limits.characters_per_s, limits.burst_s, now_s)

    @property
    def own(self) -> Count:
        """What was let through here since the start."""
        return self._collected.plus(Count(self.characters, self.requests).less(self._noted))

    def collect(self) -> Count:
        """What was let through here since the last time."""
        if self.requests == self._noted.requests and self.characters == self._noted.characters:
            return NOTHING
        now = Count(self.characters, self.requests)
        new = now.less(self._noted)
        self._noted, self._collected = now, self._collected.plus(new)
        return new

    def tell(self, total: Count) -> None:
        """All routers together have let this through, with what was collected here."""
        if total != self._noted:
            self.characters, self.requests = self._noted = total

    def share(self, others: Pace, live: int, now_s: float) -> None:
        """Leave their part of the rates to other routers.

        Args:
            others: What the key uses there.
            live: Routers, this one included.
            now_s: Monotonic seconds.
        """
        limits = self.limits
        for bucket, rate, used_per_s in (
            (self._requests, limits.requests_per_s, others.requests),
            (self._characters, limits.characters_per_s, others.characters),
        ):
            if bucket is not None and rate is not None:
                bucket.change(refill(rate, used_per_s, live), _most(rate, limits.burst_s / live), now_s)

    def admit(self, characters: int, now_s: float) -> None:
        """Let one request through, and charge for it at once. See `reserve`."""
        self.reserve(characters, now_s).settle(characters)

    def reserve(self, characters: int, now_s: float) -> Charge:
        """Let one request through, whose characters are charged for once it is known what was translated.

        Args:
            characters: In its texts, times its targets, as far as they are known.
            now_s: Monotonic seconds.

        Raises:
            RateLimitedError: It comes too early.
            QuotaExceededError: The characters are used up.
        """
        limit = self.limits.character_limit
        used = self.characters + self.reserved
        if limit is not None and used + characters > limit:
            raise QuotaExceededError(
                f"this key has used {used} of {limit} characters of this period; this request has {characters}"
            )
        for bucket, what in ((self._requests, "requests"), (self._characters, "characters")):
            wait_s = 0.0 if bucket is None else bucket.wait_s(now_s)
            if wait_s > 0:
                raise RateLimitedError(f"Slowdown: too many {what} with this key", math.ceil(wait_s))
        if self._requests is not None:
            self._requests.take(1)
        if self._characters is not None:
            self._characters.take(characters)
        self.requests += 1
        self.reserved += characters
        return Charge(self, characters)

    def settle(self, reserved: int, characters: int) -> None:
        """Charge for what was translated, instead of what was reserved.

        Args:
            reserved: By the request.
            characters: That were translated; negative where earlier ones are taken back.
        """
        self.reserved -= reserved
        self.characters = max(0, self.characters + characters)
        if self._characters is not None:
            self._characters.take(characters - reserved)


class Charge:
    """What one request holds of its key's quota until it is settled.

    Args:
        account: Of the key; None where no key is asked for.
        characters: That are reserved.
    """

    __slots__ = ("_account", "_characters")

    def __init__(self, account: Account | None = None, characters: int = 0) -> None:
        self._account, self._characters = account, characters

    @property
    def left(self) -> int | None:
        """Characters that this request may have; None is without limit."""
        account = self._account
        if account is None or account.limits.character_limit is None:
            return None
        others = account.characters + account.reserved - self._characters
        return max(0, account.limits.character_limit - others)

    def settle(self, characters: int) -> None:
        """Charge for what was translated, and hold nothing more. See `Account.settle`."""
        if self._account is not None:
            self._account.settle(self._characters, characters)


def _bucket(rate: float | None, burst_s: float, now_s: float) -> Bucket | None:
    return None if rate is None else Bucket(rate, _most(rate, burst_s), now_s)


def _most(rate: float, burst_s: float) -> float:
    return max(1.0, rate * burst_s)
