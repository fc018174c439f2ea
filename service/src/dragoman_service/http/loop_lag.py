"""Lag of the event loop, which delays every request."""

from __future__ import annotations

import asyncio
import time
from collections import deque

EVERY_S = 0.5

REMEMBERED = 30
"""Measurements that the worst is taken of: 15 s, which is how often metrics are read as a rule."""


class LoopLag:
    """Measures how late a timer fires."""

    def __init__(self) -> None:
        self._late_s: deque[float] = deque([0.0], maxlen=REMEMBERED)

    def worst_s(self) -> float:
        """The longest delay of the last 15 seconds, in seconds."""
        return max(self._late_s)

    async def watch(self) -> None:
        """Measure until cancelled."""
        while True:
            due_s = time.monotonic() + EVERY_S
            await asyncio.sleep(EVERY_S)
            self._late_s.append(max(0.0, time.monotonic() - due_s))
