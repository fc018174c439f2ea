"""The load of the chaos run, and what became of it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

import aiohttp


@dataclass
class Phase:
    """What became of the requests that were sent in it."""

    name: str
    sent: int = 0
    lost: list[str] = field(default_factory=list)
    wrong: int = 0
    reconnected: int = 0
    seconds: list[float] = field(default_factory=list)

    def row(self) -> dict[str, Any]:
        """Its figures."""
        times = sorted(self.seconds) or [0.0]
        return {
            "phase": self.name,
            "sent": self.sent,
            "lost": len(self.lost),
            "wrong": self.wrong,
            "reconnected": self.reconnected,
            "p50_ms": round(1000 * times[len(times) // 2], 1),
            "p99_ms": round(1000 * times[min(len(times) - 1, int(len(times) * 0.99))], 1),
            "max_ms": round(1000 * times[-1], 1),
            "why": self.lost[:3],
        }


class Load:
    """Requests at a steady rate, whatever the answers do.

    Args:
        rate: Requests a second.
        ports: Of the routers, taken in turn.
    """

    def __init__(self, rate: float, ports: list[int]) -> None:
        self._rate = rate
        self._ports = ports
        self.phases: list[Phase] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, name: str) -> None:
        """Requests from now on count for this phase."""
        self.phases.append(Phase(name))

    async def run(self) -> None:
        """Send until cancelled; then wait for what is under way."""
        loop = asyncio.get_running_loop()
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(60)) as http:
            number, began_s = 0, loop.time()
            try:
                while True:
                    task = asyncio.create_task(self._ask(http, number, self.phases[-1]))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
                    number += 1
                    await asyncio.sleep(max(0.0, began_s + number / self._rate - loop.time()))
            finally:
                await asyncio.gather(*self._tasks)

    async def _ask(self, http: aiohttp.ClientSession, number: int, phase: Phase) -> None:
        phase.sent += 1
        text = f"request number {number} of many"
        body = {"text": text, "source_lang": "en", "target_lang": "de" if number % 2 else "fr"}
        began_s, problem = time.perf_counter(), ""
        for attempt in range(4):
            port = self._ports[(number + attempt) % len(self._ports)]
            try:
                async with http.post(f"http://127.0.0.1:{port}/translate", json=body) as answer:
                    document = await answer.json()
                    if answer.status != 200:
                        phase.lost.append(f"{answer.status} {document}")
                        return
            except (aiohttp.ClientConnectionError, ConnectionError) as error:
                phase.reconnected += 1
                problem = repr(error)
                await asyncio.sleep(0.05 * attempt)
                continue
            except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                phase.lost.append(repr(error))
                return
            phase.wrong += document.get("translation") != text[::-1]
            phase.seconds.append(time.perf_counter() - began_s)
            return
        phase.lost.append(problem)
