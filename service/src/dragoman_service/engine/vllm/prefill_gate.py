"""Batches prefills: requests are admitted to the engine every n steps, rather than each as it arrives.

Translations are short, so that at high load some start at nearly every step of the engine. vLLM runs a step with a
prefill layer by layer, in Python, and a step without one as one CUDA graph: the fewer steps are mixed, the better.
vLLM's own `prefill_schedule_interval` does the same for engines in data parallel only.
"""

from __future__ import annotations

import asyncio

from dragoman_service.engine.protocol import StallDetector


class PrefillGate:
    """Delays requests to every n-th step, for prefills; 1: no delay. Used from the event loop alone."""

    def __init__(self, every: int, stall_detector: StallDetector) -> None:
        self._every = every
        self._stall_detector = stall_detector
        self._steps = 0
        self._waiting: list[asyncio.Future[None]] = []

    async def wait(self) -> None:
        """Wait for the next prefill step: not at all if the engine is idle, or the last one is `every` steps ago."""
        if self._every == 1:
            return
        if not self._waiting and (not self._stall_detector.generating or self._steps >= self._every):
            self._steps = 0
            return
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(opened)
        await opened

    def step(self) -> None:
        """The engine has made a step."""
        self._steps += 1
        if self._steps >= self._every:
            self.open()

    def open(self) -> None:
        """Admit all that wait; also called when the engine becomes idle, because it makes no steps then."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            self._steps = 0
            for each in waiting:
                if not each.done():
                    each.set_result(None)
