"""`helm upgrade` from earlier charts, with the operators, routers and engines of their commits, while requests run."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import tarfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.support.load import Load

from dragoman_devcluster.servers.kube_apiserver import BINARIES, find_binaries

ROOT = Path(__file__).parents[3]
CRD = "translationdeployments.dragoman.io"
SYSTEM = ["--namespace", "dragoman-system"]
ENGINE = "dragoman.io/deployment=demo,app.kubernetes.io/component=engine"
OPERATOR = "app.kubernetes.io/name=dragoman,app.kubernetes.io/component=operator"

FORMER = {
    "7a7dd75": "before fields, flags and conditions were renamed",
    "e231ce8": "before kopf's indices were the cache of all kinds",
    "ab17be0": "before statuses had sources of templates",
}
"""Commits whose charts are upgraded."""

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]


@pytest.fixture(scope="session")
def api_kind() -> str:
    """A real API server where there is one: it also enforces the roles of both charts."""
    missing = set(BINARIES) - set(find_binaries(os.environ))
    return "embedded" if missing else "kube-apiserver"


@pytest.fixture(params=FORMER)
def former(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The checkout of a commit, with a chart whose pods run its code."""
    archive = subprocess.run(
        ["git", "archive", "--format=tar", request.param], cwd=ROOT, capture_output=True, timeout=60
    )
    if archive.returncode:
        pytest.skip(f"no commit {request.param}: {archive.stderr.decode().strip()}")
    checkout = tmp_path / "former"
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(checkout, filter="data")
    for template in (checkout / "charts/dragoman/templates").rglob("deployment.yaml"):
        text = template.read_text()
        command = "          command: [dragoman]\n"
        variable = f"          env: [{{name: PYTHONPATH, value: {python_path(checkout)!r}}}]\n"
        assert command in text
        template.write_text(text.replace(command, command + variable))
    return checkout


def python_path(checkout: Path) -> str:
    return ":".join(str(path) for path in sorted(checkout.glob("*/src")))


@pytest.fixture
def clean(fresh: Any, until: Any) -> Iterator[Any]:
    """The cluster, without the release and the CRD afterwards."""
    yield fresh
    fresh.helm("uninstall", "dragoman", *SYSTEM, "--wait")
    fresh.definitions.delete_custom_resource_definition(CRD)
    until(lambda: not pods(fresh, "default", ENGINE), "the engine pods are gone")
    until(
        lambda: (
            CRD
            not in [
                found.metadata.name for found in fresh.definitions.list_custom_resource_definition().items
            ]
        ),
        "the CRD is gone",
    )


def pods(fresh: Any, namespace: str, selector: str) -> dict[str, Any]:
    """Pods that are not being deleted, by their uid."""
    found = fresh.core.list_namespaced_pod(namespace, label_selector=selector).items
    return {pod.metadata.uid: pod for pod in found if pod.metadata.deletion_timestamp is None}


def source(fresh: Any) -> str:
    """Digest of what the pods' template was made of, which the new operator writes."""
    status = fresh.read("default", "demo").get("status", {})
    return str(status.get("rollout", {}).get("lastReadySource", ""))


def complete(fresh: Any, replicas: int) -> bool:
    """Whether the status is that of the spec, and all pods run it."""
    found = fresh.read("default", "demo")
    status = found.get("status", {})
    conditions = {each["type"]: each["reason"] for each in status.get("conditions", [])}
    return (
        status.get("observedGeneration") == found["metadata"]["generation"]
        and conditions.get("Progressing") == "Complete"
        and status.get("readyReplicas") == replicas
    )


async def test_an_upgrade_keeps_pods_and_requests(clean: Any, until: Any, former: Path) -> None:
    fresh = clean
    waiting = [*SYSTEM, "--wait", "--timeout=90s"]
    install = ["install", "dragoman", str(former / "charts/dragoman"), *waiting, "--create-namespace"]
    await asyncio.to_thread(partial(fresh.helm, *install, "--set=router.enabled=true"))
    env = [
        {"name": "DRAGOMAN_ENGINE", "value": "scripted"},
        {"name": "PYTHONPATH", "value": python_path(former)},
    ]
    languages = [{"source": "en", "targets": ["de"]}]
    fresh.create("default", "demo", replicas=2, languages=languages, podTemplate={"env": env})
    await asyncio.to_thread(until, lambda: complete(fresh, 2), "two engines are ready", 90)
    before = pods(fresh, "default", ENGINE)
    assert not any(pod.spec.containers[0].resources.requests for pod in before.values())
    address = partial(fresh.local_address, "dragoman-router", "dragoman-system")
    load = Load(f"http://{await asyncio.to_thread(until, address, 'the router has an address')}")
    old_operators = pods(fresh, "dragoman-system", OPERATOR)
    upgrade = ["upgrade", "dragoman", str(ROOT / "charts/dragoman"), *waiting, "--reset-then-reuse-values"]
    async with load.kept_up(4):
        await load.more(20)
        await asyncio.to_thread(partial(fresh.helm, *upgrade))
        schema = fresh.definitions.read_custom_resource_definition(CRD).spec.versions[0].schema
        rollout = schema.open_apiv3_schema.properties["status"].properties["rollout"]
        assert "lastReadySource" in rollout.properties, "the CRD was upgraded"
        await asyncio.to_thread(until, lambda: source(fresh), "the new operator wrote the status")
        await asyncio.to_thread(until, lambda: complete(fresh, 2), "nothing is left to do")
        await load.more(50)
        assert old_operators.keys().isdisjoint(pods(fresh, "dragoman-system", OPERATOR))
        after = pods(fresh, "default", ENGINE)
        assert after.keys() == before.keys(), "every engine pod stayed"
        assert all(pod.status.container_statuses[0].restart_count == 0 for pod in after.values())

        # The next change brings the template of the new operator.
        fresh.edit("default", "demo", podTemplate={"env": env[:1]})
        await asyncio.to_thread(until, lambda: complete(fresh, 2), "the edit is rolled out", 90)
        new = pods(fresh, "default", ENGINE)
        assert before.keys().isdisjoint(new)
        assert all(pod.spec.containers[0].resources.requests for pod in new.values())
        await load.more(50)
    assert load.failed == []
