"""Usage and rates of keys in Redis: see `access.usage.SharedUsage`."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from dragoman_router.access.accounts import (
    CHARACTERS,
    REQUESTS,
    Account,
    Count,
    bucket_size,
    quota_exceeded,
    rate_limited,
)
from dragoman_router.state.outbox import NUMBER_KEPT_S, Items, Outbox
from dragoman_router.state.redis import StateClient
from dragoman_router.state.scripts import APPLY, RESERVE

KEPT_S = 100 * 24 * 3600
"""After its first day: a period, the one before it, and some days for bills."""
FLUSH_S = 0.25
"""Maximum time that a report of usage waits for what this router has not sent."""


class RedisUsage:
    """Usage and rates of all routers that share a server and a prefix."""

    def __init__(self, client: StateClient, router_id: str) -> None:
        self._client = client
        self._batches = f"{client.prefix}batch:{router_id}.{secrets.token_hex(4)}"
        self._reserve = client.redis.register_script(RESERVE)
        self._apply = client.redis.register_script(APPLY)
        clock = asyncio.get_running_loop().time
        self.outbox = Outbox(self._send, client.answering, clock)
        client.metrics.pending.set_function(lambda: self.outbox.age_s)

    @property
    def available(self) -> bool:
        """See `SharedUsage.available`."""
        return self._client.available

    def add(self, account: Account, period: str, count: Count) -> None:
        """See `Counter.add`."""
        self.outbox.add(account, period, count)

    async def reserve(self, account: Account, period: str, characters: int) -> int:
        """See `SharedUsage.reserve`."""
        limits = account.limits
        keys = [self._usage(period), self._bucket(REQUESTS, account), self._bucket(CHARACTERS, account)]
        arguments = [
            account.name if account.counted else "",
            characters,
            "" if limits.character_limit is None else limits.character_limit,
            expiry_of(period),
            *_bucket(limits.requests_per_s, limits.burst_s),
            *_bucket(limits.characters_per_s, limits.burst_s),
        ]
        outcome, value = await self._client.call("reserve", lambda: self._reserve(keys, arguments))
        match outcome:
            case b"admitted":
                return int(value) + self.outbox.unsent(account, period)
            case b"quota":
                raise quota_exceeded(value, limits.character_limit or 0, characters)
            case _:
                raise rate_limited(account, outcome.decode(), value)

    async def used(self, account: Account, period: str) -> int:
        """See `SharedUsage.used`; includes what this router charged before."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_S):
                await self.outbox.flush(account, period)
        name = f"{CHARACTERS}:{account.name}"
        return int(
            await self._client.call("used", lambda: self._client.redis.hget(self._usage(period), name)) or 0
        )

    async def _send(self, number: int, items: Items) -> None:
        keys = [self._batches]
        arguments: list[Any] = [number, NUMBER_KEPT_S]
        for (period, account), count in items.items():
            limits = account.limits
            keys += [self._usage(period), self._bucket(CHARACTERS, account)]
            arguments += [account.name, count.characters, count.requests, expiry_of(period), count.taken]
            arguments += _bucket(limits.characters_per_s, limits.burst_s)
        # Empty where the batch was applied before.
        totals = await self._client.call("apply", lambda: self._apply(keys, arguments))
        for ((period, account), count), total in zip(items.items(), totals, strict=False):
            if period == account.period:
                waiting = self.outbox.unsent(account, period) - count.characters
                account.characters = max(0, total + waiting)

    def _usage(self, period: str) -> str:
        return f"{self._client.prefix}usage:{period}"

    def _bucket(self, what: str, account: Account) -> str:
        return f"{self._client.prefix}rate:{what}:{account.name}"


@lru_cache(maxsize=8)
def expiry_of(period: str) -> int:
    """Seconds since the epoch at which a period's usage is deleted."""
    return int(datetime.fromisoformat(period).replace(tzinfo=UTC).timestamp()) + KEPT_S


def _bucket(rate: float | None, burst_s: float) -> tuple[float, float]:
    return (0, 0) if rate is None else (rate, bucket_size(rate, burst_s))
