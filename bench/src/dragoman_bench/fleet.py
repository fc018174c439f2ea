"""Arms as running servers: started alone or several at once, warmed up, and ended together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from dragoman_bench.catalogue import Arm
from dragoman_bench.gpu import GPU
from dragoman_bench.plan import Plan
from dragoman_bench.point import measure
from dragoman_bench.prompting import Prompting
from dragoman_bench.results import Results
from dragoman_tune.closed_loop import Pace
from dragoman_tune.errors import MeasureError
from dragoman_tune.server import Server, free_port, running

Say = Callable[[str], None]

WARM_UP = Pace(window_s=1.0, ramp_s=10.0, drain_s=10.0)
"""Before an arm's first point: kernels that are compiled and buffers that are made on first use."""

WARM_UP_SEED = 1
WARM_UP_IN_FLIGHT = 8

MOST_MEMORY_RATIO = 0.9
"""Of a GPU's memory, for all engines together."""


@dataclass(frozen=True)
class Scope:
    """Which points to measure.

    Args:
        points: Kind of load (of `loads.LOADS`) and requests in flight, in the order of measuring.
    """

    points: Sequence[tuple[str, int]]
    pace: Pace
    seed: int


@dataclass(frozen=True)
class Bench:
    """What all measurements of a run share."""

    plan: Plan
    scope: Scope
    prompting: Prompting
    results: Results
    gpu: GPU | None
    say: Say

    async def measured(
        self, arm: Arm, server: Server, kind: str, in_flight: int, pace: Pace, seed: int
    ) -> None:
        """Measure a point and keep it.

        Raises:
            ServerError: The server ended.
        """
        point = await measure(arm, server, self.plan, self.prompting, kind, in_flight, pace, seed, self.gpu)
        self.results.point(arm, point)
        self.say(f"{arm.name}: {point_line(point)}")

    def failed(self, arm: Arm, error: MeasureError) -> None:
        """Note that an arm has failed; the others go on."""
        self.results.failed(arm, str(error))
        self.say(f"{arm.name}: failed: {error}")


def groups(arms: Sequence[Arm], memory_ratio: float) -> list[list[Arm]]:
    """Arms in their order, as many together as the GPU's memory holds."""
    found: list[list[Arm]] = [[]]
    for arm in arms:
        engines = sum(one.engines for one in found[-1]) + arm.engines
        if found[-1] and engines * memory_ratio > MOST_MEMORY_RATIO:
            found.append([])
        found[-1].append(arm)
    return found


@asynccontextmanager
async def started(bench: Bench, arms: Sequence[Arm]) -> AsyncIterator[dict[str, Server]]:
    """Arms that run, by name; those that did not start are noted and left out."""
    servers: dict[str, Server] = {}
    async with AsyncExitStack() as stack:
        if bench.gpu is not None:
            try:
                bench.gpu.require(sum(arm.engines for arm in arms) * bench.plan.memory_ratio)
            except MeasureError as error:
                for arm in arms:
                    bench.results.arm(arm, [])
                    bench.failed(arm, error)
                yield {}
                return

        async def start(arm: Arm, command: list[str], port: int) -> None:
            began_s = time.monotonic()
            log = bench.results.directory / f"{arm.name}.log"
            server = Server(arm.name, command, port, arm.ready_path, log, bench.plan.environment)
            try:
                servers[arm.name] = await stack.enter_async_context(running(server, bench.plan.start_s))
            except MeasureError as error:
                bench.failed(arm, error)
                return
            bench.results.started(arm, time.monotonic() - began_s)
            bench.say(f"{arm.name}: ready after {time.monotonic() - began_s:.0f} s")

        starts = []
        for arm in arms:
            port = free_port()
            command = arm.command(bench.plan, port)
            # Results name no path of the machine.
            model = str(bench.plan.model)
            bench.results.arm(arm, ["MODEL" if part == model else part for part in command])
            bench.say(f"{arm.name}: starting {arm.title}")
            starts.append(start(arm, command, port))
        await asyncio.gather(*starts)
        for arm in arms:
            if arm.name in servers:
                await warm_up(bench, arm, servers, WARM_UP_IN_FLIGHT)
        yield servers


async def warm_up(bench: Bench, arm: Arm, servers: dict[str, Server], in_flight: int) -> None:
    """Load an arm for a moment, unmeasured; one that ends meanwhile is noted and left out."""
    kind = bench.scope.points[0][0]
    try:
        await measure(
            arm,
            servers[arm.name],
            bench.plan,
            bench.prompting,
            kind,
            in_flight,
            WARM_UP,
            WARM_UP_SEED,
            bench.gpu,
        )
    except MeasureError as error:
        del servers[arm.name]
        bench.failed(arm, error)


def point_line(point: dict[str, object]) -> str:
    """A point in a line."""
    p95 = point["p95_s"]
    parts = [
        f"{point['load']}, {point['in_flight']} in flight: {point['requests_per_s']:.2f} req/s",
        f"p50 {point['p50_s']:.2f} s, p95 {p95:.2f} s" if p95 is not None else "",
        "" if point["steady"] else "not steady",
        f"errors {point['errors']}" if point["errors"] else "",
    ]
    return ", ".join(part for part in parts if part)
