"""Deployments whose replicas sleep: while they are idle, or while another has its turn on the same GPU."""

from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from dragoman_kube.kinds import SECRET

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

GPU = {
    "engine": {"device": "cuda", "maxNumSeqs": 4, "extraArgs": {"wake_s": 1.0}},
    "resources": {"limits": {"nvidia.com/gpu": 1}},
}
SLEEP = {"minReplicas": 0, "maxReplicas": 1, "idle": "Sleep", "idleSeconds": 2}


@pytest.fixture(scope="module")
def cluster(start_cluster: Any) -> Iterator[Any]:
    """A cluster whose node has GPUs, by name: the engines are scripted."""
    with start_cluster(gpus=3) as started:
        yield started


async def metric(http: aiohttp.ClientSession, url: str, name: str) -> float:
    async with http.get(f"{url}/metrics") as answer:
        lines = (await answer.text()).splitlines()
    (line,) = (line for line in lines if line.startswith(f"{name}{{"))
    return float(line.split()[-1])


async def test_the_replica_sleeps_and_wakes_by_requests_through_its_service(world: Any) -> None:
    world.operator(**{"autoscaling-interval-s": 1})
    await world.create(autoscaling=SLEEP, **GPU)
    await world.create("other", autoscaling=SLEEP | {"idle": "Scale"})
    await world.until_condition("Available", "True")
    (pod,) = await world.pods()
    url = f"http://{pod['status']['podIP']}:8000"
    load = world.load((await world.status())["url"])
    async with load.connections() as http:

        async def is_asleep() -> bool:
            return await metric(http, url, "dragoman_engine_asleep") == 1

        for wakes in (1, 2):
            await world.until(is_asleep, bool)
            # The same idle time scales the other deployment to zero.
            await world.until(lambda: world.status("other"), lambda found: found.get("desiredReplicas") == 0)
            assert await is_asleep()
            conditions = await world.conditions()
            assert conditions["Available"]["status"] == conditions["MetricsAvailable"]["status"] == "True"
            async with load.kept_up(12):
                await load.more(24)
            assert await metric(http, url, "dragoman_engine_wakes_total") == wakes
    assert load.failed == []
    status = await world.status()
    assert (status["desiredReplicas"], status["readyReplicas"]) == (1, 1)
    assert status["scaling"].get("changes", []) == []
    assert [found["metadata"]["uid"] for found in await world.pods()] == [pod["metadata"]["uid"]]


async def test_deployments_that_share_a_gpu_are_awake_in_turn(
    world: Any, redis_server: Any, tmp_path: Path
) -> None:
    world.operator(**{"autoscaling-interval-s": 1})
    secret = {
        "metadata": {"name": "valkey", "namespace": world.namespace},
        "stringData": {"url": redis_server.url},
    }
    await world.kube.create(SECRET, {"apiVersion": "v1", "kind": "Secret", **secret})
    # Engines that would be awake at the same time fail, as on a real GPU.
    engine = {"device": "cuda", "maxNumSeqs": 4, "extraArgs": {"memory": str(tmp_path / "gpu")}}
    shared = {
        "engine": engine,
        "resources": GPU["resources"],
        "autoscaling": SLEEP | {"idleSeconds": 600, "turnsSecretRef": {"name": "valkey"}},
        "podTemplate": {
            "env": [
                {"name": "DRAGOMAN_ENGINE", "value": "scripted"},
                {"name": "DRAGOMAN_TURNS_DEVICE", "value": "GPU-1"},
            ]
        },
    }
    names = ("demo", "other", "third")
    for name in names:
        await world.create(name, **shared)
    for name in names:
        await world.until_condition("Available", "True", name=name)
    loads = [world.load((await world.status(name))["url"]) for name in names]
    async with AsyncExitStack() as stack:
        for load in loads:
            await stack.enter_async_context(load.kept_up(1))
        for load in loads:
            await load.more(6)
    assert [load.failed for load in loads] == [[], [], []]
    async with loads[0].connections() as http:
        urls = [f"http://{pod['status']['podIP']}:8000" for name in names for pod in await world.pods(name)]
        asleep = [await metric(http, url, "dragoman_engine_asleep") for url in urls]
        wakes = [await metric(http, url, "dragoman_engine_wakes_total") for url in urls]
    assert sum(asleep) >= 2
    assert sum(wakes) >= 2
