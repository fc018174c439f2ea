"""Limits failed authentication attempts by client address, so that keys cannot be guessed."""

from __future__ import annotations

import math
from collections.abc import Callable

from cachetools import LRUCache

from dragoman_protocols.errors import RateLimitedError, TooManyAuthFailuresError
from dragoman_router.access.accounts import Account, AccountLimits
from dragoman_router.access.addresses import MAX_ADDRESSES, client_of
from dragoman_router.access.usage import AccountUsage

BURST_S = 60
"""Seconds of the rate that are admitted at once: a client with a wrong key learns so, and not that it is limited."""
FAILURES = "failures"
"""Before a slash in the name of an address' account; see `gate.ADDRESSES`."""
MAX_PLACES = 10_000
"""Pairs of client and key that are kept, twice; about 2 MB."""


class AuthFailures:
    """The failed attempts of each client's address, and the keys that were accepted from it.

    While an address is over its rate, a key is accepted from it only if it was accepted from it before. So no answer
    tells whether a guess is right, and who shares the address of one that guesses, behind a NAT or a proxy, goes on.
    Keys that were used from the guesser's own address can be guessed on: nothing distinguishes it from their owner.

    Args:
        per_s: Average failed attempts of an address a second; `BURST_S` times as many at once.
        usage: Shares the rate with other routers.
        clock: Monotonic seconds.
    """

    def __init__(self, per_s: float, usage: AccountUsage, clock: Callable[[], float]) -> None:
        self._limits = AccountLimits(requests_per_s=per_s, burst_s=BURST_S)
        self._usage, self._clock = usage, clock
        self._accounts: LRUCache[str, Account] = LRUCache(MAX_ADDRESSES)
        self._limited: dict[str, float] = {}
        """When each client that is over its rate is so no longer."""
        # Two sets instead of an order of use: each request has its key looked up here.
        self._places: set[tuple[str, str]] = set()
        self._earlier_places: set[tuple[str, str]] = set()

    def check(self, address: str, key_name: str | None) -> None:
        """Check a key that was sent, before its sender learns whether it is known.

        Args:
            address: Of the client.
            key_name: None: it is not known.

        Raises:
            TooManyAuthFailuresError: The address is over its rate, and the key was not accepted from it before.
        """
        client = client_of(address)
        place = client, key_name or ""
        if place in self._places:
            return
        if self._limited and place not in self._earlier_places and (left_s := self._left_s(client)) > 0:
            raise refusal(left_s)
        if key_name is not None:
            if len(self._places) >= MAX_PLACES:
                self._earlier_places, self._places = self._places, set()
            self._places.add((client, key_name))

    async def count(self, address: str) -> TooManyAuthFailuresError | None:
        """Count a failed attempt.

        Returns:
            The error to answer instead of the attempt's own; None: the address is within its rate.
        """
        client = client_of(address)
        left_s = self._left_s(client)
        if left_s <= 0:
            account = self._accounts.get(client)
            now_s = self._clock()
            if account is None:
                account = Account(f"{FAILURES}/{client}", self._limits, now_s, counted=False)
                self._accounts[client] = account
            try:
                # This router's own bucket first, without waiting: attempts at the same time are all counted before
                # the next one is compared.
                account.take(0, now_s)
                await self._usage.take_shared(account)
            except RateLimitedError as error:
                left_s = error.retry_after_s
                self._limit(client, now_s + left_s)
        return refusal(left_s) if left_s > 0 else None

    def _limit(self, client: str, until_s: float) -> None:
        if len(self._limited) >= MAX_ADDRESSES:
            del self._limited[next(iter(self._limited))]
        self._limited[client] = until_s

    def _left_s(self, client: str) -> float:
        """Seconds until a client is no longer over its rate; not positive: it is not."""
        until_s = self._limited.get(client)
        if until_s is None:
            return 0.0
        left_s = until_s - self._clock()
        if left_s <= 0:
            del self._limited[client]
        return left_s


def refusal(left_s: float) -> TooManyAuthFailuresError:
    """The error of an attempt beyond the rate, the same for a known key and for a wrong one."""
    return TooManyAuthFailuresError(
        "too many requests of this address had a wrong key or token; check yours, and retry later",
        math.ceil(left_s),
    )
