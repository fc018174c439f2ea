"""A cache of one collection of objects: what a list-watch reports, and at once what this process wrote itself.

Because own writes are visible at once, a controller that has just created an object finds it in its next
reconciliation, and does not create it twice while the watch event is on its way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dragoman_kube.objects import Key, Manifest, key_of, uid_of

Listener = Callable[[Manifest | None, Manifest | None], None]
"""Called with an object before and after a change; None before its creation and after its deletion."""

MAX_DELETED = 1000
"""Number of deleted objects whose versions are stored, so that a late response does not restore an object."""


class Cache:
    """The objects of one collection, by key. It is the `Sink` of a `ListWatch`."""

    def __init__(self) -> None:
        self.items: dict[Key, Manifest] = {}
        self.listeners: list[Listener] = []
        self._deleted: dict[str, int] = {}
        """Version at which an object was gone, by uid. It comes back if it had only lost the label of a selector."""
        self._listed_version = 0

    def put(self, manifest: Manifest) -> None:
        """Store an object from an event or from the response to a write, unless a newer version is known."""
        known = self.items.get(key_of(manifest))
        if version_of(manifest) <= self._deleted.get(uid_of(manifest), -1):
            return
        if known is None or version_of(known) < version_of(manifest):
            self._store(known, manifest)

    def remove(self, manifest: Manifest) -> None:
        """Remove an object that was deleted, or that a selector no longer selects; a successor of its name stays."""
        self._remove(manifest, version_of(manifest))

    def _remove(self, manifest: Manifest, version: int) -> None:
        key, uid = key_of(manifest), uid_of(manifest)
        known = self.items.get(key)
        self._deleted.pop(uid, None)
        self._deleted[uid] = version
        while len(self._deleted) > MAX_DELETED:
            del self._deleted[next(iter(self._deleted))]
        if known is not None and uid_of(known) == uid:
            del self.items[key]
            self._notify(known, None)

    def replace(self, manifests: Iterable[Manifest], resource_version: str) -> None:
        """Store a complete list, which was true at `resource_version`; newer objects stay.

        A version below that of the list before means that the server was restored from a backup: then the list
        replaces everything.
        """
        listed_version = int(resource_version)
        restored = listed_version < self._listed_version
        self._listed_version = listed_version
        listed = {key_of(manifest): manifest for manifest in manifests}
        for key, known in list(self.items.items()):
            current = listed.get(key)
            gone = current is None or uid_of(current) != uid_of(known)
            if gone and (restored or version_of(known) <= listed_version):
                self._remove(known, listed_version)
        if restored:
            self._deleted.clear()
            for key, manifest in listed.items():
                self._store(self.items.get(key), manifest)
        else:
            for manifest in listed.values():
                self.put(manifest)

    def _store(self, known: Manifest | None, manifest: Manifest) -> None:
        self.items[key_of(manifest)] = manifest
        self._notify(known, manifest)

    def _notify(self, before: Manifest | None, after: Manifest | None) -> None:
        for listener in self.listeners:
            listener(before, after)


def version_of(manifest: Mapping[str, Any]) -> int:
    """The resourceVersion as a number; API servers count upwards.

    Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions (comparable since
    v1.35; etcd's revisions before).
    """
    return int(manifest["metadata"]["resourceVersion"])
