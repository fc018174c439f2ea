"""A local mirror of the API's objects: one list and watch per resource, shared by everything here.

Writes go through the mirror, and what the API answers is remembered at once. A controller that has just
created a pod therefore sees it at its next look, and never creates it twice for want of a watch event.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence

from dragoman_devcluster.errors import ApiUnreachableError, GoneError, LocalClusterError, NotFoundError
from dragoman_devcluster.kube.client import KubeClient
from dragoman_devcluster.kube.resources import Resource
from dragoman_devcluster.objects import Key, Manifest, key_of, uid_of

logger = logging.getLogger(__name__)

Listener = Callable[[Manifest | None, Manifest | None], None]
"""Called with an object before and after a change; None where it did not or does not exist."""

RETRY_S = 0.5


class Collection:
    """What is known of one resource."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.items: dict[Key, Manifest] = {}
        self.listeners: list[Listener] = []
        self.followers = 0
        self.synced = asyncio.Event()
        self._deleted: dict[str, None] = {}

    def remember(self, manifest: Manifest) -> None:
        """Take in an object as the API has just sent it, unless something newer is known."""
        key = key_of(manifest)
        known = self.items.get(key)
        if uid_of(manifest) in self._deleted:
            return
        if known is not None and version(known) >= version(manifest):
            return
        self.items[key] = manifest
        self._tell(known, manifest)

    def forget(self, manifest: Manifest) -> None:
        """Take in that an object is gone."""
        known = self.items.get(key_of(manifest))
        self._deleted[uid_of(manifest)] = None
        while len(self._deleted) > 1000:
            del self._deleted[next(iter(self._deleted))]
        if known is not None and uid_of(known) == uid_of(manifest):
            del self.items[key_of(manifest)]
            self._tell(known, None)

    def replace(self, manifests: Iterable[Manifest], listed_version: int) -> None:
        """Take in a complete list, which was true at `listed_version`; what is newer than that stays."""
        listed = {key_of(manifest): manifest for manifest in manifests}
        for key, known in list(self.items.items()):
            current = listed.get(key)
            gone = current is None or uid_of(current) != uid_of(known)
            if gone and version(known) <= listed_version:
                self.forget(known)
        for manifest in listed.values():
            self.remember(manifest)
        self.synced.set()

    def _tell(self, before: Manifest | None, after: Manifest | None) -> None:
        for listener in self.listeners:
            listener(before, after)


def version(manifest: Manifest) -> int:
    """The resource version as a number; both API servers count upwards.

    Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions (comparable since
    v1.35).
    """
    return int(manifest["metadata"]["resourceVersion"])


