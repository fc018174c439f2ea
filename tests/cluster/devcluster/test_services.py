"""Services on the local cluster: a loopback address each, leading to the pods that are ready."""

import asyncio
from typing import Any

import aiohttp
import pytest
from kubernetes.aio.client import DiscoveryV1Api

pytestmark = pytest.mark.cluster


async def fetch(address, path=""):
    """The response through a Service; an empty string if the connection is refused."""
    try:
        async with aiohttp.ClientSession() as session, session.get(f"http://{address}/{path}") as response:
            return await response.text()
    except (aiohttp.ClientConnectionError, ConnectionError):
        return ""


async def test_reaches_every_ready_pod_and_no_other(workloads, server):
    address = await workloads.expose("web")
    await workloads.until(lambda: fetch(address), lambda answer: answer == "")
    await workloads.deploy("web", server(), replicas=2)
    await workloads.all_ready("web")
    names = {pod.metadata.name for pod in await workloads.pods("web")}
    seen = set()

    async def all_seen():
        seen.add(await fetch(address))
        return seen - {""}

    await workloads.until(all_seen, lambda found: found == names)
    await workloads.patch("web", replicas=0)
    await workloads.until(lambda: fetch(address), lambda answer: answer == "")


async def test_no_request_is_lost_while_pods_are_replaced(workloads, server):
    address = await workloads.expose("web")
    polite = {"preStop": {"sleep": {"seconds": 1}}}
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    await workloads.deploy("web", server(lifecycle=polite), replicas=1, strategy=strategy)
    await workloads.all_ready("web")
    await workloads.until(lambda: fetch(address), bool)
    env = {"containers": [{"name": "main", "env": [{"name": "VERSION", "value": "2"}]}]}
    await workloads.patch("web", template={"spec": env})

    async def answer():
        response = await fetch(address)
        assert response, "the Service did not answer"
        return await fetch(address, "VERSION")

    await workloads.until(answer, lambda version: version == "2")
    await workloads.all_ready("web")


async def test_endpoint_slices_agree(workloads, server):
    await workloads.expose("web")
    await workloads.deploy("web", server(), replicas=1)
    await workloads.all_ready("web")
    [pod] = await workloads.pods("web")

    async def ready():
        discovery: Any = DiscoveryV1Api(workloads.api)
        found = await discovery.list_namespaced_endpoint_slice(
            workloads.namespace, label_selector="kubernetes.io/service-name=web"
        )
        return [
            (item.ports, end) for item in found.items for end in item.endpoints or () if end.conditions.ready
        ]

    [(ports, endpoint)] = await workloads.until(ready, lambda found: len(found) == 1)
    assert endpoint.addresses == [pod.status.pod_ip]
    assert (endpoint.node_name, endpoint.target_ref.name) == ("local", pod.metadata.name)
    assert [port.port for port in ports] == [8000]


async def test_a_dead_endpoint_is_passed_over(workloads, server):
    """A pod whose process is gone but not yet noticed does not cost a request."""
    address = await workloads.expose("web")
    lasting = {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 1, "failureThreshold": 100}
    await workloads.deploy("web", server(readinessProbe=lasting), replicas=1)
    await workloads.run(
        "deaf",
        {
            "name": "main",
            "image": "none",
            "command": ["sleep", "60"],
            "ports": [{"name": "http", "containerPort": 8000}],
        },
    )
    await workloads.core.patch_namespaced_pod(
        "deaf", workloads.namespace, {"metadata": {"labels": {"app": "web"}}}
    )
    await workloads.all_ready("web")
    await workloads.until(lambda: fetch(address), bool)
    answers = await asyncio.gather(*(fetch(address) for _ in range(6)))
    assert all(answers)
