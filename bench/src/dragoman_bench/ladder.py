"""`dragoman bench ladder`: one arm after the other, each alone with the load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dragoman_bench.catalogue import Arm
from dragoman_bench.fleet import Bench, groups, started
from dragoman_tune.errors import MeasureError
from dragoman_tune.server import Server


async def climb(arms: Sequence[Arm], bench: Bench, *, together: bool) -> None:
    """Measure all points of all arms; an arm that fails is noted, and the next one begins.

    Args:
        arms: What to measure, in this order.
        bench: What they share.
        together: Start as many at once as memory holds, which takes less time; those that are not being measured
            are idle. Otherwise each is alone on the machine.
    """
    for group in groups(arms, bench.plan.memory_ratio) if together else [[arm] for arm in arms]:
        async with started(bench, group) as servers:
            for arm in group:
                if arm.name not in servers:
                    continue
                try:
                    await _one(arm, servers[arm.name], bench)
                except MeasureError as error:
                    bench.failed(arm, error)


async def _one(arm: Arm, server: Server, bench: Bench) -> None:
    scope = bench.scope
    for number, (kind, in_flight) in enumerate(scope.points, 1):
        # What is in flight after the last point disturbs nothing of this arm any more.
        pace = replace(scope.pace, drain_s=0.0) if number == len(scope.points) else scope.pace
        await bench.measured(arm, server, kind, in_flight, pace, scope.seed)
    await server.end()
