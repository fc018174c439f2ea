"""The life of a pod on the node, as far as the API's answers decide it."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from dragoman_devcluster.node.context import Addresses, Devices, Directories
from dragoman_devcluster.node.pod import Pod
from dragoman_kube.objects import Manifest


def manifest(version: int, **metadata: Any) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web",
            "namespace": "default",
            "uid": "u",
            "resourceVersion": str(version),
            **metadata,
        },
        "spec": {"containers": []},
    }


class Mirror:
    """The watch reports the pod's deletion before the response to a status, which is older, is read."""

    pod: Pod
    client = None

    def __init__(self) -> None:
        self.deleted: list[str] = []

    async def merge(self, *_: object) -> Manifest:
        self.pod.update(manifest(3, deletionTimestamp="2026-01-02T03:04:05Z", deletionGracePeriodSeconds=1))
        return manifest(2)

    async def delete(self, _kind: object, pod: Manifest, *, grace_s: int) -> None:
        assert grace_s == 0
        self.deleted.append(pod["metadata"]["name"])


async def test_a_deletion_that_overtakes_the_response_to_a_status_is_carried_out(tmp_path: Path) -> None:
    mirror = Mirror()
    context = SimpleNamespace(
        address="127.0.0.1",
        mirror=mirror,
        addresses=Addresses(),
        devices=Devices(0),
        directories=Directories(tmp_path, tmp_path),
    )
    mirror.pod = Pod(manifest(1), cast(Any, context))
    async with asyncio.timeout(10):
        await mirror.pod.run()
    assert mirror.deleted == ["web"]
