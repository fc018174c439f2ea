"""The life of a release on a real cluster, step by step, with requests under way that may not fail."""

import json
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from kubernetes import client
from tests.support.fresh import GROUP, PLURAL, VERSION, found_or_none, until
from tests.support.release import ENGINE, OBJECTS, OPERATOR, RELEASE, ROUTER, START_S, SYSTEM, World

from dragoman import sentences
from dragoman_kube.quantity import parse

ROOT = Path(__file__).parents[2]
DEMO_CORES = 4
"""The demo has two engines that request a core each, beside operator, routers and what the node runs."""


def test_router_translates_as_the_model_does(world: World, note: Any) -> None:
    world.create("demo")
    world.until_complete(1, "the first engine")
    wanted = sentences.read(ROOT / "examples/sentences.txt")
    with httpx.Client(timeout=60) as http:
        answers = [http.post(f"{world.url}/translate", json=each.request) for each in wanted]
    assert [answer.text for answer in answers if answer.status_code != 200] == []
    if world.engine == "scripted":
        note(f"{len(wanted)} sentences answered; a scripted engine does not translate")
        return
    exact = sum(
        answer.json()["translation"] == each.expected for answer, each in zip(answers, wanted, strict=True)
    )
    note(f"{exact} of {len(wanted)} sentences exactly as expected")
    assert exact >= 0.95 * len(wanted)


def test_chart_test_is_green(world: World) -> None:
    output = world.fresh.helm("test", RELEASE, f"--namespace={SYSTEM}", "--logs", "--timeout=3m")
    assert f"{OBJECTS}/demo: en to de: " in output
    assert re.search(r"Phase:\s+Succeeded", output), output


def test_chart_test_is_red_with_the_reason_where_a_model_is_missing(world: World, note: Any) -> None:
    spec = {"model": {"uri": "file:///no-such-model", "promptFamily": "chatml-generic"}, "podTemplate": {}}
    world.create("broken", **spec)
    degraded = until_degraded(world, "broken", 300)
    assert "/no-such-model" in degraded
    output = world.fresh.helm_fails("test", RELEASE, f"--namespace={SYSTEM}", "--logs", "--timeout=3m")
    broken, *reasons = re.findall(rf"^(?:{OBJECTS}/broken: .*|    \w+ is .*)$", output, re.M)
    assert any("Degraded is True" in each and "/no-such-model" in each for each in reasons), output
    assert f"{OBJECTS}/demo: en to de: " in output
    note("helm test with a missing model: " + " | ".join(each.strip() for each in (broken, *reasons)))
    delete(world, "broken")


def test_a_registry_of_models_that_does_not_answer_is_named_within_30_s(world: World, note: Any) -> None:
    spec = {
        "model": {"uri": "oci://127.0.0.1:9/model:1", "promptFamily": "chatml-generic"},
        "podTemplate": {},
    }
    world.create("unpulled", **spec)
    degraded = until_degraded(world, "unpulled", 30)
    note(f"a registry that does not answer: {degraded}")
    assert "127.0.0.1:9/model:1" in degraded
    delete(world, "unpulled")


def until_degraded(world: World, name: str, timeout_s: float) -> str:
    """The message of an object's condition Degraded once that is True."""

    def message() -> str:
        found = world.fresh.conditions(OBJECTS, name).get("Degraded", {})
        return found["message"] if found.get("status") == "True" else ""

    return until(message, f"{name} is Degraded", timeout_s)


def delete(world: World, name: str) -> None:
    """Delete an object and wait until its pods are deleted."""
    world.fresh.objects.delete_namespaced_custom_object(GROUP, VERSION, OBJECTS, PLURAL, name)
    pods = ENGINE.replace("=demo", f"={name}")
    until(lambda: not world.fresh.pods(OBJECTS, pods), f"the pods of {name} are deleted", 120)


def test_edit_replaces_the_pod_and_loses_nothing(world: World) -> None:
    before = world.engines()
    with world.under_load(2):
        world.edit(engine={"maxNumSeqs": 8})
        world.until_complete(1, "an edit of the engine, rolled out")
    (pod,) = world.engines().values()
    assert pod.metadata.uid not in before
    arguments = pod.spec.containers[0].args
    assert arguments[arguments.index("--max-num-seqs") + 1] == "8"


def test_scale_up_and_down_loses_nothing(world: World) -> None:
    with world.under_load(2):
        world.scale(2)
        world.until_complete(2, "scale from 1 to 2")
        world.scale(1)
        world.until_complete(1, "scale from 2 to 1")


def test_restarts_of_routers_and_operator_lose_nothing(world: World) -> None:
    before = world.engines()
    with world.under_load(2):
        world.restart(ROUTER)
        world.restart(OPERATOR)
        world.annotate("restarted")
    assert world.engines().keys() == before.keys()


def test_drain_of_a_node_loses_nothing(world: World, note: Any) -> None:
    """`kubectl drain`, as far as Dragoman's pods go: its evictions, one after the other, refused by budgets."""
    world.scale(2)
    world.until_complete(2, "a second engine for the drain")
    nodes = {pod.spec.node_name for pod in world.engines().values()}
    node = min(nodes)
    workers = [each for each in world.fresh.core.list_node().items if not each.spec.unschedulable]
    alone = len([each for each in workers if not has_taint(each)]) < 2
    if alone:
        note("one node takes pods: its pods are evicted as by a drain, and it is not cordoned")
    else:
        world.fresh.core.patch_node(node, {"spec": {"unschedulable": True}})
    refused = 0
    try:
        with world.under_load(2):
            for namespace, selector in ((OBJECTS, ENGINE), (SYSTEM, ROUTER)):
                on_node = {
                    uid: pod
                    for uid, pod in world.fresh.pods(namespace, selector).items()
                    if pod.spec.node_name == node
                }
                for pod in on_node.values():
                    refused += evict(world, pod)
                world.until_replaced(namespace, selector, on_node, 2, START_S)
            world.until_complete(2, "the drain is over")
    finally:
        if not alone:
            world.fresh.core.patch_node(node, {"spec": {"unschedulable": None}})
    note(f"{refused} evictions were refused by a PodDisruptionBudget at first")
    world.scale(1)
    world.until_complete(1, "scale from 2 to 1 after the drain")


