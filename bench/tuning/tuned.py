"""The part with tuning: the spec follows the recommendation, under a load that shifts."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from tuning.figures import Rollout, interval
from tuning.load import Load
from tuning.report import Report
from tuning.stage import REPLICAS, Engines, Stage, until_ready

NAME = "tuned"
EVERY_S = 5.0
"""Length of the intervals of the report."""
POLL_S = 0.5
ROUTERS_RAMP_S = 10.0
"""Time after which routers give a new replica its full share."""


class Tuned:
    """The part with tuning."""

    def __init__(self, options: argparse.Namespace, engines: Engines, report: Report) -> None:
        self._options, self._engines, self._report = options, engines, report
        self._size = options.start
        self._reason = ""
        self._intervals: list[dict[str, Any]] = []

    async def run(self, on: Stage) -> None:
        """All phases; each is written when it ends."""
        self._report.say(f"{REPLICAS} replicas with maxNumSeqs {self._size} start")
        async with on.deployed(self._manifest(), self._report.say) as cluster:
            load = Load(on.sender(NAME), self._engines.requests(seed=1))
            phases: list[dict[str, Any]] = []
            self._report.document["tuned"] = {
                "complete": False,
                "phases": phases,
                "intervals": self._intervals,
            }
            with self._reported(load):
                for in_flight in self._options.phases:
                    load.keep(in_flight)
                    phases.append(await self._phase(cluster, load, in_flight))
                    self._report.write()
                await load.aclose()
        self._report.document["tuned"]["complete"] = True
        self._report.write()

    async def _phase(self, cluster: Any, load: Load, in_flight: int) -> dict[str, Any]:
        """Keep the load until a recommendation has fitted for `settle`; set those that do not."""
        options, say, began_s = self._options, self._report.say, time.monotonic()
        say(f"phase: {in_flight} in flight, maxNumSeqs {self._size}")
        rollouts: list[tuple[int, float, float]] = []
        settled_s, wanted = began_s, None
        # A rollout is complete before the phase ends: none is left to the next.
        while (now := time.monotonic()) < began_s + options.longest:
            if wanted is not None and now >= settled_s + options.settle:
                break
            await asyncio.sleep(POLL_S)
            wanted = await self._recommended(cluster)
            if wanted in (None, self._size):
                continue
            say(f"maxNumSeqs {self._size} → {wanted}")
            before, self._size, changed_s = self._size, wanted, time.monotonic()
            await cluster.apply(self._manifest())
            await until_ready(cluster, self._manifest(), say)
            settled_s = time.monotonic()
            rollouts.append((before, changed_s, settled_s))
        ended_s = time.monotonic()
        steady_s = settled_s + min(ROUTERS_RAMP_S, options.settle / 2)
        return {
            "in_flight": in_flight,
            "size": self._size,
            "whole": interval(load.samples, began_s, ended_s),
            "steady": interval(load.samples, steady_s, ended_s),
            "rollouts": list(self._rows(load, rollouts, began_s, ended_s)),
        }

    def _rows(
        self, load: Load, rollouts: Sequence[tuple[int, float, float]], began_s: float, ended_s: float
    ) -> Iterator[dict[str, Any]]:
        """Each rollout with the rates before, meanwhile, and after it."""
        ends = [began_s, *(done_s for _, _, done_s in rollouts)]
        starts = [*(changed_s for _, changed_s, _ in rollouts), ended_s]
        sizes = [*(size for size, _, _ in rollouts), self._size]
        rates = [interval(load.samples, *span)["tokens_per_s"] for span in zip(ends, starts, strict=True)]
        for at, (size, changed_s, done_s) in enumerate(rollouts):
            during = interval(load.samples, changed_s, done_s)["tokens_per_s"]
            seconds = done_s - changed_s
            yield asdict(Rollout(size, sizes[at + 1], seconds, rates[at], during, rates[at + 1]))

    async def _recommended(self, cluster: Any) -> int | None:
        """The recommendation; None before the first for the current value. Changes of the reason are reported."""
        status = await cluster.status()
        found = status.get("recommendation") or {}
        condition: dict[str, str] = next(
            (c for c in status.get("conditions", ()) if c["type"] == "Tuning"), {}
        )
        reason = f"{condition.get('reason')}: {found.get('reason') or condition.get('message')}"
        if reason != self._reason:
            self._report.say(f"status: {reason}")
            self._reason = reason
        return found.get("maxNumSeqs")

    def _manifest(self) -> dict[str, Any]:
        tuning = {"mode": "Recommend", "window": f"{self._options.window}s"}
        return self._engines.manifest(NAME, self._size, REPLICAS, tuning)

    @contextmanager
    def _reported(self, load: Load) -> Iterator[None]:
        async def rows() -> None:
            while True:
                began_s = time.monotonic()
                await asyncio.sleep(EVERY_S)
                row = {
                    "in_flight": load.in_flight,
                    "size": self._size,
                    **interval(load.samples, began_s, time.monotonic()),
                }
                self._intervals.append(row)
                self._report.say(" ".join(f"{name}={value}" for name, value in row.items()))

        task = asyncio.create_task(rows())
        try:
            yield
        finally:
            task.cancel()
            load.abort()
