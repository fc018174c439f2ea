"""`dragoman bench compare`: all arms up at once, measured in turn, several times.

Repetitions are interleaved, and each has prompts of its own, the same for every arm: what drifts on the machine
drifts for all, and no arm finds in its prefix cache what another did not.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman_bench.catalogue import Arm
from dragoman_bench.fleet import Bench, started, warm_up
from dragoman_tune.errors import MeasureError

OFFLINE = "offline"
"""It takes a list and batches as it likes: only the highest load says anything of it."""


async def compare(arms: Sequence[Arm], bench: Bench, repetitions: int) -> None:
    """Measure all arms side by side; one that fails is left out from then on."""
    scope = bench.scope
    most = max(in_flight for _, in_flight in scope.points)
    async with started(bench, arms) as servers:
        for in_flight in sorted({in_flight for _, in_flight in scope.points}):
            for arm in arms:
                if arm.name in servers:
                    await warm_up(bench, arm, servers, in_flight)
        for repetition in range(repetitions):
            bench.say(f"repetition {repetition + 1} of {repetitions}")
            for kind, in_flight in scope.points:
                # Another arm goes first each time.
                for arm in turned(arms, repetition):
                    if arm.name not in servers or (arm.name == OFFLINE and in_flight < most):
                        continue
                    seed = scope.seed + repetition
                    try:
                        await bench.measured(arm, servers[arm.name], kind, in_flight, scope.pace, seed)
                    except MeasureError as error:
                        del servers[arm.name]
                        bench.failed(arm, error)


def turned(arms: Sequence[Arm], by: int) -> list[Arm]:
    """The arms, beginning further on each time."""
    start = by % len(arms)
    return [*arms[start:], *arms[:start]]
