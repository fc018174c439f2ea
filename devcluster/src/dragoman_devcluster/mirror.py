"""A mirror of the API's objects: one list-watch and one cache per kind, shared by the controllers and the node.

Writes go through the mirror, which stores the response at once: a controller that has just created a pod finds
it in its next reconciliation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from dragoman_kube.backoff import Backoff
from dragoman_kube.cache import Cache, Listener
from dragoman_kube.client import KubeClient
from dragoman_kube.kinds import Kind
from dragoman_kube.list_watch import ListWatch
from dragoman_kube.objects import Key, Manifest, key_of, uid_of

BACKOFF = Backoff(0.2, 1.0)
"""The API server is on this machine and restarts within seconds."""


class _Followed:
    """One kind that is mirrored."""

    def __init__(self, client: KubeClient, kind: Kind) -> None:
        self.cache = Cache()
        self.followers = 0
        # A kind may be removed after it was discovered; `synced` must not wait for it.
        self.watch = ListWatch(client, kind, self.cache, optional=True, backoff=BACKOFF)
        self.task = asyncio.create_task(self.watch.run(), name=f"watch {kind.plural}")


class Mirror:
    """The objects of a cluster, kept current by watches, and the way to change them.

    Args:
        client: The API to mirror.
    """

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

    @property
    def followed(self) -> Sequence[Kind]:
        """The kinds that are mirrored."""
        return list(self._followed)

    async def synced(self) -> None:
        """Wait until everything followed so far has been listed once."""
        await asyncio.gather(*(followed.watch.listed.wait() for followed in self._followed.values()))

    async def aclose(self) -> None:
        """End the watches."""
        tasks = [followed.task for followed in self._followed.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def list(self, kind: Kind, namespace: str = "") -> Sequence[Manifest]:
        """The known objects of a kind, of one namespace if given."""
        items = self._followed[kind].cache.items
        return [manifest for key, manifest in items.items() if not namespace or key.namespace == namespace]

    def get(self, kind: Kind, key: Key) -> Manifest | None:
        """One known object."""
        return self._followed[kind].cache.items.get(key)

    async def create(self, kind: Kind, manifest: Manifest) -> Manifest:
        """Create an object and store the response."""
        return self.learn(kind, await self.client.create(kind, manifest))

    async def merge(self, kind: Kind, key: Key, fields: Manifest, subresource: str = "") -> Manifest:
        """Change an object by a JSON merge patch and store the response."""
        return self.learn(kind, await self.client.merge(kind, key, fields, subresource))

    async def delete(
        self,
        kind: Kind,
        manifest: Manifest,
        *,
        grace_s: int | None = None,
        propagation: str = "Background",
    ) -> None:
        """Delete this object and no successor of its name; see `KubeClient.delete`."""
        response = await self.client.delete(
            kind, key_of(manifest), uid_of(manifest), propagation=propagation, grace_s=grace_s
        )
        if response is None:
            if kind in self._followed:
                self._followed[kind].cache.remove(manifest)
        elif response.get("kind") == kind.name and response["metadata"].get("deletionTimestamp"):
            self.learn(kind, response)

    def learn(self, kind: Kind, manifest: Manifest) -> Manifest:
        """Store an object from a response, and return it."""
        if kind in self._followed:
            self._followed[kind].cache.put(manifest)
        return manifest
