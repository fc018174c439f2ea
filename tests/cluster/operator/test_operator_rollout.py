"""Rollouts on a node whose GPUs are all taken."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from dragoman_kube.kinds import DEPLOYMENT, POD

pytestmark = pytest.mark.cluster

ONE_GPU = {
    "engine": {"device": "cuda", "maxNumSeqs": 4},
    "resources": {"limits": {"nvidia.com/gpu": 1}},
}


@pytest.fixture(scope="module")
def cluster(start_cluster: Any) -> Iterator[Any]:
    """A cluster whose node has two GPUs, by name: the engines are scripted."""
    with start_cluster(gpus=2) as started:
        yield started


@pytest.fixture(autouse=True)
async def _free_gpus(world: Any) -> None:
    """The former test's pods hold theirs for as long as they take to end."""
    await world.until(lambda: world.kube.list(POD), lambda found: not found.items)


async def fewest_ready(world: Any, until: asyncio.Task[None]) -> int:
    """The least number of ready pods seen while something goes on."""
    fewest = 99
    while not until.done():
        ready = (await world.get(DEPLOYMENT)).get("status", {}).get("readyReplicas", 0)
        fewest = min(fewest, ready)
        await asyncio.sleep(0.05)
    await until
    return fewest


def arguments(deployment: dict[str, Any]) -> list[str]:
    found: list[str] = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    return found


async def test_without_a_spare_gpu_one_replica_after_the_other_is_replaced(world):
    world.operator()
    await world.create(replicas=2, **ONE_GPU)
    await world.until_complete()
    before = {pod["metadata"]["uid"] for pod in await world.pods()}
    await world.edit(engine={"maxNumSeqs": 6})
    assert await fewest_ready(world, asyncio.create_task(world.until_complete(timeout_s=100))) == 1
    after = await world.pods()
    assert len(after) == 2
    assert before.isdisjoint(pod["metadata"]["uid"] for pod in after)
    # The next rollout may find a GPU free, and is given the chance.
    await world.until(
        lambda: world.get(DEPLOYMENT),
        lambda found: found["spec"]["strategy"]["rollingUpdate"]["maxSurge"] == 1,
    )


async def test_with_a_spare_gpu_no_pod_terminates_before_the_new_one_is_ready(world):
    world.operator()
    await world.create(replicas=1, **ONE_GPU)
    await world.until_complete()
    await world.edit(engine={"maxNumSeqs": 6})
    assert await fewest_ready(world, asyncio.create_task(world.until_complete(timeout_s=100))) == 1


@pytest.mark.timeout(300)
async def test_a_version_that_fails_without_a_spare_gpu_goes_back(world):
    world.operator()
    await world.create(replicas=2, **ONE_GPU)
    await world.until_complete()
    await world.edit(engine={"extraArgs": {"fail_load": "the weights are torn"}})
    # Two failed starts, and the kubelet's back-off between them.
    message = await world.until_condition("Degraded", "True", "RolledBack", timeout_s=150)
    assert "the weights are torn" in message
    assert "change the spec to try again" in message

    def whole(status: dict[str, Any]) -> bool:
        return bool(status["readyReplicas"] == status["replicas"] == 2)

    await world.until(world.status, whole)
    assert "fail_load" not in " ".join(arguments(await world.get(DEPLOYMENT)))
    # Nothing but a spec that asks for something else makes it try again: not the number of replicas …
    await world.scale(1)
    await world.until(world.status, lambda status: status["readyReplicas"] == status["replicas"] == 1)
    assert "fail_load" not in " ".join(arguments(await world.get(DEPLOYMENT)))
    # … but a mended version.
    await world.edit(engine={"extraArgs": {"fail_load": ""}})
    await world.until_condition("Degraded", "False")
    await world.until_complete()
