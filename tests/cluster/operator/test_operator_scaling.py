"""Replicas follow the load, and each has a single writer."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from kubernetes.aio.client import ApiextensionsV1Api, CoreV1Api

from dragoman_kube.kinds import DEPLOYMENT, HPA, POD, SCALED_OBJECT
from dragoman_operator.autoscaling.writes import DELETION_COST
from dragoman_operator.observed.snapshot import TRANSLATION_DEPLOYMENT

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

SLOW = {"device": "cpu", "maxNumSeqs": 2, "extraArgs": {"first_token_s": 1.0}}
"""Two requests at once, each a second long."""
FAST = {"autoscaling-interval-s": 1}
PUBLISHED_S = 90.0
"""Figures that change no decision go to the status once a minute."""
QUICK = {"maxReplicas": 2, "scaleDownStabilizationWindow": "5s"}


async def replicas(world: Any) -> int:
    return int((await world.get(DEPLOYMENT))["spec"]["replicas"])


async def spec_replicas(world: Any) -> int:
    return int((await world.get(TRANSLATION_DEPLOYMENT))["spec"]["replicas"])


def scaling(**fields: Any) -> dict[str, Any]:
    return {"autoscaling": {"minReplicas": 1, **QUICK, **fields}}


async def test_burst_scales_up_and_idle_time_scales_down(world):
    operator = world.operator(**FAST)
    await world.create(engine=SLOW, **scaling())
    await world.until_condition("Available", "True")
    load = world.load((await world.status())["url"])
    async with load.kept_up(12):
        await world.until(world.status, lambda status: status.get("readyReplicas") == 2)
        await load.more(8)  # the new pod gets its share
        assert await spec_replicas(world) == 2
    status = await world.status()
    (up,) = status["scaling"]["changes"]
    assert (up["from"], up["to"]) == (1, 2)
    assert up["rule"] in ("Load", "Backlog")
    assert (status["scaling"]["mode"], status["scaling"]["source"]) == ("Internal", "the pods' own /metrics")
    assert status["scaling"]["timeToReadySeconds"] > 0
    assert (await world.conditions())["MetricsAvailable"]["status"] == "True"
    desired = r'dragoman_scaling_replicas{.*state="desired"'
    assert await operator.metric(desired) == 2
    assert await operator.metric(r'dragoman_scaling_changes_total{.*direction="up"') == 1
    async with load.kept_up(1):
        await world.until(lambda: replicas(world), lambda number: number == 1)
        await world.until(world.pods, lambda pods: len(pods) == 1)
        going = (await world.kube.list(POD, world.namespace, labels="dragoman.io/deployment=demo")).items
        for pod in going:
            await world.until(
                lambda pod=pod: world.get(POD, pod["metadata"]["name"]),
                lambda found: not found or "deletionTimestamp" not in found["metadata"],
            )
    assert load.failed == []
    await world.until(world.status, lambda status: steps(status) == [(2, 1), (1, 2)])
    await world.until(
        world.events, lambda found: {("Normal", "ScaledUp", 1), ("Normal", "ScaledDown", 1)} <= set(found)
    )


async def test_least_busy_pod_is_terminated_and_finishes_its_requests(world):
    world.operator()
    slow = {"device": "cpu", "maxNumSeqs": 8, "extraArgs": {"first_token_s": 10.0}}
    await world.create(engine=slow, replicas=3, rollout={"drainTimeout": "20s"})
    await world.until(world.status, lambda status: status.get("readyReplicas") == 3)
    pods = sorted(await world.pods(), key=lambda pod: pod["metadata"]["creationTimestamp"])
    loads = [world.load(f"http://{pod['status']['podIP']}:8000") for pod in pods]
    async with loads[0].connections() as http, asyncio.TaskGroup() as group:
        for load, requests in zip(loads, (3, 1, 2), strict=True):
            for _ in range(requests):
                group.create_task(load.send(http))
        metrics = [f"{load.url}/metrics" for load in loads]
        await world.until(lambda: running(http, metrics), lambda found: found == [3, 1, 2])
        await world.scale(2)
        left = await world.until(world.pods, lambda found: len(found) == 2)
    costs = {pod["metadata"]["uid"]: pod["metadata"]["annotations"].get(DELETION_COST) for pod in left}
    assert costs == {pods[0]["metadata"]["uid"]: "3", pods[2]["metadata"]["uid"]: "2"}
    assert [(load.answered, load.failed) for load in loads] == [(3, []), (1, []), (2, [])]


async def running(http: aiohttp.ClientSession, urls: list[str]) -> list[int]:
    found = []
    for url in urls:
        async with http.get(url) as answer:
            lines = (await answer.text()).splitlines()
        (line,) = (line for line in lines if line.startswith("vllm:num_requests_running{"))
        found.append(int(float(line.split()[-1])))
    return found


async def test_next_operator_continues_with_replicas_and_state(world):
    first = world.operator("first", **FAST)
    await world.create(**scaling(minReplicas=2))
    await world.until(world.status, lambda status: status.get("readyReplicas") == 2)
    await world.until(world.status, lambda status: "timeToReadySeconds" in status["scaling"])
    before = await world.status()
    generation = (await world.get(DEPLOYMENT))["metadata"]["generation"]
    first.kill()
    second = world.operator("second", **FAST)
    ready = r'dragoman_scaling_replicas{.*state="ready"'
    await world.until(lambda: second.metric(ready), lambda number: number == 2)
    # Nothing else would write a status: there is no load.
    await world.edit(autoscaling={"maxReplicas": 3})
    after = await world.until(
        world.status, lambda status: status["observedGeneration"] > before["observedGeneration"]
    )
    assert after["desiredReplicas"] == 2
    assert after["scaling"]["timeToReadySeconds"] == pytest.approx(
        before["scaling"]["timeToReadySeconds"], abs=1.0
    )
    assert after["scaling"]["changes"] == []
    assert await spec_replicas(world) == 2
    assert (await world.get(DEPLOYMENT))["metadata"]["generation"] == generation


ROUTER = """
import http.server, json, os, pathlib, time

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        assert self.path == "/load?watch=1"
        self.send_response(200)
        self.end_headers()
        while True:
            held = int(pathlib.Path(os.environ["HELD"]).read_text() or 0)
            load = {os.environ["KEY"]: {"queued": held, "oldest_queued_s": 0.1 * held, "in_flight": 0}}
            self.wfile.write(json.dumps({"deployments": load, "draining": False}).encode() + b"\\n")
            time.sleep(0.1)

    def log_message(self, *arguments):
        pass

