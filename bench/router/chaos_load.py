"""The load of the chaos run, and what became of it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from faults.client import Client
from faults.questions import Question
from faults.sending import Patience, send

PATIENCE = Patience(attempts=4, waits=False)
"""A caller gives up after four broken connections, each at another router, and at the first refusal."""


@dataclass
class Phase:
    """What became of the requests that were sent in it.

    Args:
        wrong: What came, for each that was answered otherwise than once and rightly.
        reconnected: Attempts at another router, because the first one was away.
        retried: Requests that a router has sent to more than one replica, refusals included.
    """

    name: str
    sent: int = 0
    lost: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    reconnected: int = 0
    retried: int = 0
    seconds: list[float] = field(default_factory=list)
    began_s: float = field(default_factory=time.monotonic)
    lasted_s: float = 0.0
    load_average: float = field(default_factory=lambda: os.getloadavg()[0])

    def row(self) -> dict[str, Any]:
        """Its figures."""
        times = sorted(self.seconds) or [0.0]
        return {
            "phase": self.name,
            "lasted_s": round(self.lasted_s, 1),
            "sent": self.sent,
            "per_s": round(self.sent / self.lasted_s, 1) if self.lasted_s else 0.0,
            "lost": len(self.lost),
            "wrong": len(self.wrong),
            "reconnected": self.reconnected,
            "retried": self.retried,
            "p50_ms": round(1000 * times[len(times) // 2], 1),
            "p99_ms": round(1000 * times[min(len(times) - 1, int(len(times) * 0.99))], 1),
            "max_ms": round(1000 * times[-1], 1),
            "load_average_1m": round(self.load_average, 1),
            "why": [*self.lost[:3], *self.wrong[:3]],
        }


class Load:
    """Requests at a steady rate, independent of the responses."""

    def __init__(self, rate: float, ports: list[int], questions: Iterator[Question]) -> None:
        self._rate = rate
        self._ports = ports
        self._questions = questions
        self._client = Client()
        self.phases: list[Phase] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, name: str) -> None:
        """Requests from now on count for this phase."""
        self._end_phase()
        self.phases.append(Phase(name))

    async def run(self) -> None:
        """Send until cancelled; then wait for what is under way."""
        loop = asyncio.get_running_loop()
        number, began_s = 0, loop.time()
        try:
            while True:
                task = asyncio.create_task(self.send(next(self._questions), number, self.phases[-1]))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
                number += 1
                await asyncio.sleep(max(0.0, began_s + number / self._rate - loop.time()))
        finally:
            self._end_phase()
            await asyncio.gather(*self._tasks)
            self.finish()

    def finish(self) -> None:
        """Close the connections, and count what came by them unasked."""
        self._client.close()
        self.phases[-1].wrong += ["an answer without a request"] * self._client.surplus

    async def send(self, question: Question, number: int, phase: Phase) -> None:
        """Send one request, as a client does, and count its outcome."""
        phase.sent += 1
        ports = [self._ports[(number + turn) % len(self._ports)] for turn in range(len(self._ports))]
        outcome = await send(self._client, question, ports, PATIENCE)
        phase.reconnected += outcome.reconnected
        phase.retried += outcome.resent
        if outcome.lost:
            phase.lost.append(outcome.lost)
        if outcome.wrong:
            phase.wrong.append(outcome.wrong)
        if not outcome.lost and not outcome.wrong:
            phase.seconds.append(outcome.seconds)

    def _end_phase(self) -> None:
        if self.phases:
            self.phases[-1].lasted_s = time.monotonic() - self.phases[-1].began_s
