"""The operator's watch of Events about volumes, on every API server there is."""

import asyncio
from typing import Any

from dragoman_kube.client import KubeClient
from dragoman_kube.kinds import EVENT
from dragoman_kube.mirror import Mirror
from dragoman_operator.controller.parts import MOUNT_EVENTS

from .conftest import Server


def event(namespace: str, name: str, reason: str = "FailedMount", kind: str = "Pod") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {"apiVersion": "v1", "kind": kind, "name": "demo-1", "namespace": namespace},
        "reason": reason,
        "message": "no such volume",
        "type": "Warning",
        "reportingComponent": "kubelet",
        "reportingInstance": "node",
    }


async def test_only_failed_mounts_of_pods_are_listed_and_watched(server: Server, namespace: str) -> None:
    path, changed = EVENT.path(namespace), asyncio.Event()
    server.call("POST", path, event(namespace, "listed"))
    server.call("POST", path, event(namespace, "of-another-reason", reason="BackOff"))
    async with server.client() as api:
        mirror = Mirror(KubeClient(api, 10), [namespace])
        mirror.follow(EVENT, lambda _before, _after: changed.set(), fields=MOUNT_EVENTS)
        async with asyncio.timeout(30):
            await mirror.synced()
            assert names(mirror) == {"listed"}
            changed.clear()
            server.call("POST", path, event(namespace, "of-another-kind", kind="Node"))
            server.call("POST", path, event(namespace, "watched"))
            await changed.wait()
        assert names(mirror) == {"listed", "watched"}
        await mirror.aclose()


def names(mirror: Mirror) -> set[str]:
    return {found["metadata"]["name"] for found in mirror.list(EVENT)}
