"""The garbage collector: deletes objects of every kind whose owners are gone, in the background.

Source: https://kubernetes.io/docs/concepts/architecture/garbage-collection/#owners-dependents
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence, Set

from dragoman_devcluster.controllers.controller import discover, work_queue
from dragoman_kube.errors import ClusterError, NotFoundError
from dragoman_kube.kinds import CRD, EVENT, Kind
from dragoman_kube.mirror import Mirror
from dragoman_kube.objects import Key, Manifest, is_deleting, key_of, uid_of

logger = logging.getLogger(__name__)

SETTLE_S = 0.05
"""Delay after a change, so that several changes cause one collection."""

DISCOVER_S = 60.0
_IGNORED = frozenset({EVENT.plural, "apiservices"})
_EVERYTHING = Key("", "")
_KINDS = Key("", "kinds")


class GarbageCollector:
    """Follows every kind of the API and enforces ownership."""

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
        await asyncio.gather(*map(self._collect, without_owner(manifests, set(self._kinds))))
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
        if new is None or references_of(new) != (references_of(old) if old else ()):
            self.queue.add(_EVERYTHING, SETTLE_S)

    async def _collect(self, manifest: Manifest) -> None:
        kind = self._kinds[manifest["apiVersion"], manifest["kind"]]
        try:
            # A list-watch may be behind that of another kind.
            if not await self._any_exists(references_of(manifest), key_of(manifest).namespace):
                await self._mirror.delete(kind, manifest)
        except NotFoundError:
            return
        except ClusterError as error:
            logger.debug("garbage %s %s: %s", manifest["kind"], key_of(manifest), error)
            self.queue.add(_EVERYTHING, 1.0)

    async def _any_exists(self, owners: Sequence[Manifest], namespace: str) -> bool:
        for owner in owners:
            kind = self._kinds[owner["apiVersion"], owner["kind"]]
            home = namespace if kind.namespaced else ""
            live = await self._mirror.client.get(kind, Key(home, owner["name"]))
            if live is not None and uid_of(live) == owner["uid"]:
                return True
        return False


def references_of(manifest: Manifest) -> Sequence[Manifest]:
    """The owners that an object names."""
    return manifest["metadata"].get("ownerReferences") or ()


def without_owner(manifests: Sequence[Manifest], kinds: Set[tuple[str, str]]) -> list[Manifest]:
    """The objects to delete: every owner that they name is gone.

    Args:
        manifests: All objects of all kinds that can own or be owned.
        kinds: apiVersion and kind of `manifests`; the absence of an owner of another kind means nothing.
    """
    known = {uid_of(manifest) for manifest in manifests}
    return [
        manifest
        for manifest in manifests
        if (owners := references_of(manifest))
        and not is_deleting(manifest)
        and all(
            (owner["apiVersion"], owner["kind"]) in kinds and owner["uid"] not in known for owner in owners
        )
    ]
