"""The garbage collector: deletes objects of every kind whose owners are gone."""

from __future__ import annotations

import asyncio
import logging

from dragoman_devcluster.controllers.queue import work_queue
from dragoman_devcluster.decisions.garbage import (
    Collect,
    Orphan,
    Reference,
    Release,
    Step,
    plan_garbage,
    references_of,
)
from dragoman_devcluster.discovery import discover
from dragoman_devcluster.mirror import Mirror
from dragoman_kube.errors import ClusterError, NotFoundError
from dragoman_kube.kinds import CRD, EVENT, Kind
from dragoman_kube.objects import Key, Manifest, is_deleting, key_of, uid_of

logger = logging.getLogger(__name__)

SETTLE_S = 0.05
"""Delay after a change, so that several changes cause one collection."""

DISCOVER_S = 60.0
_IGNORED = frozenset({EVENT.plural, "leases", "apiservices"})
_EVERYTHING = Key("", "")
_KINDS = Key("", "kinds")


class GarbageCollector:
    """Follows every kind of the API and enforces ownership.

    Args:
        mirror: The cluster's objects.
    """

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self._kinds: dict[tuple[str, str], Kind] = {}
        self.queue = work_queue("garbage")

    def start(self) -> None:
        """Follow new and removed kinds."""
        self._mirror.follow(CRD, lambda _old, _new: self.queue.add(_KINDS, 0.5))
        self.queue.add(_KINDS)

    async def reconcile(self, key: Key) -> float | None:
        """Collect garbage, or (key ``kinds``) discover which kinds there are."""
        if key != _EVERYTHING:
            await self._discover()
            self.queue.add(_EVERYTHING)
            return DISCOVER_S
        manifests = [item for kind in self._kinds.values() for item in self._mirror.list(kind)]
        named = {(owner.api_version, owner.kind) for item in manifests for owner in references_of(item)}
        await asyncio.gather(*map(self._carry_out, plan_garbage(manifests, named - set(self._kinds))))
        return None

    async def _discover(self) -> None:
        found = {
            (kind.api_version, kind.name): kind
            for kind in await discover(self._mirror.client)
            if kind.plural not in _IGNORED
        }
        for name in set(self._kinds) - set(found):
            self._mirror.unfollow(self._kinds.pop(name), self._changed)
        for name, kind in found.items():
            if name not in self._kinds:
                self._mirror.follow(kind, self._changed)
                self._kinds[name] = kind
        await self._mirror.synced()

    def _changed(self, old: Manifest | None, new: Manifest | None) -> None:
        owners_changed = new is None or references_of(new) != (references_of(old) if old else ())
        if new is None or owners_changed or is_deleting(new):
            self.queue.add(_EVERYTHING, SETTLE_S)

    async def _carry_out(self, step: Step) -> None:
        manifest = step.manifest
        kind = self._kinds[manifest["apiVersion"], manifest["kind"]]
        try:
            match step:
                case Collect(owners=owners, foreground=foreground):
                    if not await self._any_exists(owners, key_of(manifest)[0]):
                        propagation = "Foreground" if foreground else "Background"
                        await self._mirror.delete(kind, manifest, propagation=propagation)
                case Release(finalizer=finalizer):
                    finalizers = [item for item in manifest["metadata"]["finalizers"] if item != finalizer]
                    await self._change(kind, manifest, {"finalizers": finalizers})
                case Orphan(owner_uid=uid):
                    left = [item for item in manifest["metadata"]["ownerReferences"] if item["uid"] != uid]
                    await self._change(kind, manifest, {"ownerReferences": left})
        except NotFoundError:
            return
        except ClusterError as error:
            logger.debug("garbage %s %s: %s", manifest["kind"], key_of(manifest), error)
            self.queue.add(_EVERYTHING, 1.0)

    async def _change(self, kind: Kind, manifest: Manifest, metadata: Manifest) -> None:
        version = {"resourceVersion": manifest["metadata"]["resourceVersion"]}
        await self._mirror.merge(kind, key_of(manifest), {"metadata": {**version, **metadata}})

    async def _any_exists(self, owners: tuple[Reference, ...], namespace: str) -> bool:
        for owner in owners:
            kind = self._kinds[owner.api_version, owner.kind]
            home = namespace if kind.namespaced else ""
            live = await self._mirror.client.get(kind, Key(home, owner.name))
            if live is not None and uid_of(live) == owner.uid:
                return True
        return False
