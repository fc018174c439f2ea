"""Requests that begin in the engine together: a few at every so many steps, rather than each as it comes.

Translations are short, so that at high load some begin at nearly every step of the engine. vLLM runs a step that begins
some and goes on with others layer by layer, in Python, and a step that only goes on as one CUDA graph: the fewer steps
are mixed, the better. vLLM's own `prefill_schedule_interval` does the same for engines in data parallel only.
"""

from __future__ import annotations

import asyncio

from dragoman_service.engine.protocol import Pulse


class Gathering:
    """The gate before an engine; used from the event loop alone.

    Args:
        every: Steps from one opening to the next; 1 lets everybody in at once.
        pulse: Tells of generations behind the gate.
    """

    def __init__(self, every: int, pulse: Pulse) -> None:
        self._every = every
        self._pulse = pulse
        self._steps = 0
        self._waiting: list[asyncio.Future[None]] = []

    async def entered(self) -> None:
        """Wait for the gate: not at all where the engine is idle, or nobody has gone in for long enough."""
        if self._every == 1:
            return
        if not self._waiting and (not self._pulse.generating or self._steps >= self._every):
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
        """Let in all that wait; called when the engine has nothing more to do, too, for it makes no steps then."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            self._steps = 0
            for each in waiting:
                if not each.done():
                    each.set_result(None)