def has_taint(node: Any) -> bool:
    """Whether a node takes no pods without tolerations."""
    return any(taint.effect in ("NoSchedule", "NoExecute") for taint in node.spec.taints or ())


def evict(world: World, pod: Any) -> int:
    """Evict a pod, and again while a budget refuses it; 1 where one did."""
    place = (pod.metadata.name, pod.metadata.namespace)
    refusals = 0

    def accepted() -> bool:
        nonlocal refusals
        body = client.V1Eviction(metadata=client.V1ObjectMeta(name=place[0], namespace=place[1]))
        try:
            world.fresh.core.create_namespaced_pod_eviction(*place, body)
        except client.ApiException as error:
            if error.status != 429:
                raise
            refusals = 1
            return False
        return True

    until(accepted, f"{place[0]} may be evicted", 600)
    return refusals


SCALING = {
    "minReplicas": 1,
    "maxReplicas": 2,
    "targetConcurrency": 2,
    "scaleDownStabilizationWindow": "10s",
}


@pytest.mark.parametrize("mode", ["Internal", "HPA", "KEDA"])
def test_autoscaler_follows_the_load(world: World, mode: str, needs_api: Any, note: Any) -> None:
    scaling = SCALING | {"mode": mode}
    if mode == "HPA":
        needs_api("custom.metrics.k8s.io", "HPA")
    if mode == "KEDA":
        needs_api("keda.sh", "KEDA")
        if not world.prometheus:
            note("skipped: KEDA: no PROMETHEUS=URL was given")
            pytest.skip("KEDA: no PROMETHEUS=URL was given")
    world.edit(autoscaling=scaling)
    until(
        lambda: world.fresh.conditions(OBJECTS, "demo").get("ScalingActive", {}).get("status") == "True",
        f"{mode} is active",
        300,
    )
    with world.under_load(8):
        world.until_replicas(2, f"{mode}: 1 to 2")
    world.until_replicas(1, f"{mode}: 2 to 1")
    world.edit(autoscaling={"mode": "Off"})
    until(lambda: world.status().get("scaling", {}).get("mode") == "Off", "autoscaling is off", 60)


def test_upgrade_keeps_the_engines_and_loses_nothing(world: World) -> None:
    before = world.engines()
    with world.under_load(2):
        world.fresh.helm(
            "upgrade", RELEASE, str(ROOT / "charts/dragoman"), f"--namespace={SYSTEM}", "--wait", "--timeout=5m",
            "--reset-then-reuse-values", "--set=logLevel=debug,replicas=2",
        )  # fmt: skip
        until(lambda: len(world.fresh.pods(SYSTEM, OPERATOR)) == 2, "two operators", 60)
        world.annotate("upgraded")
    assert world.engines().keys() == before.keys()


def test_demo_runs_with_the_release(world: World, note: Any) -> None:
    cores = sum(float(parse(node.status.allocatable["cpu"])) for node in world.fresh.core.list_node().items)
    reason = "a scripted engine does not translate" if world.engine == "scripted" else ""
    if cores < DEMO_CORES:
        reason = reason or f"the cluster has {cores:g} cores, and it needs {DEMO_CORES}"
    if reason:
        note(f"skipped: dragoman demo: {reason}")
        pytest.skip(reason)
    command = [sys.executable, "-m", "dragoman", "demo", "--kubeconfig", str(world.fresh.kubeconfig)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["lost"] == 0


def test_deleted_object_leaves_nothing(world: World) -> None:
    world.fresh.objects.delete_namespaced_custom_object(GROUP, VERSION, OBJECTS, PLURAL, "demo")
    left = (
        world.fresh.core.list_namespaced_pod,
        world.fresh.core.list_namespaced_service,
        world.fresh.apps.list_namespaced_deployment,
        client.PolicyV1Api(world.fresh.api).list_namespaced_pod_disruption_budget,
        client.NetworkingV1Api(world.fresh.api).list_namespaced_network_policy,
    )
    until(lambda: not any(each(OBJECTS).items for each in left), "all children are deleted", 180)


def pods_but_hooks(world: World) -> list[Any]:
    """The pods of the release; helm leaves those of its tests, whose logs say why one failed."""
    pods = world.fresh.core.list_namespaced_pod(SYSTEM).items
    return [pod for pod in pods if "helm.sh/hook" not in (pod.metadata.annotations or {})]


def test_uninstall_leaves_the_crd_alone(world: World) -> None:
    world.fresh.helm("uninstall", RELEASE, f"--namespace={SYSTEM}", "--wait", "--timeout=3m")
    until(lambda: not pods_but_hooks(world), "the release's pods are deleted", 180)
    lease = partial(client.CoordinationV1Api(world.fresh.api).read_namespaced_lease, RELEASE, SYSTEM)
    until(lambda: found_or_none(lease) is None, "the Lease is deleted", 60)
    assert world.fresh.definitions.read_custom_resource_definition(f"{PLURAL}.{GROUP}")
