"""The order of measuring: `ladder` takes one arm after the other, `compare` takes all in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dragoman_bench.catalogue import Arm
from dragoman_bench.fleet import Bench, groups
from dragoman_bench.point import ArmLoad
from dragoman_tune.errors import MeasureError


async def climb(arms: Sequence[Arm], bench: Bench, *, together: bool) -> None:
    """Measure all points of all arms; an arm that fails is noted, and the next one begins.

    Args:
        arms: What to measure, in this order.
        bench: What they share.
        together: Start as many at once as memory has space for, which takes less time; those that are not being
            measured are idle. Otherwise each is alone on the machine.
    """
    for group in groups(arms, bench.plan.memory_ratio) if together else [[arm] for arm in arms]:
        async with bench.started(group) as servers:
            for arm in group:
                if arm.name not in servers:
                    continue
                try:
                    for number, (kind, in_flight) in enumerate(bench.points, 1):
                        # The last point's requests in flight disturb nothing of this arm.
                        last = number == len(bench.points)
                        pace = replace(bench.pace, drain_s=0.0) if last else bench.pace
                        load = ArmLoad(kind, in_flight, pace, bench.seed)
                        await bench.measured(arm, servers[arm.name], load)
                    await servers[arm.name].end()
                except MeasureError as error:
                    bench.failed(arm, error)


async def compare(arms: Sequence[Arm], bench: Bench, repetitions: int) -> None:
    """Measure all arms side by side; one that fails is left out from then on.

    Repetitions are interleaved, and each has prompts of its own, the same for every arm: what drifts on the machine
    drifts for all, and no arm finds in its prefix cache what another did not.
    """
    async with bench.started(arms) as servers:
        for in_flight in sorted({in_flight for _, in_flight in bench.points}):
            for arm in arms:
                await bench.warm_up(arm, servers, in_flight)
        for repetition in range(repetitions):
            bench.say(f"repetition {repetition + 1} of {repetitions}")
            for kind, in_flight in bench.points:
                # Another arm goes first each time.
                for arm in turned(arms, repetition):
                    if arm.name not in servers:
                        continue
                    load = ArmLoad(kind, in_flight, bench.pace, bench.seed + repetition)
                    try:
                        await bench.measured(arm, servers[arm.name], load)
                    except MeasureError as error:
                        del servers[arm.name]
                        bench.failed(arm, error)


def turned(arms: Sequence[Arm], by: int) -> list[Arm]:
    """The arms, beginning further on each time."""
    start = by % len(arms)
    return [*arms[start:], *arms[:start]]
