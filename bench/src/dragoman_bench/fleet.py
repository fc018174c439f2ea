"""Arms as running servers: started alone or several at once, warmed up, and ended together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from dragoman_bench.catalogue import Arm
from dragoman_bench.gpu import GPU
from dragoman_bench.plan import RunPlan
from dragoman_bench.point import ArmLoad, measure
from dragoman_bench.prompting import Prompting
from dragoman_bench.results import ArmResults
from dragoman_devcluster.ports import free_port
from dragoman_tune.closed_loop import Pace
from dragoman_tune.errors import MeasureError
from dragoman_tune.server import Server, running, settled

WARM_UP = Pace(window_s=1.0, ramp_s=10.0, drain_s=10.0)
"""Before an arm's first point: kernels that are compiled and buffers that are made on first use."""

WARM_UP_SEED = 1
WARM_UP_IN_FLIGHT = 8

MAX_MEMORY_RATIO = 0.9
"""Of a GPU's memory, for all engines together."""


@dataclass(frozen=True)
class Bench:
    """What all measurements of a run share, and its servers.

    Args:
        points: Kind of load (of `loads.LOADS`) and requests in flight, in the order of measuring.
    """

    plan: RunPlan
    points: Sequence[tuple[str, int]]
    pace: Pace
    seed: int
    prompting: Prompting
    results: ArmResults
    gpu: GPU | None
    say: Callable[[str], None]

    async def measured(self, arm: Arm, server: Server, load: ArmLoad) -> None:
        """Measure a point and write it.

        Raises:
            ServerError: The server ended.
        """
        point = await measure(arm, server, load, self.plan, self.prompting, self.gpu)
        self.results.point(arm, point)
        self.say(f"{arm.name}: {_line(point)}")

    def failed(self, arm: Arm, error: MeasureError) -> None:
        """Write that an arm has failed; the others go on."""
        self.results.note(arm, failed=str(error))
        self.say(f"{arm.name}: failed: {error}")

    async def warm_up(self, arm: Arm, servers: dict[str, Server], in_flight: int) -> None:
        """ArmLoad an arm for a moment, unmeasured, if it runs; one that ends meanwhile is removed from `servers`."""
        if arm.name not in servers:
            return
        load = ArmLoad(self.points[0][0], in_flight, WARM_UP, WARM_UP_SEED)
        try:
            await measure(arm, servers[arm.name], load, self.plan, self.prompting, self.gpu)
        except MeasureError as error:
            del servers[arm.name]
            self.failed(arm, error)

    @asynccontextmanager
    async def started(self, arms: Sequence[Arm]) -> AsyncIterator[dict[str, Server]]:
        """Running arms by name; failures are written, and those that did not start are missing."""
        servers: dict[str, Server] = {}

        async def start(arm: Arm, port: int, command: list[str]) -> None:
            began_s = time.monotonic()
            log = self.results.directory / f"{arm.name}.log"
            server = Server(arm.name, command, port, arm.ready_path, log, self.plan.environment)
            try:
                servers[arm.name] = await stack.enter_async_context(running(server, self.plan.start_s))
            except MeasureError as error:
                self.failed(arm, error)
                return
            self.results.note(arm, start_s=time.monotonic() - began_s)
            self.say(f"{arm.name}: ready after {time.monotonic() - began_s:.0f} s")
            if arm.metrics:
                await settled(server)

        async with AsyncExitStack() as stack:
            starts = []
            for arm in arms:
                port = free_port()
                command = arm.command(self.plan, port)
                self.results.arm(arm, self.plan.shown(command))
                starts.append((arm, port, command))
            try:
                if self.gpu is not None:
                    self.gpu.require(sum(arm.engines for arm in arms) * self.plan.memory_ratio)
            except MeasureError as error:
                for arm in arms:
                    self.failed(arm, error)
            else:
                self.say(f"starting {', '.join(arm.name for arm in arms)}")
                await asyncio.gather(*(start(*each) for each in starts))
            for arm in arms:
                await self.warm_up(arm, servers, WARM_UP_IN_FLIGHT)
            yield servers


def groups(arms: Sequence[Arm], memory_ratio: float) -> list[list[Arm]]:
    """Arms in their order, as many together as the GPU's memory has space for."""
    found: list[list[Arm]] = [[]]
    for arm in arms:
        engines = sum(one.engines for one in found[-1]) + arm.engines
        if found[-1] and engines * memory_ratio > MAX_MEMORY_RATIO:
            found.append([])
        found[-1].append(arm)
    return found


def _line(point: dict[str, Any]) -> str:
    """A point in a line."""
    p95 = point["p95_s"]
    parts = [
        f"{point['load']}, {point['in_flight']} in flight: {point['requests_per_s']:.2f} req/s",
        f"p50 {point['p50_s']:.2f} s, p95 {p95:.2f} s" if p95 is not None else "",
        "" if point["steady"] else "not steady",
        f"errors {point['errors']}" if point["errors"] else "",
    ]
    return ", ".join(part for part in parts if part)
