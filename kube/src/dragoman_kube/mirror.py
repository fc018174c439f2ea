"""A mirror of the API's objects: one collection for each kind, shared by the controllers of a process.

List-watches fill it, and writes go through it, which stores their responses at once. A kind whose changes another
client watches, such as kopf, is fed by that client; the mirror lists it as often as the others, which finds what that
client has missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from dragoman_kube.client import KubeClient
from dragoman_kube.collection import Collection, Listener
from dragoman_kube.kinds import Kind
from dragoman_kube.list_watch import BACKOFF, RESYNC_S, ListWatch
from dragoman_kube.objects import Key, Manifest, key_of, uid_of
from dragoman_kube.work_queue import Backoff


class _Followed:
    """One kind that is mirrored."""

    def __init__(self) -> None:
        self.collection = Collection()
        self.watches: list[ListWatch] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.followers = 0


class Mirror:
    """The objects of a cluster, kept current by list-watches, and the way to change them.

    Args:
        client: Reads and writes.
        namespaces: The namespaces that are mirrored; empty: all of them.
        resync_s: Seconds until everything is listed again, which finds what the watches have missed.
        broken: Called with the kind when a list or a watch fails.
    """

    def __init__(
        self,
        client: KubeClient,
        namespaces: Sequence[str] = (),
        *,
        resync_s: float = RESYNC_S,
        backoff: Backoff = BACKOFF,
        broken: Callable[[Kind], None] = lambda _kind: None,
    ) -> None:
        self.client = client
        self._namespaces = tuple(namespaces) or ("",)
        self._resync_s = resync_s
        self._backoff = backoff
        self._broken = broken
        self._followed: dict[Kind, _Followed] = {}
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def follow(
        self,
        kind: Kind,
        listener: Listener | None = None,
        *,
        labels: str = "",
        fields: str = "",
        optional: bool = True,
        watched: bool = True,
    ) -> None:
        """Mirror a kind from now on.

        Args:
            kind: The kind.
            listener: Called for every change, and for every known object.
            labels: A label selector.
            fields: A field selector.
            optional: Whether a kind that the server does not serve, or no longer, counts as listed, without objects.
            watched: False for a kind that another client feeds with `store` and `remove`.
        """
        followed = self._followed.get(kind)
        if followed is None:
            followed = self._followed[kind] = _Followed()
            for namespace in self._namespaces:
                watch = ListWatch(
                    self.client,
                    kind,
                    followed.collection,
                    namespace=namespace,
                    labels=labels,
                    fields=fields,
                    resync_s=self._resync_s,
                    watched=watched,
                    broken=partial(self._broken, kind),
                    optional=optional,
                    backoff=self._backoff,
                )
                task = asyncio.create_task(watch.run(), name=f"watch {kind.plural}")
                task.add_done_callback(self._ended)
                followed.watches.append(watch)
                followed.tasks.append(task)
        followed.followers += 1
        if listener is not None:
            followed.collection.listeners.append(listener)
            for manifest in list(followed.collection.items.values()):
                listener(None, manifest)

    def unfollow(self, kind: Kind, listener: Listener) -> None:
        """Remove a listener, because the kind is gone; the kind is mirrored as long as it has other followers.

        For a moment after its start a kube-apiserver does not name all kinds, built-in ones that controllers need
        among them.
        """
        followed = self._followed[kind]
        followed.collection.listeners.remove(listener)
        followed.followers -= 1
        if not followed.followers:
            for task in followed.tasks:
                task.cancel()
            del self._followed[kind]

    async def synced(self) -> None:
        """Wait until everything that is watched so far has been listed once."""
        for followed in list(self._followed.values()):
            for watch in followed.watches:
                await watch.listed.wait()

    async def run(self) -> None:
        """Wait until cancelled, and then end the watches.

        Raises:
            Exception: A watch or a listener failed unexpectedly.
        """
        try:
            await self._failure
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """End the watches."""
        tasks = [task for followed in self._followed.values() for task in followed.tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) and not self._failure.done():
            self._failure.set_exception(error)

    def relist(self, kind: Kind) -> None:
        """List a kind soon that is not watched: the client that feeds it may have missed deletions."""
        for watch in self._followed[kind].watches:
            watch.relist()

    def refused(self, namespace: str) -> bool:
        """Whether a kind may no longer be read in this namespace: the known objects may be outdated."""
        return any(
            watch.refused
            for followed in self._followed.values()
            for watch in followed.watches
            if watch.namespace in ("", namespace)
        )

    def list(self, kind: Kind, namespace: str = "") -> Sequence[Manifest]:
        """The known objects of a kind, of one namespace if given."""
        items = self._followed[kind].collection.items
        return [manifest for key, manifest in items.items() if not namespace or key.namespace == namespace]

    def get(self, kind: Kind, key: Key) -> Manifest | None:
        """One known object, regardless of its owner."""
        return self._followed[kind].collection.items.get(key)

    def controlled(self, kind: Kind, namespace: str, uids: Iterable[str]) -> Sequence[Manifest]:
        """The known objects of a kind whose controller has one of these uids."""
        collection = self._followed[kind].collection
        return [manifest for uid in uids for manifest in collection.controlled(uid, namespace)]

    async def create(self, kind: Kind, manifest: Manifest) -> Manifest:
        """Create an object and store the response."""
        return self.store(kind, await self.client.create(kind, manifest))

    async def apply(self, kind: Kind, manifest: Manifest, subresource: str = "") -> Manifest:
        """Apply an object or its status server-side and store the response."""
        return self.store(kind, await self.client.apply(kind, manifest, subresource))

    async def merge(self, kind: Kind, key: Key, fields: Manifest, subresource: str = "") -> Manifest:
        """Change an object by a JSON merge patch and store the response."""
        return self.store(kind, await self.client.merge(kind, key, fields, subresource))

    async def delete(self, kind: Kind, manifest: Manifest, *, grace_s: int | None = None) -> None:
        """Delete this object and no successor of its name; see `KubeClient.delete`."""
        response = await self.client.delete(kind, key_of(manifest), uid_of(manifest), grace_s=grace_s)
        if response is None:
            self.remove(kind, manifest)
        elif response.get("kind") == kind.name and response["metadata"].get("deletionTimestamp"):
            self.store(kind, response)

    def store(self, kind: Kind, manifest: Manifest) -> Manifest:
        """Store an object from an event or a response, unless a newer version is known, and return it."""
        if kind in self._followed:
            self._followed[kind].collection.put(manifest)
        return manifest

    def remove(self, kind: Kind, manifest: Manifest) -> None:
        """Remove an object that was deleted; a successor of its name stays."""
        if kind in self._followed:
            self._followed[kind].collection.remove(manifest)
