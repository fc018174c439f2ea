"""The router as the chart installs it, with the rights that the chart gives it; a real API server enforces them."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

CHART = Path(__file__).parents[3] / "charts/dragoman"
CRD = "translationdeployments.dragoman.io"
REQUEST = {"text": "Good morning.", "source_lang": "en", "target_lang": "de"}

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]


@pytest.mark.parametrize("scope", ["cluster", "namespaces"])
def test_a_request_is_held_wakes_a_replica_and_is_answered(fresh: Any, until: Any, scope: str) -> None:
    """The router reads deployments and slices, the operator finds the router and what it holds."""
    system, namespace = f"{scope}-routed-system", fresh.make_namespace(f"{scope}-routed")
    place = ["--namespace", system]
    values = ["--set", "router.enabled=true", "--set", "router.replicas=1"]
    if scope == "namespaces":
        values += ["--set", f"watchNamespaces={{{namespace}}}"]
    if CRD in [item.metadata.name for item in fresh.definitions.list_custom_resource_definition().items]:
        values += ["--set", "crds.install=false"]
    fresh.helm(
        "install", "dragoman", str(CHART), *place, *values, "--create-namespace", "--wait", "--timeout=90s"
    )
    address = until(
        lambda: fresh.local_address("dragoman-router", system), "the router's Service has an address"
    )

    fresh.create(
        namespace,
        "demo",
        languages=[{"source": "en", "targets": ["de"]}],
        autoscaling={"minReplicas": 0, "maxReplicas": 1},
        podTemplate={"env": [{"name": "DRAGOMAN_ENGINE", "value": "scripted"}]},
    )
    until(lambda: known(address), "the router knows of the pair")
    answer = httpx.post(f"http://{address}/translate", json=REQUEST, timeout=90)
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-dragoman-deployment"] == f"{namespace}/demo"
    assert "queued=" in answer.headers["x-dragoman-route"]

    checked = check(fresh, address, namespace)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert checked.stdout.startswith(f"{namespace}/demo: en to de: ")

    fresh.create(
        namespace,
        "broken",
        model={"uri": "file:///no-such-model", "promptFamily": "chatml-generic"},
        replicas=1,
    )
    until(lambda: degraded(fresh.read(namespace, "broken")), "the model is not found", timeout_s=90)
    checked = check(fresh, address, namespace)
    assert checked.returncode == 1
    broken, *reasons, demo = checked.stdout.splitlines()
    assert broken == f"{namespace}/broken: no response within the timeout", checked.stdout
    assert any("Degraded is True" in each for each in reasons), checked.stdout
    assert demo.startswith(f"{namespace}/demo: en to de: ")
    fresh.helm("uninstall", "dragoman", *place, "--wait")


def test_an_upgrade_exposes_no_router_without_keys(fresh: Any) -> None:
    exposed = ["--set", "router.service.type=NodePort"]
    place = ["--namespace", "exposed-system"]
    values = ["--set", "router.enabled=true,crds.install=false,replicas=0,rbac.userRoles=false"]
    values += ["--set", "watchNamespaces={exposed-system}"]
    fresh.helm("install", "dragoman", str(CHART), *place, *values, "--create-namespace")
    refusal = fresh.helm_fails("upgrade", "dragoman", str(CHART), *place, *values, *exposed)
    assert "this upgrade exposes the router outside the cluster without API keys" in refusal

    anonymous = ["--set", "router.allowAnonymous=true"]
    fresh.helm("upgrade", "dragoman", str(CHART), *place, *values, *exposed, *anonymous)
    # It was exposed without keys before, as by an older chart: the upgrade changes nothing about that.
    fresh.helm("upgrade", "dragoman", str(CHART), *place, *values, *exposed)
    assert "--keys-dir" not in fresh.helm("get", "manifest", "dragoman", *place)
    fresh.helm("uninstall", "dragoman", *place)


def known(address: str) -> list[Any]:
    """The source languages that the router lists."""
    answer = httpx.get(f"http://{address}/languages").raise_for_status()
    listed: list[Any] = answer.json()
    return listed


def check(fresh: Any, address: str, namespace: str) -> subprocess.CompletedProcess[str]:
    """What the pod of `helm test` runs; the local cluster has no names of Services."""
    command = [
        sys.executable,
        "-m",
        "dragoman",
        "check",
        f"--url=http://{address}",
        f"--namespaces={namespace}",
    ]
    environment = {**os.environ, "KUBECONFIG": str(fresh.kubeconfig)}
    return subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment)


def degraded(item: dict[str, Any]) -> bool:
    """Whether the object's condition Degraded is true."""
    conditions = item.get("status", {}).get("conditions", [])
    return any(each["type"] == "Degraded" and each["status"] == "True" for each in conditions)
