"""The garbage collector: deletes objects of every kind whose owners are gone.

Source: https://kubernetes.io/docs/concepts/architecture/garbage-collection/#owners-dependents
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence, Set
from dataclasses import dataclass

from dragoman_devcluster.controllers.controller import work_queue
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
        named = {(owner.api_version, owner.kind) for item in manifests for owner in references_of(item)}
        await asyncio.gather(*map(self._carry_out, plan_garbage(manifests, named - set(self._kinds))))
        return None

    async def _discover(self) -> None:
        found = {
            (kind.api_version, kind.name): kind
            for kind in await self._mirror.discover()
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


FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


@dataclass(frozen=True)
class Reference:
    """An owner as a dependent names it."""

    api_version: str
    kind: str
    name: str
    uid: str


@dataclass(frozen=True)
class Collect:
    """Delete an object: every owner that it names is gone, unless a live read finds one of `owners`."""

    manifest: Manifest
    owners: tuple[Reference, ...]
    foreground: bool = False


@dataclass(frozen=True)
class Release:
    """Take this finalizer off: nothing is left to wait for."""

    manifest: Manifest
    finalizer: str


@dataclass(frozen=True)
class Orphan:
    """Take the reference to this owner out of an object, which stays."""

    manifest: Manifest
    owner_uid: str


Step = Collect | Release | Orphan


def references_of(manifest: Manifest) -> tuple[Reference, ...]:
    """The owners that an object names."""
    found = manifest["metadata"].get("ownerReferences") or ()
    return tuple(Reference(item["apiVersion"], item["kind"], item["name"], item["uid"]) for item in found)


def plan_garbage(
    manifests: Sequence[Manifest], unknown_kinds: Set[tuple[str, str]] = frozenset()
) -> list[Step]:
    """What to delete or release, given every object that is known.

    Args:
        manifests: All objects of all kinds that can own or be owned.
        unknown_kinds: (apiVersion, kind) of owners that are not among `manifests`; their absence means nothing.
    """
    by_uid = {uid_of(manifest): manifest for manifest in manifests}
    dependents: dict[str, list[Manifest]] = {}
    for manifest in manifests:
        for reference in references_of(manifest):
            dependents.setdefault(reference.uid, []).append(manifest)
    steps: list[Step] = []
    for manifest in manifests:
        finalizers = manifest["metadata"].get("finalizers") or ()
        waiting_on = dependents.get(uid_of(manifest), [])
        if is_deleting(manifest) and ORPHAN in finalizers:
            steps += [Orphan(dependent, uid_of(manifest)) for dependent in waiting_on]
            steps += [] if waiting_on else [Release(manifest, ORPHAN)]
        elif is_deleting(manifest) and FOREGROUND in finalizers:
            blocked = any(_blocks(manifest, dependent) for dependent in waiting_on)
            steps += [] if blocked else [Release(manifest, FOREGROUND)]
        collect = _collect(manifest, by_uid, unknown_kinds)
        if collect is not None:
            steps.append(collect)
    return steps


def _collect(
    manifest: Manifest, by_uid: dict[str, Manifest], unknown_kinds: Set[tuple[str, str]]
) -> Collect | None:
    references = references_of(manifest)
    if not references or is_deleting(manifest):
        return None
    if any((reference.api_version, reference.kind) in unknown_kinds for reference in references):
        return None
    owners = [by_uid.get(reference.uid) for reference in references]
    if all(owner is None for owner in owners):
        return Collect(manifest, references)
    if all(owner is None or _waits_for_dependents(owner) for owner in owners):
        return Collect(manifest, (), foreground=True)
    return None


def _waits_for_dependents(owner: Manifest) -> bool:
    return is_deleting(owner) and FOREGROUND in (owner["metadata"].get("finalizers") or ())


def _blocks(owner: Manifest, dependent: Manifest) -> bool:
    found = dependent["metadata"].get("ownerReferences") or ()
    return any(item["uid"] == uid_of(owner) and item.get("blockOwnerDeletion") for item in found)
