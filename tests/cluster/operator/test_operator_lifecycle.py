"""From apply to a translation, through edits, to nothing."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from dragoman_kube.kinds import DEPLOYMENT, HPA, NETWORK_POLICY, SERVICE, SERVICE_ACCOUNT, Kind
from dragoman_operator.observed.snapshot import CHILD_KINDS, TRANSLATION_DEPLOYMENT

pytestmark = pytest.mark.cluster

CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")

CHILDREN = tuple(kind for kind in CHILD_KINDS if kind is not HPA)
"""Of an object that no HPA scales."""


def arguments(deployment: dict[str, Any]) -> list[str]:
    found: list[str] = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    return found


def fetch_arguments(deployment: dict[str, Any]) -> list[str]:
    init = deployment["spec"]["template"]["spec"].get("initContainers") or ()
    return [argument for container in init for argument in container["args"]]


async def translated(url: str) -> Any:
    request = {"text": "Good morning.", "source_lang": "en", "target_lang": "de"}
    async with aiohttp.ClientSession() as http, http.post(f"{url}/translate", json=request) as answer:
        assert answer.status == 200, await answer.text()
        return (await answer.json())["translation"]


async def test_create_serves_and_delete_leaves_nothing(world):
    world.operator()
    await world.create()
    message = await world.until_condition("Available", "True")
    assert message == "1 of 1 replicas are ready"
    await world.until_complete()
    owner = (await world.get(TRANSLATION_DEPLOYMENT))["metadata"]
    for kind in CHILDREN:
        (reference,) = (await world.get(kind))["metadata"]["ownerReferences"]
        assert (reference["uid"], reference["controller"]) == (owner["uid"], True)
    # kopf keeps its own notes in annotations and finalizers where it is let.
    assert "finalizers" not in owner
    assert "annotations" not in owner
    status = await world.status()
    assert status["observedGeneration"] == owner["generation"]
    assert (status["replicas"], status["readyReplicas"], status["desiredReplicas"]) == (1, 1, 1)
    assert await translated(status["url"])

    await world.delete()
    for kind in (TRANSLATION_DEPLOYMENT, *CHILDREN):
        await world.until(lambda kind=kind: world.get(kind), lambda found: found == {})
    await world.until(world.pods, lambda pods: pods == [])


async def test_edit_of_the_engine_replaces_pods_without_a_gap(world):
    world.operator()
    await world.create()
    await world.until_complete()
    (before,) = await world.pods()
    await world.edit(engine={"maxNumSeqs": 6})
    gaps = 0

    async def looked() -> str:
        nonlocal gaps
        gaps += (await world.status()).get("readyReplicas", 0) == 0
        return str((await world.conditions())["Progressing"]["reason"])

    await world.until(looked, lambda reason: reason != "Complete")
    await world.until_complete()
    (after,) = await world.pods()
    assert after["metadata"]["name"] != before["metadata"]["name"]
    assert "6" in after["spec"]["containers"][0]["args"]
    assert gaps == 0


GROUPS: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "model": (
        {"model": {"uri": "hf://org/model", "revision": "abc"}},
        DEPLOYMENT,
        lambda found: {"hf://org/model", "abc"} <= set(fetch_arguments(found)),
    ),
    "languages": (
        {"languages": [{"source": "fr", "targets": ["en"]}]},
        DEPLOYMENT,
        lambda found: '[{"source":"fr","targets":["en"]}]' in arguments(found),
    ),
    "engine": (
        {"engine": {"kvCacheMemory": "1Gi", "extraArgs": {"seed": 1}}},
        DEPLOYMENT,
        lambda found: "1073741824" in arguments(found) and '{"seed":1}' in arguments(found),
    ),
    "resources": (
        {"resources": {"limits": {"memory": "2048Mi", "cpu": "0.5"}}},
        DEPLOYMENT,
        lambda found: "limits" in found["spec"]["template"]["spec"]["containers"][0]["resources"],
    ),
    "image": (
        {"image": "engine:mine", "imagePullPolicy": "Always", "imagePullSecrets": [{"name": "registry"}]},
        DEPLOYMENT,
        lambda found: found["spec"]["template"]["spec"]["containers"][0]["image"] == "engine:mine",
    ),
    "rollout": (
        {"rollout": {"surge": "Never", "drainTimeout": "9s"}},
        DEPLOYMENT,
        lambda found: found["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 1,
    ),
    "podTemplate": (
        {"podTemplate": {"labels": {"team": "l10n"}, "tolerations": [{"operator": "Exists"}]}},
        DEPLOYMENT,
        lambda found: found["spec"]["template"]["metadata"]["labels"].get("team") == "l10n",
    ),
    "service": (
        {"service": {"annotations": {"example.com/a": "b"}}},
        SERVICE,
        lambda found: found["metadata"]["annotations"].get("example.com/a") == "b",
    ),
    "networkPolicy": (
        {"networkPolicy": {"from": [{"podSelector": {}}]}},
        NETWORK_POLICY,
        lambda found: {"podSelector": {}} in found["spec"]["ingress"][0].get("from", ()),
    ),
    "no networkPolicy": ({"networkPolicy": {"enabled": False}}, NETWORK_POLICY, lambda found: found == {}),
    "autoscaling": (
        {"autoscaling": {"mode": "External", "minReplicas": 0, "maxReplicas": 2}},
        TRANSLATION_DEPLOYMENT,
        lambda found: any(c["type"] == "ScalingActive" for c in found["status"]["conditions"]),
    ),
}


async def test_edit_of_every_group_is_applied(world):
    world.operator()
    await world.create(replicas=0)
    await world.until_complete()
    for group, (change, kind, holds) in GROUPS.items():
        await world.edit(**change)
        await world.until(lambda kind=kind: world.get(kind), holds)
        await world.until_complete()
        assert (await world.conditions())["Degraded"]["status"] == "False", group
    await world.edit(podTemplate={"labels": None, "tolerations": None})
    await world.until(
        lambda: world.get(DEPLOYMENT),
        lambda found: (
            "team" not in found["spec"]["template"]["metadata"]["labels"]
            and "tolerations" not in found["spec"]["template"]["spec"]
        ),
    )
    await world.edit(networkPolicy={"enabled": True})
    await world.until(lambda: world.get(NETWORK_POLICY), lambda found: found != {})


async def test_scale_subresource(world):
    world.operator()
    await world.create()
    await world.until_complete()
    (first,) = await world.pods()
    await world.scale(2)
    await world.until(world.status, lambda status: status.get("readyReplicas") == 2)
    await world.until_complete()
    assert first["metadata"]["name"] in {pod["metadata"]["name"] for pod in await world.pods()}
    await world.scale(0)
    await world.until(world.pods, lambda pods: pods == [])
    assert "no replicas" in await world.until_condition("Available", "False", "ScaledToZero")


async def test_deleted_and_created_again_at_once(world):
    world.operator()
    await world.create(replicas=0)
    await world.until_complete()
    before = await world.get(DEPLOYMENT)
    await world.delete()
    await world.create(replicas=0)
    owner = (await world.get(TRANSLATION_DEPLOYMENT))["metadata"]["uid"]
    for kind in CHILDREN:
        await world.until(
            lambda kind=kind: world.get(kind),
            lambda found: bool(found) and found["metadata"]["ownerReferences"][0]["uid"] == owner,
        )
    assert (await world.get(DEPLOYMENT))["metadata"]["uid"] != before["metadata"]["uid"]
    await world.until_complete()


async def test_many_objects_at_once(world):
    world.operator()
    names = [f"td-{number}" for number in range(12)]
    await asyncio.gather(*(world.create(name, replicas=0) for name in names))
    for name in names:
        await world.until_complete(name)
        assert (await world.get(SERVICE_ACCOUNT, name))["automountServiceAccountToken"] is False


async def findings(url: str, **options: str) -> list[str]:
    """What the guards say of the translation of one text."""
    request = {"source_lang": "en", "target_lang": "de", "details": True, **options}
    async with aiohttp.ClientSession() as http, http.post(f"{url}/translate", json=request) as answer:
        assert answer.status == 200, await answer.text()
        (details,) = (await answer.json())["details"]
        return [warning["code"] for warning in details["warnings"]]


async def test_glossary_and_its_edits_apply_without_a_restart(world):
    def terms(**translations: str) -> dict[str, dict[str, str]]:
        return {"data": {"terms.yaml": json.dumps([{"source": "en", "target": "de", "terms": translations}])}}

    metadata = {"name": "terms", "namespace": world.namespace}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **terms(invoice="Rechnung")}
    await world.kube.create(CONFIG_MAP, config_map)
    world.operator()
    await world.create(
        engine={"device": "cpu", "extraArgs": {"answers": {"The invoice.": "Die Rechnung."}}},
        glossary={"configMapKeyRef": {"name": "terms", "key": "terms.yaml"}},
    )
    await world.until_complete()
    (pod,) = await world.pods()
    url = (await world.status())["url"]

    async def warned() -> list[str]:
        return await findings(url, text="The invoice.")

    assert await warned() == []
    await world.change(CONFIG_MAP, terms(invoice="Faktura"), "terms")
    await world.until(warned, lambda found: found == ["glossary"])
    await world.change(CONFIG_MAP, terms(), "terms")
    await world.until(warned, lambda found: found == [])
    (same,) = await world.pods()
    assert same["metadata"]["uid"] == pod["metadata"]["uid"]
    assert same["status"]["containerStatuses"][0]["restartCount"] == 0
