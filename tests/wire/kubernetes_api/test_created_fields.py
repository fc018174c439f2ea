"""Fields of created objects that a later apply leaves out, on every API server there is."""

from typing import Any

from dragoman_kube.client import KubeClient
from dragoman_kube.kinds import DEPLOYMENT
from dragoman_kube.objects import Key, as_applied

from .conftest import Server

MANAGER = "dragoman"


def manifest(namespace: str, **labels: str) -> dict[str, Any]:
    selected = {"app": "demo"}
    containers = [{"name": "main", "image": "none"}]
    return {
        "apiVersion": DEPLOYMENT.api_version,
        "kind": DEPLOYMENT.name,
        "metadata": {"namespace": namespace, "name": "demo", "labels": labels},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": selected},
            "template": {"metadata": {"labels": selected}, "spec": {"containers": containers}},
        },
    }


async def test_apply_after_a_create_removes_what_it_leaves_out(server: Server, namespace: str) -> None:
    async with server.client() as api:
        kube, key = KubeClient(api, 10, MANAGER), Key(namespace, "demo")
        created = await kube.create(DEPLOYMENT, manifest(namespace, kept="1", dropped="1"))
        await kube.merge(DEPLOYMENT, key, {"metadata": {"annotations": {"forced": "1"}}})
        entries = as_applied(await kube.get(DEPLOYMENT, key) or {}, MANAGER)
        assert entries is not None
        owned = await kube.merge(DEPLOYMENT, key, {"metadata": {"managedFields": entries}})
        assert as_applied(owned, MANAGER) is None
        applied = await kube.apply(DEPLOYMENT, manifest(namespace, kept="1"))
        assert applied["metadata"]["labels"] == {"kept": "1"}
        assert "forced" not in applied["metadata"].get("annotations", {})
        # Fields that the server set by default stay.
        assert applied["spec"] == created["spec"]
        assert as_applied(applied, MANAGER) is None