http.server.ThreadingHTTPServer((os.environ["DRAGOMAN_HOST"], 9091), Handler).serve_forever()
"""
"""A stand-in for a router: it reports the number of queued requests of a file, ten times a second."""


def hold(file: Path, requests: int) -> None:
    file.write_text(str(requests))


@pytest.fixture
async def held(world, api, tmp_path: Path) -> Path:
    """A router pod; the file has the number of its queued requests."""
    file = tmp_path / "held"
    hold(file, 0)
    env = {"HELD": str(file), "KEY": f"{world.namespace}/demo"}
    container = {
        "name": "router",
        "image": "none",
        "command": ["python", "-S", "-c", ROUTER],
        "env": [{"name": name, "value": value} for name, value in env.items()],
    }
    labels = {"app.kubernetes.io/component": "router", "app.kubernetes.io/part-of": "dragoman"}
    body: Any = {"metadata": {"name": "router", "labels": labels}, "spec": {"containers": [container]}}
    await CoreV1Api(api).create_namespaced_pod(world.namespace, body)
    return file


def last_rule(status: dict[str, Any]) -> str | None:
    """The rule behind the last change; the Deployment changes before the status does."""
    changes = status["scaling"]["changes"]
    return changes[0]["rule"] if changes else None


async def test_first_queued_request_scales_from_zero(world, held: Path):
    world.operator(**{"router-namespace": world.namespace})
    await world.create(replicas=0, **scaling(minReplicas=0, idleSeconds=3))
    await world.until(
        world.status,
        lambda status: status.get("scaling", {}).get("signals", {}).get("queuedAtRouters") == 0,
        timeout_s=PUBLISHED_S,
    )
    await world.until(
        world.status,
        lambda status: status["scaling"]["signals"].get("routersNotReporting") == 0,
        timeout_s=PUBLISHED_S,
    )
    assert await replicas(world) == 0
    hold(held, 1)
    began = time.monotonic()
    await world.until(lambda: replicas(world), lambda number: number == 1)
    woken_s = time.monotonic() - began
    print(f"woken after {woken_s:.2f} s")
    assert woken_s < 3  # a tick is 5 s: it was the stream
    await world.until(world.status, lambda status: last_rule(status) == "ScaleFromZero")
    assert await spec_replicas(world) == 1
    hold(held, 0)
    await world.until(lambda: replicas(world), lambda number: number == 0, timeout_s=60)
    await world.until(world.status, lambda status: last_rule(status) == "Idle")
    assert await spec_replicas(world) == 0


def steps(status: dict[str, Any]) -> list[tuple[int, int]]:
    """From how many replicas to how many, the latest first."""
    return [(change["from"], change["to"]) for change in status["scaling"]["changes"]]


async def ticks(world: Any, operator: Any, number: int = 3) -> None:
    """Wait for this number of reconciliations, or of ticks of the autoscaler."""
    last = await operator.metric("dragoman_scaling_evaluation_duration_seconds")
    for _ in range(number):
        await world.until(
            lambda: operator.metric("dragoman_scaling_evaluation_duration_seconds"),
            lambda found, last=last: found != last,
        )
        last = await operator.metric("dragoman_scaling_evaluation_duration_seconds")


async def test_requested_number_is_kept_for_a_window(world):
    world.operator(**FAST)
    await world.create(**scaling())
    await world.until_complete()
    await world.scale(2)  # kubectl scale, or an HPA of a user's
    await world.until(lambda: replicas(world), lambda number: number == 2)
    await world.until(world.status, lambda status: last_rule(status) == "Requested")
    await world.until(lambda: replicas(world), lambda number: number == 1)
    await world.until(lambda: spec_replicas(world), lambda number: number == 1)
    status = await world.until(
        world.status, lambda status: status["scaling"].get("observedSpecReplicas") == 1
    )
    assert steps(status) == [(2, 1), (1, 2)]
    # A client that scales the Deployment itself changes a field of the operator, which restores it.
    await world.change(DEPLOYMENT, {"spec": {"replicas": 2}})
    await world.until(lambda: replicas(world), lambda number: number == 1)


async def test_number_above_the_maximum_is_written_back(world):
    world.operator(**FAST)
    await world.create(**scaling(minReplicas=2))
    await world.until(lambda: spec_replicas(world), lambda number: number == 2)
    generation = (await world.get(TRANSLATION_DEPLOYMENT))["metadata"]["generation"]
    await world.until(world.status, lambda status: status.get("observedGeneration") == generation)
    await world.scale(9)
    await world.until(world.events, lambda found: ("Normal", "RequestLimited", 1) in found)
    # The same number was written less than a minute ago.
    assert await spec_replicas(world) == 9
    assert await replicas(world) == 2


async def test_another_mode_begins_with_the_replicas_that_run(world):
    world.operator(**FAST)
    await world.create(**scaling(minReplicas=2))
    await world.until(lambda: spec_replicas(world), lambda number: number == 2)
    await world.edit(autoscaling=None)
    await world.until(world.status, lambda status: status.get("scaling", {}).get("mode") == "Off")
    assert (await replicas(world), (await world.status())["desiredReplicas"]) == (2, 2)


async def test_minimum_can_be_raised_from_zero_at_zero_replicas(world):
    world.operator(**FAST)
    await world.create(replicas=0, **scaling(minReplicas=0))
    await world.until(world.status, lambda status: status.get("desiredReplicas") == 0)
    await world.edit(autoscaling={"minReplicas": 1})
    await world.until(lambda: spec_replicas(world), lambda number: number == 1)


@pytest.mark.parametrize("mode", ["External", "HPA"])
async def test_operator_follows_the_replicas_of_other_autoscalers(world, mode):
    operator = world.operator(**FAST)
    await world.create(**scaling(mode=mode))
    await world.until_complete()
    for wanted in (2, 1):
        await world.scale(wanted)
        await world.until(lambda: replicas(world), lambda number, wanted=wanted: number == wanted)
        await ticks(world, operator, 2)
        assert await replicas(world) == wanted
    found = await world.get(TRANSLATION_DEPLOYMENT)
    assert found["spec"]["replicas"] == 1
    ours = [entry for entry in found["metadata"]["managedFields"] if entry["manager"] == "dragoman"]
    assert {entry.get("subresource") for entry in ours} == {"status"}
    status = await world.until(world.status, lambda status: steps(status) == [(2, 1), (1, 2)])
    assert {change["rule"] for change in status["scaling"]["changes"]} == {"Spec"}


async def test_hpa_is_created_kept_and_deleted(world):
    world.operator()
    await world.create(**scaling(mode="HPA", targetConcurrency=3))
    made = await world.until(lambda: world.get(HPA), lambda found: found != {})
    assert made["spec"]["scaleTargetRef"]["kind"] == "TranslationDeployment"
    assert "HPA has not reported" in await world.until_condition("ScalingActive", "False", "HPAPending")
    await world.change(HPA, {"spec": {"maxReplicas": 50}})
    await world.until(lambda: world.get(HPA), lambda found: found["spec"]["maxReplicas"] == 2)
    await world.edit(autoscaling={"mode": "Internal", "targetConcurrency": None})
    await world.until(lambda: world.get(HPA), lambda found: found == {})
    await world.until_condition("ScalingActive", "True", "Internal")


async def test_scaled_object_needs_keda(world, api):
    world.operator()
    keda = {"mode": "KEDA", "prometheus": {"url": "http://127.0.0.1:9"}}
    await world.create(replicas=0, **scaling(minReplicas=0, **keda))
    assert "install KEDA" in await world.until_condition("ScalingActive", "False", "KEDANotInstalled")
    async with installed(api, "ScaledObject", "TriggerAuthentication"):
        await world.edit(autoscaling={"maxReplicas": 3})
        made = await world.until(
            lambda: world.get(SCALED_OBJECT),
            lambda found: found != {} and found["spec"]["maxReplicaCount"] == 3,
        )
        assert [trigger["metadata"]["ignoreNullValues"] for trigger in made["spec"]["triggers"]] == [
            "false"
        ] * 3
        await world.until_condition("ScalingActive", "False", "KEDAPending")
        # What KEDA reports later causes no event: its kinds are not watched.
        ready = {"type": "Ready", "status": "True", "reason": "ScaledObjectReady", "message": "it works"}
        await world.change(SCALED_OBJECT, {"status": {"conditions": [ready]}})
        await world.until_condition("ScalingActive", "True", "KEDAScaledObjectReady", timeout_s=40)
        await world.edit(autoscaling={"mode": "Internal", "prometheus": None})
        await world.until(lambda: world.get(SCALED_OBJECT), lambda found: found == {})


@asynccontextmanager
async def installed(api: Any, *kinds: str) -> AsyncIterator[None]:
    """KEDA's kinds, as far as an API server needs them."""
    definitions: Any = ApiextensionsV1Api(api)
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    for kind in kinds:
        version = {"name": "v1alpha1", "served": True, "storage": True}
        version["schema"] = {"openAPIV3Schema": anything}
        names = {
            "kind": kind,
            "plural": f"{kind.lower()}s",
            "singular": kind.lower(),
            "listKind": f"{kind}List",
        }
        spec = {"group": "keda.sh", "scope": "Namespaced", "names": names, "versions": [version]}
        body = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{kind.lower()}s.keda.sh"},
            "spec": spec,
        }
        await definitions.create_custom_resource_definition(body)
    async with asyncio.timeout(20):
        for kind in kinds:
            while True:
                found = await definitions.read_custom_resource_definition(f"{kind.lower()}s.keda.sh")
                if any(c.type == "Established" and c.status == "True" for c in found.status.conditions or ()):
                    break
                await asyncio.sleep(0.05)
    try:
        yield
    finally:
        for kind in kinds:
            with suppress(Exception):
                await definitions.delete_custom_resource_definition(f"{kind.lower()}s.keda.sh")


async def test_unreachable_prometheus_is_reported_and_removes_no_replica(world):
    world.operator(**FAST)
    await world.create(**scaling(minReplicas=2, prometheus={"url": "http://user:secret@127.0.0.1:9"}))
    message = await world.until_condition("MetricsAvailable", "False", "MetricsSourceUnavailable")
    assert message.startswith("http://127.0.0.1:9: cannot be reached: Connection refused")
    await world.until(world.status, lambda status: status.get("readyReplicas") == 2)
    await world.until(world.events, lambda found: ("Warning", "MetricsSourceUnavailable", 1) in found)
    assert "secret" not in json.dumps(await world.status())
    assert "Traceback" not in world.operators[0].log.read_text()
    await world.edit(
        autoscaling={"prometheus": {"url": "http://127.0.0.1:9", "tokenSecretRef": {"name": "no"}}}
    )
    await world.until(
        world.conditions, lambda found: "the Secret no with the token" in found["MetricsAvailable"]["message"]
    )
    await world.edit(autoscaling={"prometheus": None})
    await world.until_condition("MetricsAvailable", "True", "MetricsRead")
