"""The operator killed at random points of rollouts: it converges, and loses and doubles nothing."""

import asyncio
import random
from collections import defaultdict
from typing import Any

import pytest

from dragoman_kube.kinds import DEPLOYMENT, REPLICA_SET
from dragoman_kube.mirror import Mirror
from dragoman_operator.observed.snapshot import TRANSLATION_DEPLOYMENT, template_hash

pytestmark = pytest.mark.cluster

SEED = 17
RUNNING, BARE = ("pods-0", "pods-1"), ("bare-0", "bare-1", "bare-2", "bare-3")
"""Objects with a pod each, and those without, whose rollouts take no time."""
MAX_DELAY_S = 0.8
"""From an edit, or from the lead of the operator, to the kill: longer than it takes to write all objects."""


class Seen:
    """What watches have seen of the objects and their Deployments."""

    def __init__(self) -> None:
        self.deployments: defaultdict[str, set[str]] = defaultdict(set)
        """The uids by name."""
        self.problems: list[str] = []

    def deployment(self, _: Any, after: dict[str, Any] | None) -> None:
        if after is not None:
            self.deployments[after["metadata"]["name"]].add(after["metadata"]["uid"])

    def status(self, before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
        old, new = (before or {}).get("status") or {}, (after or {}).get("status") or {}
        if not old:
            return
        lost = old.keys() - new.keys()
        types = [{found["type"] for found in status.get("conditions", ())} for status in (old, new)]
        if lost or types[0] - types[1] or new.get("observedGeneration", 0) < old["observedGeneration"]:
            self.problems.append(f"{old} became {new}")


@pytest.mark.parametrize(
    "kills",
    [
        pytest.param(8, marks=pytest.mark.timeout(150)),
        pytest.param(50, marks=[pytest.mark.soak, pytest.mark.timeout(600)]),
    ],
)
async def test_killed_at_random_points_of_rollouts(world: Any, kills: int) -> None:
    chance, seen = random.Random(SEED), Seen()
    mirror = Mirror(world.kube, [world.namespace])
    mirror.follow(DEPLOYMENT, seen.deployment)
    mirror.follow(TRANSLATION_DEPLOYMENT, seen.status)
    operator = world.operator()
    await asyncio.gather(*(world.create(name, replicas=int(name in RUNNING)) for name in (*RUNNING, *BARE)))
    for number in range(kills):
        await world.until(operator.leads, bool)
        size = 8 + number
        await asyncio.sleep(chance.uniform(0, MAX_DELAY_S) * chance.randrange(2))
        edited = chance.sample((*RUNNING, *BARE), 3)
        await asyncio.gather(*(world.edit(name, engine={"maxNumSeqs": size}) for name in edited))
        await asyncio.sleep(chance.uniform(0, MAX_DELAY_S))
        killed = operator.process
        killed.kill()
        await world.until(lambda killed=killed: _is_replaced(operator, killed), bool)
        for name in set(edited) & set(BARE):
            await world.until_complete(name)
    for name in (*RUNNING, *BARE):
        await world.until_complete(name)
        spec = (await world.get(TRANSLATION_DEPLOYMENT, name))["spec"]
        template = (await world.get(DEPLOYMENT, name))["spec"]["template"]
        assert str(spec["engine"]["maxNumSeqs"]) in template["spec"]["containers"][0]["args"]
    assert operator.exits == [-9] * kills
    replica_sets = (await world.kube.list(REPLICA_SET, world.namespace)).items
    templates = [
        (found["metadata"]["ownerReferences"][0]["uid"], template_hash(found)) for found in replica_sets
    ]
    await mirror.aclose()
    assert seen.problems == []
    assert {name: len(uids) for name, uids in seen.deployments.items()} == dict.fromkeys((*RUNNING, *BARE), 1)
    assert len(set(templates)) == len(templates)


async def _is_replaced(operator: Any, killed: Any) -> bool:
    return operator.process is not killed
