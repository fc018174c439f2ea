"""Children, ReplicaSets and pods: list-watches, and an index by the TranslationDeployment that they belong to.

kopf watches TranslationDeployments only: it runs tasks for each object, which cost most of the time and memory when it
watched these as well, six for each TranslationDeployment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf

from dragoman_contract.kubernetes import LABEL_DEPLOYMENT
from dragoman_kube.client import KubeClient
from dragoman_kube.collection import Collection as ObjectCache
from dragoman_kube.kinds import POD, REPLICA_SET, Kind
from dragoman_kube.list_watch import ListWatch
from dragoman_kube.objects import Key, key_of, labels_of, uid_of
from dragoman_operator.observed.snapshot import CHILD_KINDS, Manifest

WATCHED_KINDS = (*CHILD_KINDS, REPLICA_SET, POD)


class OwnedIndex(Mapping[Key, Iterable[Manifest]]):
    """The objects of one kind, by their TranslationDeployment.

    Args:
        enqueue: Called with the key of each TranslationDeployment that a change concerns.
        forget: Called with namespace, name and uid of an object that was deleted or lost our label.
    """

    def __init__(
        self, kind: Kind, enqueue: Callable[[Key], None], forget: Callable[[Kind, Key, str], None]
    ) -> None:
        self._kind = kind
        self._enqueue = enqueue
        self._forget = forget
        self._objects: dict[Key, dict[str, Manifest]] = {}

    def note(self, before: Manifest | None, after: Manifest | None) -> None:
        """Store a change of one object; the listener of a cache."""
        if before is not None:
            self._remove(before)
            if after is None or uid_of(after) != uid_of(before):
                self._forget(self._kind, key_of(before), uid_of(before))
        if after is not None:
            # Nearly half of the memory of an object; who owns fields is enough to know.
            for entry in after["metadata"].get("managedFields") or ():
                entry.pop("fieldsV1", None)
            self._objects.setdefault(_owner_of(after), {})[uid_of(after)] = after
        for found in (before, after):
            if found is not None:
                self._enqueue(_owner_of(found))
                if self._kind in CHILD_KINDS:
                    # The label may name another object.
                    self._enqueue(key_of(found))

    def _remove(self, found: Manifest) -> None:
        owner = _owner_of(found)
        owned = self._objects.get(owner, {})
        owned.pop(uid_of(found), None)
        if not owned:
            self._objects.pop(owner, None)

    def __getitem__(self, key: Key) -> Iterable[Manifest]:
        return self._objects[key].values()

    def __iter__(self) -> Iterator[Key]:
        return iter(self._objects)

    def __len__(self) -> int:
        return len(self._objects)


def _owner_of(found: Manifest) -> Key:
    return Key(found["metadata"]["namespace"], labels_of(found)[LABEL_DEPLOYMENT])


def watches(kube: KubeClient, index: OwnedIndex, kind: Kind, namespaces: Sequence[str]) -> list[ListWatch]:
    """The list-watches that fill an index, one for each namespace; without `namespaces` one for all.

    They list again only if a watch cannot be resumed: `CacheCheck` finds what is missing.
    """
    made = []
    for namespace in namespaces or ("",):
        cache = ObjectCache()
        cache.listeners.append(index.note)
        made.append(
            ListWatch(
                kube, kind, cache, namespace=namespace, labels=LABEL_DEPLOYMENT, resync_s=inf, optional=True
            )
        )
    return made
