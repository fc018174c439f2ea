"""The second pod of a deployment takes the first one's start cache, through the deployment's Service."""

from base64 import b64decode
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from dragoman_devcluster.node.context import Directories
from dragoman_kube.kinds import SECRET, SERVICE
from dragoman_kube.objects import Key

pytestmark = pytest.mark.cluster

GRAPH = "vllm/torch_compile_cache/f0/rank_0_0/graph.py"


def cache_of(cluster: Any, pod: dict[str, Any]) -> Path:
    """The directory that is a pod's cache volume on the local cluster's node."""
    return Directories(cluster.dir.resolve(), cluster.dir).volume(pod, "cache")


async def startup_report(pod: dict[str, Any]) -> dict[str, Any]:
    url = f"http://{pod['status']['podIP']}:8000/startupz"
    async with aiohttp.ClientSession() as http, http.get(url) as answer:
        return dict(await answer.json())


async def test_the_second_pod_takes_what_the_first_one_compiled(world: Any, cluster: Any) -> None:
    world.operator()
    await world.create()
    await world.until_complete()
    (first,) = await world.pods()
    assert (await startup_report(first))["start_cache"] == "no_sibling"
    compiled = cache_of(cluster, first) / GRAPH
    compiled.parent.mkdir(parents=True)
    compiled.write_text("compiled = True\n")

    await world.scale(2)
    await world.until(world.status, lambda status: status.get("readyReplicas") == 2)
    (second,) = [pod for pod in await world.pods() if pod["metadata"]["uid"] != first["metadata"]["uid"]]
    assert (await startup_report(second))["start_cache"] == "taken"
    assert (cache_of(cluster, second) / GRAPH).read_text() == "compiled = True\n"

    await world.delete()
    await world.until(lambda: world.get(SECRET, "demo-start-cache"), lambda found: found == {})


async def test_the_secret_follows_a_service_that_was_replaced(world: Any) -> None:
    world.operator()
    await world.create(replicas=0)
    former = await world.until(lambda: world.get(SERVICE, "demo"), bool)
    await world.kube.delete(SERVICE, Key(world.namespace, "demo"), former["metadata"]["uid"])

    async def matches() -> bool:
        service, secret = await world.get(SERVICE, "demo"), await world.get(SECRET, "demo-start-cache")
        if not service or not secret or service["metadata"]["uid"] == former["metadata"]["uid"]:
            return False
        url = b64decode(secret["data"]["url"]).decode()
        owners = [owner["uid"] for owner in secret["metadata"]["ownerReferences"]]
        return (url, owners) == (f"http://{service['spec']['clusterIP']}:8000", [service["metadata"]["uid"]])

    await world.until(matches, bool)
