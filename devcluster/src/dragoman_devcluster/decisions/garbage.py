"""Which objects have lost their owners, and how owners that wait for their dependents go on.

Source: https://kubernetes.io/docs/concepts/architecture/garbage-collection/#owners-dependents
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from dragoman_kube.objects import Manifest, is_deleting, uid_of

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
