"""Usage that is not in Redis yet: numbered batches, one in flight, so that none is applied twice."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from itertools import islice

from dragoman_router.access.accounts import Account, Count
from dragoman_router.errors import StateError

log = logging.getLogger(__name__)

PAUSE_S = 0.01
"""Between two batches: usage of many requests costs one command."""
RETRY_S = 1.0
"""After a batch that was refused."""
MAX_ITEMS = 1000
"""In one batch: a script blocks the server while it runs."""
NUMBER_KEPT_S = 24 * 3600
"""Redis remembers the number of the last batch for so long."""
MAX_AGE_S = NUMBER_KEPT_S / 2
"""A batch that was sent without an answer so long ago is dropped: whether it was applied cannot be known for long."""

Items = Mapping[tuple[str, Account], Count]
"""By period and account."""


class Outbox:
    """Adds up usage, and sends it.

    Args:
        send: Sends the items of a batch under its number; raises `StateError` if there was no answer.
        answering: Set while the server answers.
    """

    def __init__(
        self,
        send: Callable[[int, Items], Awaitable[None]],
        answering: asyncio.Event,
        clock: Callable[[], float],
    ) -> None:
        self._send, self._answering, self._clock = send, answering, clock
        self._waiting: dict[tuple[str, Account], Count] = {}
        self._batch: dict[tuple[str, Account], Count] = {}
        self._number = self._sent = 0
        self._first_sent_s: float | None = None
        self._since_s: float | None = None
        self._added = asyncio.Event()
        self._progress = asyncio.Condition()

    @property
    def age_s(self) -> float:
        """Of the oldest usage that is not in Redis."""
        return 0.0 if self._since_s is None else self._clock() - self._since_s

    def add(self, account: Account, period: str, count: Count) -> None:
        """Add usage to what is sent next."""
        if count == Count():
            return
        key = period, account
        known = self._waiting.get(key)
        self._waiting[key] = count if known is None else Count(*map(sum, zip(known, count, strict=True)))
        if self._since_s is None:
            self._since_s = self._clock()
        self._added.set()

    def unsent(self, account: Account, period: str) -> int:
        """Characters of an account that are not known to be in Redis."""
        key = period, account
        return sum(items[key].characters for items in (self._waiting, self._batch) if key in items)

    async def flush(self, account: Account, period: str) -> None:
        """Wait until what was added for an account is in Redis."""
        key = period, account
        number = self._number + 1 if key in self._waiting else self._number if key in self._batch else 0
        async with self._progress:
            await self._progress.wait_for(lambda: self._sent >= number)

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            await self._added.wait()
            await self._answering.wait()
            await asyncio.sleep(PAUSE_S if await self._try() else RETRY_S)

    async def drain(self, limit_s: float) -> None:
        """Send what is left, and give up after a time."""
        try:
            async with asyncio.timeout(limit_s):
                while self._waiting or self._batch:
                    await self._answering.wait()
                    if not await self._try():
                        await asyncio.sleep(PAUSE_S)
        except TimeoutError:
            log.warning("usage of %d keys is lost: Redis did not take it", len(self._waiting | self._batch))

    async def _try(self) -> bool:
        """Whether the batch was applied, and another may follow."""
        if not self._batch:
            self._batch = dict(islice(self._waiting.items(), MAX_ITEMS))
            for key in self._batch:
                del self._waiting[key]
            self._number += 1
        now_s = self._clock()
        if self._first_sent_s is not None and now_s - self._first_sent_s > MAX_AGE_S:
            log.warning("usage of %d keys is dropped: it may have been counted before", len(self._batch))
        else:
            if self._first_sent_s is None:
                self._first_sent_s = now_s
            try:
                await self._send(self._number, self._batch)
            except StateError:
                return False
        self._batch, self._first_sent_s = {}, None
        self._since_s = now_s if self._waiting else None
        if not self._waiting:
            self._added.clear()
        async with self._progress:
            self._sent = self._number
            self._progress.notify_all()
        return True
