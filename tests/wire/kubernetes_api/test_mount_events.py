"""The operator's watch of Events about volumes, on every API server there is."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from dragoman_kube.cache import Cache
from dragoman_kube.client import KubeClient
from dragoman_kube.kinds import EVENT
from dragoman_kube.list_watch import ListWatch
from dragoman_operator.controller.runtime import MOUNT_EVENTS

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
    path, found, changed = EVENT.path(namespace), Cache(), asyncio.Event()
    found.listeners.append(lambda _before, _after: changed.set())
    server.call("POST", path, event(namespace, "listed"))
    server.call("POST", path, event(namespace, "of-another-reason", reason="BackOff"))
    async with server.client() as api:
        watch = ListWatch(KubeClient(api, 10), EVENT, found, namespace=namespace, fields=MOUNT_EVENTS)
        running = asyncio.create_task(watch.run())
        async with asyncio.timeout(30):
            await watch.listed.wait()
            assert {key.name for key in found.items} == {"listed"}
            changed.clear()
            server.call("POST", path, event(namespace, "of-another-kind", kind="Node"))
            server.call("POST", path, event(namespace, "watched"))
            await changed.wait()
        assert {key.name for key in found.items} == {"listed", "watched"}
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
