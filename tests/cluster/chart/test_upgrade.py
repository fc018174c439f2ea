"""`helm upgrade` to another release of the operator and the router, while requests run."""

import asyncio
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.support.load import Load

from dragoman_devcluster.servers.kube_apiserver import BINARIES, find_binaries

CHART = str(Path(__file__).parents[3] / "charts/dragoman")
CRD = "translationdeployments.dragoman.io"
SYSTEM = ["--namespace", "dragoman-system"]
ENGINE = "dragoman.io/deployment=demo,app.kubernetes.io/component=engine"
OPERATOR = "app.kubernetes.io/name=dragoman,app.kubernetes.io/component=operator"
ROUTER = "app.kubernetes.io/name=dragoman,app.kubernetes.io/component=router"

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]


@pytest.fixture(scope="session")
def api_kind() -> str:
    """A real API server where there is one: it also enforces the chart's roles."""
    missing = set(BINARIES) - set(find_binaries(os.environ))
    return "embedded" if missing else "kube-apiserver"


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


def is_replaced(fresh: Any, selector: str, old: dict[str, Any]) -> bool:
    return old.keys().isdisjoint(pods(fresh, "dragoman-system", selector))


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


async def test_an_upgrade_keeps_pods_and_requests(clean: Any, until: Any) -> None:
    fresh = clean
    waiting = [*SYSTEM, "--wait", "--timeout=90s", "--set=router.enabled=true"]
    await asyncio.to_thread(partial(fresh.helm, "install", "dragoman", CHART, *waiting, "--create-namespace"))
    env = [{"name": "DRAGOMAN_ENGINE", "value": "scripted"}]
    languages = [{"source": "en", "targets": ["de"]}]
    fresh.create("default", "demo", replicas=2, languages=languages, podTemplate={"env": env})
    await asyncio.to_thread(until, lambda: complete(fresh, 2), "two engines are ready", 90)
    before = pods(fresh, "default", ENGINE)
    address = partial(fresh.local_address, "dragoman-router", "dragoman-system")
    load = Load(f"http://{await asyncio.to_thread(until, address, 'the router has an address')}")
    old_operators, old_routers = (pods(fresh, "dragoman-system", each) for each in (OPERATOR, ROUTER))
    next_release = [f"--set={part}podAnnotations.release=next" for part in ("", "router.")]
    async with load.kept_up(4):
        await load.more(20)
        await asyncio.to_thread(partial(fresh.helm, "upgrade", "dragoman", CHART, *waiting, *next_release))
        for selector, old in ((OPERATOR, old_operators), (ROUTER, old_routers)):
            replaced = partial(is_replaced, fresh, selector, old)
            await asyncio.to_thread(until, replaced, f"{selector} is replaced")
        await asyncio.to_thread(until, lambda: complete(fresh, 2), "nothing is left to do")
        await load.more(50)
        after = pods(fresh, "default", ENGINE)
        assert after.keys() == before.keys(), "every engine pod stayed"
        assert all(pod.status.container_statuses[0].restart_count == 0 for pod in after.values())

        fresh.edit("default", "demo", engine={"maxNumSeqs": 7})
        await asyncio.to_thread(until, lambda: complete(fresh, 2), "the edit is rolled out", 90)
        new = pods(fresh, "default", ENGINE)
        assert before.keys().isdisjoint(new)
        await load.more(50)
    assert load.failed == []
