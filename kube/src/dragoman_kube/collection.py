"""The known objects of one kind: from list-watches, and at once from the responses to this process's own writes.

Because own writes are visible at once, a controller that has just created an object finds it in its next
reconciliation, and does not create it twice while the watch event is on its way. Which of two states of an object is
the newer one is decided by its resourceVersion, never by time: a watch may lag behind for minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dragoman_kube.objects import Key, Manifest, controller_of, drop_owned_fields, key_of, uid_of

Listener = Callable[[Manifest | None, Manifest | None], None]
"""Called with an object before and after a change; None before its creation and after its deletion.

A successor of the same name, with another uid, may follow an object directly.
"""

MAX_DELETED = 1000
"""Number of deleted objects whose versions are stored, so that a late response does not restore an object."""


class Collection:
    """The objects of one kind, by key and by the controller that owns them.

    Their managedFields name the managers without the fields; see `drop_owned_fields`.
    """

    def __init__(self) -> None:
        self.items: dict[Key, Manifest] = {}
        self.listeners: list[Listener] = []
        self._controlled: dict[str, dict[Key, Manifest]] = {}
        """Objects by the uid of their controller."""
        self._deleted: dict[str, int] = {}
        """Version at which an object was gone, by uid. It comes back if it had only lost the label of a selector."""
        self._listed_versions: dict[str, int] = {}

    def controlled(self, uid: str, namespace: str) -> list[Manifest]:
        """The objects whose controller has this uid. Owners are in the namespace of what they own."""
        found = self._controlled.get(uid, {})
        return [manifest for key, manifest in found.items() if key.namespace == namespace]

    def put(self, manifest: Manifest) -> None:
        """Store an object from an event or from the response to a write, unless a newer version is known."""
        known, version = self.items.get(key_of(manifest)), resource_version(manifest)
        if version <= self._deleted.get(uid_of(manifest), -1):
            return
        if known is None or resource_version(known) < version:
            self._store(known, manifest)

    def remove(self, manifest: Manifest) -> None:
        """Remove an object that was deleted, or that a selector no longer selects; a successor of its name stays."""
        self._remove(manifest, resource_version(manifest))

    def replace(self, manifests: Iterable[Manifest], version: str, namespace: str = "") -> None:
        """Store a complete list, of one namespace if given, which was true at `version`; newer objects stay.

        A version below that of the list before means that the server was restored from a backup: then the list
        replaces everything.
        """
        listed_version = int(version)
        restored = listed_version < self._listed_versions.get(namespace, 0)
        self._listed_versions[namespace] = listed_version
        listed = {key_of(manifest): manifest for manifest in manifests}
        if restored:
            self._deleted.clear()
        # Additions come first: what listeners compute from several objects is never empty in between.
        for key, manifest in listed.items():
            if restored:
                self._store(self.items.get(key), manifest)
            else:
                self.put(manifest)
        for key, known in list(self.items.items()):
            in_scope = not namespace or key.namespace == namespace
            if in_scope and key not in listed and (restored or resource_version(known) <= listed_version):
                self._remove(known, listed_version)

    def _store(self, known: Manifest | None, manifest: Manifest) -> None:
        key = key_of(manifest)
        drop_owned_fields(manifest)
        if known is not None:
            self._disown(key, known)
            if uid_of(known) != uid_of(manifest):
                self._bury(known, resource_version(manifest))
        self.items[key] = manifest
        if owner := controller_of(manifest):
            self._controlled.setdefault(owner["uid"], {})[key] = manifest
        self._notify(known, manifest)

    def _remove(self, manifest: Manifest, version: int) -> None:
        key, known = key_of(manifest), self.items.get(key_of(manifest))
        self._bury(manifest, version)
        if known is not None and uid_of(known) == uid_of(manifest):
            del self.items[key]
            self._disown(key, known)
            self._notify(known, None)

    def _bury(self, manifest: Manifest, version: int) -> None:
        self._deleted.pop(uid_of(manifest), None)
        self._deleted[uid_of(manifest)] = version
        while len(self._deleted) > MAX_DELETED:
            del self._deleted[next(iter(self._deleted))]

    def _disown(self, key: Key, known: Manifest) -> None:
        if owner := controller_of(known):
            controlled = self._controlled[owner["uid"]]
            del controlled[key]
            if not controlled:
                del self._controlled[owner["uid"]]

    def _notify(self, before: Manifest | None, after: Manifest | None) -> None:
        for listener in self.listeners:
            listener(before, after)


def resource_version(manifest: Mapping[str, Any]) -> int:
    """The resourceVersion as a number; API servers count upwards.

    Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions (comparable since
    v1.35; etcd's revisions before).
    """
    return int(manifest["metadata"]["resourceVersion"])