class Mirror:
    """The objects of a cluster, kept current by watches, and the way to change them.

    Args:
        client: The API to mirror.
    """

    def __init__(self, client: KubeClient) -> None:
        self.client = client
        self._collections: dict[Resource, Collection] = {}
        self._watches: dict[Resource, asyncio.Task[None]] = {}

    def follow(self, resource: Resource, listener: Listener | None = None) -> None:
        """Mirror a resource from now on; `listener` hears of every change, and of what is there already."""
        collection = self._collections.get(resource)
        if collection is None:
            collection = self._collections[resource] = Collection(resource)
            self._watches[resource] = asyncio.create_task(
                self._watch(collection), name=f"watch {resource.plural}"
            )
        collection.followers += 1
        if listener is not None:
            collection.listeners.append(listener)
            for manifest in list(collection.items.values()):
                listener(None, manifest)

    def unfollow(self, resource: Resource, listener: Listener) -> None:
        """Hear no more of a resource, because its kind is gone; mirrored as long as somebody else follows it.

        For a moment after its start a kube-apiserver does not name all kinds, built-in ones that controllers live by
        among them.
        """
        collection = self._collections[resource]
        collection.listeners.remove(listener)
        collection.followers -= 1
        if not collection.followers:
            self._watches.pop(resource).cancel()
            del self._collections[resource]

    @property
    def followed(self) -> Sequence[Resource]:
        """The resources that are mirrored."""
        return list(self._collections)

    async def synced(self) -> None:
        """Wait until everything followed so far has been listed once."""
        await asyncio.gather(*(collection.synced.wait() for collection in self._collections.values()))

    async def aclose(self) -> None:
        """End the watches."""
        for watch in self._watches.values():
            watch.cancel()
        await asyncio.gather(*self._watches.values(), return_exceptions=True)

    def list(self, resource: Resource, namespace: str = "") -> Sequence[Manifest]:
        """The known objects of a resource, of one namespace if given."""
        items = self._collections[resource].items
        return [manifest for (home, _), manifest in items.items() if not namespace or home == namespace]

    def get(self, resource: Resource, key: Key) -> Manifest | None:
        """One known object."""
        return self._collections[resource].items.get(key)

    async def create(self, resource: Resource, body: Manifest) -> Manifest:
        """Create an object and remember it."""
        return self.learn(resource, await self.client.create(resource, body))

    async def patch(self, resource: Resource, key: Key, patch: Manifest, subresource: str = "") -> Manifest:
        """Change an object by a JSON merge patch and remember the result."""
        return self.learn(resource, await self.client.patch(resource, key, patch, subresource))

    async def delete(
        self,
        resource: Resource,
        manifest: Manifest,
        *,
        grace_s: int | None = None,
        propagation: str = "Background",
    ) -> None:
        """Delete exactly this object (not a namesake); that it is gone already is no error.

        Args:
            resource: Its resource.
            manifest: The object as known.
            grace_s: Seconds a pod gets to end; None leaves the pod's own.
            propagation: ``Background``, ``Foreground`` or ``Orphan``.
        """
        options: Manifest = {"preconditions": {"uid": uid_of(manifest)}, "propagationPolicy": propagation}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        try:
            answer = await self.client.delete(resource, key_of(manifest), options)
        except NotFoundError:
            self._forget(resource, manifest)
            return
        if answer.get("kind") == resource.kind and answer["metadata"].get("deletionTimestamp"):
            self.learn(resource, answer)

    def learn(self, resource: Resource, manifest: Manifest) -> Manifest:
        """Remember an object that the API has just sent, and return it."""
        if resource in self._collections:
            self._collections[resource].remember(manifest)
        return manifest

    def _forget(self, resource: Resource, manifest: Manifest) -> None:
        if resource in self._collections:
            self._collections[resource].forget(manifest)

    async def _watch(self, collection: Collection) -> None:
        while True:
            try:
                await self._list_and_watch(collection)
            except (LocalClusterError, KeyError) as error:
                if isinstance(error, GoneError):
                    continue
                if isinstance(error, NotFoundError):
                    # The kind was removed after it was discovered: nothing is left of it to be listed, and whoever
                    # waits for everything, before looking which kinds are gone, would wait forever.
                    collection.synced.set()
                quiet = isinstance(error, (ApiUnreachableError, NotFoundError))
                level = logging.DEBUG if quiet else logging.WARNING
                logger.log(level, "watch of %s: %s", collection.resource.plural, error)
                await asyncio.sleep(RETRY_S)

    async def _list_and_watch(self, collection: Collection) -> None:
        resource = collection.resource
        answer = await self.client.list(resource)
        group = {"apiVersion": resource.group_version, "kind": resource.kind}
        # Items of a list do not repeat their kind; owner references need it.
        current = answer["metadata"]["resourceVersion"]
        collection.replace(({**group, **item} for item in answer.get("items") or ()), int(current))
        while True:
            async for event in self.client.watch(resource, current):
                manifest = event["object"]
                current = manifest["metadata"]["resourceVersion"]
                if event["type"] == "DELETED":
                    collection.forget(manifest)
                elif event["type"] != "BOOKMARK":
                    collection.remember(manifest)
