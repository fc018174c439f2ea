"""A closed loop of requests through routers, whose number in flight may change."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from dragoman_tune.closed_loop import AFTER_FAILURE_S, Sample, Send
from dragoman_tune.requests import Request


class Load:
    """Keeps so many requests in flight.

    Attributes:
        in_flight: The number to keep.
        samples: All requests that have ended, in this order.
    """

    def __init__(self, send: Send, requests: Iterator[Request]) -> None:
        self._send, self._requests = send, requests
        self.in_flight = 0
        self._running: dict[int, asyncio.Task[None]] = {}
        self.samples: list[Sample] = []

    def keep(self, in_flight: int) -> None:
        """Keep so many from now on; surplus ones end in their own time."""
        self.in_flight = in_flight
        for slot in range(in_flight):
            if slot not in self._running:
                self._running[slot] = asyncio.create_task(self._one_after_another(slot))

    async def aclose(self) -> None:
        """Send nothing more, and wait for the answers."""
        self.in_flight = 0
        await asyncio.gather(*self._running.values())

    def abort(self) -> None:
        """Send nothing more, and wait for nothing."""
        for task in self._running.values():
            task.cancel()

    async def _one_after_another(self, slot: int) -> None:
        while slot < self.in_flight:
            request = next(self._requests)
            began_s = time.monotonic()
            answer = await self._send(request)
            self.samples.append(Sample(began_s, time.monotonic(), request.output_tokens, answer))
            if answer.error is not None:
                await asyncio.sleep(AFTER_FAILURE_S)
        del self._running[slot]
