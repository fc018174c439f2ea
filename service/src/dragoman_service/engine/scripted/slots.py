"""Places of sequences in an engine, and the queue before them."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Places:
    """As many places as sequences run side by side; who comes later waits.

    Args:
        count: How many there are.
        by_priority: Whether the waiter with the smallest priority is next rather than the first to come.
    """

    def __init__(self, count: int, by_priority: bool = False) -> None:
        self._free = count
        self._by_priority = by_priority
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = itertools.count()
        self.running = 0
        self.waiting = 0

    @asynccontextmanager
    async def one(self, priority: int = 0) -> AsyncIterator[None]:
        """Hold a place, waited for first.

        Args:
            priority: Smaller is sooner, where it counts at all.
        """
        await self._take(priority)
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1
            self._give()

    async def _take(self, priority: int) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        rank = priority if self._by_priority else 0
        heapq.heappush(self._waiters, (rank, next(self._order), turn))
        self.waiting += 1
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give()
            raise
        finally:
            self.waiting -= 1

    def _give(self) -> None:
        """Hand a place to the next who still waits."""
        while self._waiters:
            _, _, turn = heapq.heappop(self._waiters)
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
