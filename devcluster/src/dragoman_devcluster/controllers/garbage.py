"""The garbage collector: deletes what has lost its owners, of every kind that the API has."""

from __future__ import annotations

import asyncio
import logging

from dragoman_devcluster.decisions.garbage import (
    Collect,
    Orphan,
    Reference,
    Release,
    Step,
    plan_garbage,
    references_of,
)
from dragoman_devcluster.errors import LocalClusterError, NotFoundError
from dragoman_devcluster.kube.discovery import discover
from dragoman_devcluster.kube.mirror import Mirror
from dragoman_devcluster.kube.queue import Reconciler
from dragoman_devcluster.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, EVENTS, Resource
from dragoman_devcluster.objects import Key, Manifest, is_deleting, key_of

logger = logging.getLogger(__name__)

SETTLE_S = 0.05
"""How long changes are gathered before everything is looked at again."""

DISCOVER_S = 60.0
_IGNORED = frozenset({EVENTS.plural, "leases", "apiservices"})
_EVERYTHING: Key = ("", "")


class GarbageCollector:
    """Follows every resource of the API and carries ownership out.

    Args:
        mirror: The cluster's objects.
    """

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self._resources: dict[tuple[str, str], Resource] = {}
        self.queue = Reconciler("garbage", self.reconcile)

    def start(self) -> None:
        """Hear of new and removed kinds."""
        self._mirror.follow(
            CUSTOM_RESOURCE_DEFINITIONS, lambda _old, _new: self.queue.enqueue(("", "kinds"), 0.5)
        )
        self.queue.enqueue(("", "kinds"))

    async def reconcile(self, key: Key) -> float | None:
        """Look for garbage, or (key ``kinds``) for changes in which kinds there are."""
        if key != _EVERYTHING:
            await self._discover()
            self.queue.enqueue(_EVERYTHING)
            return DISCOVER_S
        manifests = [item for resource in self._resources.values() for item in self._mirror.list(resource)]
        named = {(owner.api_version, owner.kind) for item in manifests for owner in references_of(item)}
        await asyncio.gather(*map(self._carry_out, plan_garbage(manifests, named - set(self._resources))))
        return None

    async def _discover(self) -> None:
        found = {
            (resource.group_version, resource.kind): resource
            for resource in await discover(self._mirror.client)
            if resource.plural not in _IGNORED
        }
        for kind in set(self._resources) - set(found):
            self._mirror.unfollow(self._resources.pop(kind), self._changed)
        for kind, resource in found.items():
            if kind not in self._resources:
                self._mirror.follow(resource, self._changed)
                self._resources[kind] = resource
        await self._mirror.synced()

    def _changed(self, old: Manifest | None, new: Manifest | None) -> None:
        owners_changed = new is None or references_of(new) != (references_of(old) if old else ())
        if new is None or owners_changed or is_deleting(new):
            self.queue.enqueue(_EVERYTHING, SETTLE_S)

    async def _carry_out(self, step: Step) -> None:
        manifest = step.manifest
        resource = self._resources[manifest["apiVersion"], manifest["kind"]]
        try:
            match step:
                case Collect(owners=owners, foreground=foreground):
                    if not await self._any_exists(owners, key_of(manifest)[0]):
                        propagation = "Foreground" if foreground else "Background"
                        await self._mirror.delete(resource, manifest, propagation=propagation)
                case Release(finalizer=finalizer):
                    finalizers = [item for item in manifest["metadata"]["finalizers"] if item != finalizer]
                    await self._change(resource, manifest, {"finalizers": finalizers})
                case Orphan(owner_uid=uid):
                    left = [item for item in manifest["metadata"]["ownerReferences"] if item["uid"] != uid]
                    await self._change(resource, manifest, {"ownerReferences": left})
        except NotFoundError:
            return
        except LocalClusterError as error:
            logger.debug("garbage %s %s/%s: %s", manifest["kind"], *key_of(manifest), error)
            self.queue.enqueue(_EVERYTHING, 1.0)

    async def _change(self, resource: Resource, manifest: Manifest, metadata: Manifest) -> None:
        version = {"resourceVersion": manifest["metadata"]["resourceVersion"]}
        await self._mirror.patch(resource, key_of(manifest), {"metadata": {**version, **metadata}})

    async def _any_exists(self, owners: tuple[Reference, ...], namespace: str) -> bool:
        for owner in owners:
            resource = self._resources[owner.api_version, owner.kind]
            try:
                home = namespace if resource.namespaced else ""
                live = await self._mirror.client.get(resource, (home, owner.name))
            except NotFoundError:
                continue
            if live["metadata"]["uid"] == owner.uid:
                return True
        return False
