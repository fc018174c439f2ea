"""A deployment whose replica sleeps while it is idle, instead of being scaled to zero."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

GPU = {
    "engine": {"device": "cuda", "maxNumSeqs": 4, "extraArgs": {"wake_s": 1.0}},
    "resources": {"limits": {"nvidia.com/gpu": 1}},
}
SLEEP = {"minReplicas": 0, "maxReplicas": 1, "idle": "Sleep", "idleSeconds": 2}


@pytest.fixture(scope="module")
def cluster(start_cluster: Any) -> Iterator[Any]:
    """A cluster whose node has a GPU, by name: the engines are scripted."""
    with start_cluster(gpus=1) as started:
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
