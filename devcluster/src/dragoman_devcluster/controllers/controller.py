"""What controllers share: a work queue, a step that brings one object closer to its spec, the kinds of a server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from dragoman_devcluster.errors import LocalClusterError
from dragoman_kube.client import KubeClient
from dragoman_kube.collection import Listener
from dragoman_kube.errors import ClusterError, ConflictError, NotFoundError, UnavailableError
from dragoman_kube.kinds import Kind
from dragoman_kube.objects import Key, Manifest, controller_of, key_of
from dragoman_kube.work_queue import Backoff, WorkQueue

_REQUIRED_VERBS = {"list", "watch", "delete"}


class Controller(Protocol):
    """Reconciles the objects of some kinds."""

    queue: WorkQueue[Key]

    def start(self) -> None:
        """Follow those kinds, so that their changes fill the queue."""

    async def reconcile(self, key: Key) -> float | None:
        """Bring one object closer to what it should be; the seconds until it is reconciled again, or None."""


def work_queue(name: str) -> WorkQueue[Key]:
    """A queue with one worker; failures that are usual in a cluster are logged at level debug."""
    return WorkQueue(
        name=name,
        settle_s=0.0,
        backoff=Backoff(0.1, 10.0),
        expected=(ClusterError, LocalClusterError),
        quiet=(ConflictError, NotFoundError, UnavailableError),
    )


def enqueue_owner(queue: WorkQueue[Key], kind: Kind) -> Listener:
    """A listener that enqueues the controller of an object that has changed, if it is of this kind."""

    def changed(old: Manifest | None, new: Manifest | None) -> None:
        manifest = new or old or {}
        owner = controller_of(manifest)
        if owner is not None and owner["kind"] == kind.name:
            queue.add(Key(key_of(manifest).namespace, owner["name"]))

    return changed


async def discover(client: KubeClient) -> Sequence[Kind]:
    """Every kind that can be listed, watched and deleted, once each, in its group's preferred version.

    Groups that answer with an error, such as an aggregated API that is down, are left out.
    """
    groups = (await client.request("GET", "/apis")).get("groups") or ()
    preferred = [group.get("preferredVersion") or group["versions"][0] for group in groups]
    versions = ["v1", *(version["groupVersion"] for version in preferred)]
    found = await asyncio.gather(*(_kinds(client, version) for version in versions))
    return [kind for kinds in found for kind in kinds]


async def _kinds(client: KubeClient, api_version: str) -> Sequence[Kind]:
    root = "/apis/" if "/" in api_version else "/api/"
    try:
        response = await client.request("GET", root + api_version)
    except ClusterError as error:
        if not error.status:
            raise
        return []
    return [
        Kind(api_version, item["kind"], item["name"], bool(item["namespaced"]))
        for item in response.get("resources") or ()
        if "/" not in item["name"] and set(item.get("verbs") or ()) >= _REQUIRED_VERBS
    ]
