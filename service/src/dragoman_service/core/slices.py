"""Slices of the event loop's time: long work on it pauses between them."""

from __future__ import annotations

import asyncio
import time

SLICE_S = 0.004
"""Long work runs for so long, then the event loop has its turn."""


class Slice:
    """The time until long work on the event loop has to pause; all tasks that share it share the time."""

    def __init__(self) -> None:
        self._end_s = time.perf_counter() + SLICE_S
        self._next_comes = False

    @property
    def is_over(self) -> bool:
        """Whether the work has to pause."""
        return time.perf_counter() >= self._end_s

    async def pause(self) -> None:
        """Where the slice is over, wait for the next one, which begins after the event loop has had its turn."""
        while self.is_over:
            if not self._next_comes:
                self._next_comes = True
                asyncio.get_running_loop().call_soon(self._begin)
            await asyncio.sleep(0)

    def _begin(self) -> None:
        self._end_s = time.perf_counter() + SLICE_S
        self._next_comes = False
