"""A mirror of the API's objects: one list-watch and one cache per kind, shared by the controllers and the node.

Writes go through the mirror, which stores the response at once: a controller that has just created a pod finds
it in its next reconciliation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from dragoman_kube.cache import Cache, Listener
from dragoman_kube.client import KubeClient
from dragoman_kube.errors import ClusterError
from dragoman_kube.kinds import Kind
from dragoman_kube.list_watch import ListWatch
from dragoman_kube.objects import Key, Manifest, key_of, uid_of
from dragoman_kube.work_queue import Backoff

BACKOFF = Backoff(0.2, 1.0)
"""The API server is on this machine and restarts within seconds."""

_REQUIRED_VERBS = {"list", "watch", "delete"}


class _Followed:
    """One kind that is mirrored."""

    def __init__(self, client: KubeClient, kind: Kind) -> None:
        self.cache = Cache()
        self.followers = 0
        # A kind may be removed after it was discovered; `synced` must not wait for it.
        self.watch = ListWatch(client, kind, self.cache, optional=True, backoff=BACKOFF)
        self.task = asyncio.create_task(self.watch.run(), name=f"watch {kind.plural}")


class Mirror:
    """The objects of a cluster, kept current by watches, and the way to change them."""

    def __init__(self, client: KubeClient) -> None:
        self.client = client
        self._followed: dict[Kind, _Followed] = {}

    def follow(self, kind: Kind, listener: Listener | None = None) -> None:
        """Mirror a kind from now on; `listener` is called for every change, and for every known object."""
        followed = self._followed.get(kind)
        if followed is None:
            followed = self._followed[kind] = _Followed(self.client, kind)
        followed.followers += 1
        if listener is not None:
            followed.cache.listeners.append(listener)
            for manifest in list(followed.cache.items.values()):
                listener(None, manifest)

    def unfollow(self, kind: Kind, listener: Listener) -> None:
        """Remove a listener, because the kind is gone; the kind is mirrored as long as it has other followers.

        For a moment after its start a kube-apiserver does not name all kinds, built-in ones that controllers need
        among them.
        """
        followed = self._followed[kind]
        followed.cache.listeners.remove(listener)
        followed.followers -= 1
        if not followed.followers:
            followed.task.cancel()
            del self._followed[kind]

    async def synced(self) -> None:
        """Wait until everything followed so far has been listed once."""
        await asyncio.gather(*(followed.watch.listed.wait() for followed in self._followed.values()))

    async def aclose(self) -> None:
        """End the watches."""
        tasks = [followed.task for followed in self._followed.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def discover(self) -> Sequence[Kind]:
        """Every kind that can be listed, watched and deleted, once each, in its group's preferred version.

        Groups that answer with an error, such as an aggregated API that is down, are left out.
        """
        groups = (await self.client.request("GET", "/apis")).get("groups") or ()
        preferred = [group.get("preferredVersion") or group["versions"][0] for group in groups]
        versions = ["v1", *(version["groupVersion"] for version in preferred)]
        found = await asyncio.gather(*(self._kinds(version) for version in versions))
        return [kind for kinds in found for kind in kinds]

    async def _kinds(self, api_version: str) -> Sequence[Kind]:
        root = "/apis/" if "/" in api_version else "/api/"
        try:
            response = await self.client.request("GET", root + api_version)
        except ClusterError as error:
            if not error.status:
                raise
            return []
        return [
            Kind(api_version, item["kind"], item["name"], bool(item["namespaced"]))
            for item in response.get("resources") or ()
            if "/" not in item["name"] and set(item.get("verbs") or ()) >= _REQUIRED_VERBS
        ]

    def list(self, kind: Kind, namespace: str = "") -> Sequence[Manifest]:
        """The known objects of a kind, of one namespace if given."""
        items = self._followed[kind].cache.items
        return [manifest for key, manifest in items.items() if not namespace or key.namespace == namespace]

    def get(self, kind: Kind, key: Key) -> Manifest | None:
        """One known object."""
        return self._followed[kind].cache.items.get(key)

    async def create(self, kind: Kind, manifest: Manifest) -> Manifest:
        """Create an object and store the response."""
        return self.store(kind, await self.client.create(kind, manifest))

    async def merge(self, kind: Kind, key: Key, fields: Manifest, subresource: str = "") -> Manifest:
        """Change an object by a JSON merge patch and store the response."""
        return self.store(kind, await self.client.merge(kind, key, fields, subresource))

    async def delete(self, kind: Kind, manifest: Manifest, *, grace_s: int | None = None) -> None:
        """Delete this object and no successor of its name; see `KubeClient.delete`."""
        response = await self.client.delete(kind, key_of(manifest), uid_of(manifest), grace_s=grace_s)
        if response is None:
            if kind in self._followed:
                self._followed[kind].cache.remove(manifest)
        elif response.get("kind") == kind.name and response["metadata"].get("deletionTimestamp"):
            self.store(kind, response)

    def store(self, kind: Kind, manifest: Manifest) -> Manifest:
        """Store an object from a response, and return it."""
        if kind in self._followed:
            self._followed[kind].cache.put(manifest)
        return manifest


def differs(manifest: Manifest, status: Manifest) -> bool:
    """Whether any field of `status` is not yet in the object.

    A field that is absent equals one that is empty or zero, because API servers leave those out.
    """
    before = manifest.get("status") or {}
    return any(_normal(before.get(name)) != _normal(value) for name, value in status.items())


def _normal(value: Any) -> Any:
    if isinstance(value, dict):
        normal = {name: _normal(item) for name, item in value.items()}
        return {name: item for name, item in normal.items() if item is not None} or None
    if isinstance(value, list):
        return [_normal(item) for item in value] or None
    return value or None
