"""The node: registers itself, and runs every pod that is bound to it."""

from __future__ import annotations

import asyncio
import logging
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata

from dragoman_devcluster.node.context import NodeContext
from dragoman_devcluster.node.pod import REMOVED_GRACE_S, Pod
from dragoman_kube.errors import ConflictError
from dragoman_kube.kinds import NODE, POD
from dragoman_kube.objects import Key, Manifest, has_ended, is_deleting, uid_of
from dragoman_kube.times import timestamp

logger = logging.getLogger(__name__)

MAX_PODS = 110


class Node:
    """Runs the pods of one node."""

    def __init__(self, context: NodeContext, devices: Mapping[str, int]) -> None:
        self._context = context
        self._devices = devices
        self._pods: dict[str, tuple[Pod, asyncio.Task[None]]] = {}
        self._stopping = False

    async def register(self) -> None:
        """Create the Node object, or take the existing one over, and report Ready."""
        name = self._context.name
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": node_labels(name)}}
        try:
            await self._context.mirror.create(NODE, body)
        except ConflictError:
            await self._context.mirror.merge(NODE, Key("", name), {"metadata": {"labels": node_labels(name)}})
        status = node_status(self._context.address, self._devices, datetime.now(UTC))
        await self._context.mirror.merge(NODE, Key("", name), {"status": status}, "status")

    def start(self) -> None:
        """Run the pods that are or will be bound to this node."""
        self._context.mirror.follow(POD, self._changed)

    async def stop(self, grace_s: float) -> None:
        """End all processes; the pods stay in the API, for the next start of the node."""
        self._stopping = True
        running = list(self._pods.values())
        for pod, _ in running:
            pod.end(grace_s)
        await asyncio.gather(*(task for _, task in running))

    def _changed(self, old: Manifest | None, new: Manifest | None) -> None:
        manifest = new or old
        if manifest is None or manifest["spec"].get("nodeName") != self._context.name or self._stopping:
            return
        known = self._pods.get(uid_of(manifest))
        if new is None:
            if known is not None:
                known[0].end(REMOVED_GRACE_S)
        elif known is not None:
            known[0].update(new)
        elif is_deleting(new) or not has_ended(new):
            self._run(new)

    def _run(self, manifest: Manifest) -> None:
        uid, name = uid_of(manifest), manifest["metadata"]["name"]
        pod = Pod(manifest, self._context)
        task = asyncio.create_task(pod.run(), name=f"pod {name}")
        self._pods[uid] = pod, task
        task.add_done_callback(lambda done: self._forget(uid, name, done))

    def _forget(self, uid: str, name: str, task: asyncio.Task[None]) -> None:
        del self._pods[uid]
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("pod %s: %r", name, error, exc_info=error)


def node_labels(name: str) -> dict[str, str]:
    """The well-known labels of the node."""
    return {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": {"x86_64": "amd64", "aarch64": "arm64"}.get(
            platform.machine(), platform.machine()
        ),
    }


def node_status(address: str, devices: Mapping[str, int], now: datetime) -> Manifest:
    """What the node reports: this machine's capacity, and that it is ready."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    capacity = {
        "cpu": str(os.cpu_count() or 1),
        "memory": f"{memory_bytes // 1024}Ki",
        "pods": str(MAX_PODS),
        **{name: str(count) for name, count in devices.items()},
    }
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "the local node runs pods as processes",
        "lastHeartbeatTime": timestamp(now),
        "lastTransitionTime": timestamp(now),
    }
    return {
        "capacity": capacity,
        "allocatable": capacity,
        "addresses": [
            {"type": "InternalIP", "address": address},
            {"type": "Hostname", "address": "localhost"},
        ],
        "conditions": [ready],
        "nodeInfo": {
            "architecture": node_labels("")["kubernetes.io/arch"],
            "bootID": "",
            "containerRuntimeVersion": "process://" + platform.python_version(),
            "kernelVersion": platform.release(),
            "kubeProxyVersion": "",
            "kubeletVersion": "v" + metadata.version("dragoman"),
            "machineID": "",
            "operatingSystem": "linux",
            "osImage": platform.platform(),
            "systemUUID": "",
        },
    }
