"""The cache of observed objects: indices, and the responses to our own writes.

An index lags behind: a watch event takes its time, and kopf indexes it a tenth of a second later. A reconciliation that
does not see the writes of its predecessor would repeat them, so the response to a write is used until the index has its
version.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from dragoman_contract.kubernetes import LABEL_DEPLOYMENT
from dragoman_kube.client import KubeClient
from dragoman_kube.collection import resource_version as version_of
from dragoman_kube.errors import ClusterError, RefusedError
from dragoman_kube.kinds import POD, REPLICA_SET, Kind
from dragoman_kube.objects import Key, uid_of
from dragoman_operator.observed.snapshot import CHILD_KINDS, TRANSLATION_DEPLOYMENT, Manifest

CACHED_KINDS = (TRANSLATION_DEPLOYMENT, *CHILD_KINDS, REPLICA_SET, POD)
LEARNED_S = 10.0
"""Maximum time for which the response to a write is used. By then the index has it, or the object was deleted."""
MAX_DELETED = 1000
"""Number of deleted uids that are kept, for responses that arrive after the event of the deletion."""


def label_of(kind: Kind) -> str:
    """Label selector of the objects of a kind; empty for all."""
    return "" if kind is TRANSLATION_DEPLOYMENT else LABEL_DEPLOYMENT


Index = Mapping[Key, Iterable[Manifest]]
"""Bodies by the TranslationDeployment that they belong to."""


class Cache:
    """TranslationDeployments, their children, ReplicaSets and pods."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._indices: dict[str, Index] = {}
        self._learned: dict[tuple[Kind, Key], tuple[float, Manifest]] = {}
        self._deleted: dict[str, None] = {}
        self._ghosts: set[tuple[str, int]] = set()
        """Uid and version of objects that are in an index and no longer in the cluster. One that had only lost our
        label comes back with a newer version."""
        self.unknown: set[str] = set()
        """Namespaces that may no longer be listed; an empty name is the whole cluster."""

    def bind(self, indices: Mapping[str, Index]) -> None:
        """Set indices, by the plural of their kind."""
        self._indices.update(indices)

    def get(self, kind: Kind, key: Key) -> Manifest | None:
        """The TranslationDeployment, or its child of this kind; None without one that has our label."""
        named = (found for found in self._all(kind, key) if found["metadata"]["name"] == key.name)
        # A deleted object and its successor may both be indexed for a moment.
        indexed = max(named, key=version_of, default=None)
        learned_at, learned = self._learned.get((kind, key), (0.0, None))
        if learned is None:
            return indexed
        newer = indexed is None or version_of(learned) > version_of(indexed)
        if newer and self._clock() - learned_at < LEARNED_S:
            return learned
        del self._learned[kind, key]
        return indexed

    def replica_sets(self, key: Key) -> list[Manifest]:
        """Those with the label of a TranslationDeployment, regardless of their owner."""
        return list(self._all(REPLICA_SET, key))

    def pods(self, key: Key) -> list[Manifest]:
        """Those with the label of a TranslationDeployment, regardless of their owner."""
        return list(self._all(POD, key))

    def readable_pods(self, key: Key) -> list[Manifest] | None:
        """As `pods`; None if they may no longer be read: the known ones may be outdated."""
        return None if self.unknown & {"", key.namespace} else self.pods(key)

    def learn(self, kind: Kind, manifest: Manifest) -> None:
        """Store the response to a write."""
        metadata = manifest["metadata"]
        if metadata["uid"] not in self._deleted:
            self._learned[kind, Key(metadata["namespace"], metadata["name"])] = self._clock(), manifest

    def forget(self, kind: Kind, key: Key, uid: str) -> None:
        """An object was deleted, or lost our label.

        `key` is its own namespace and name.
        """
        self._deleted[uid] = None
        while len(self._deleted) > MAX_DELETED:
            del self._deleted[next(iter(self._deleted))]
        learned = self._learned.get((kind, key))
        if learned is not None and learned[1]["metadata"]["uid"] == uid:
            del self._learned[kind, key]

    def entries(self, kind: Kind) -> Iterator[tuple[Key, Manifest]]:
        """The indexed objects of a kind without ghosts, by the TranslationDeployment that they belong to."""
        for key in list(self._indices.get(kind.plural, {})):
            for found in self._all(kind, key):
                yield key, found

    def ignore(self, ghost: Manifest) -> None:
        """Ignore an object that is in an index and no longer in the cluster."""
        self._ghosts.add((uid_of(ghost), version_of(ghost)))

    def _all(self, kind: Kind, key: Key) -> Iterator[Manifest]:
        bodies = self._indices.get(kind.plural, {}).get(key, ())
        if not self._ghosts:
            return iter(bodies)
        return (found for found in bodies if (uid_of(found), version_of(found)) not in self._ghosts)


log = logging.getLogger(__name__)

SETTLE_S = 5.0
"""Delay of the check after the first object of a new list: several kinds are usually listed together."""


class CacheCheck:
    """Finds objects that are in kopf's indices and no longer in the cluster, by lists of metadata.

    If a watch cannot be resumed, kopf lists again and keeps objects in its indices that were deleted in the meantime. A
    deleted pod would count for ever, and a deleted Service would not be created again.

    Args:
        namespaces: The managed namespaces; empty: all.
        every_s: Seconds between two checks without a new list.
    """

    def __init__(
        self,
        kube: KubeClient,
        cache: Cache,
        enqueue: Callable[[Key], None],
        namespaces: Sequence[str],
        every_s: float,
    ) -> None:
        self._kube = kube
        self._cache = cache
        self._enqueue = enqueue
        self._namespaces = namespaces
        self._every_s = every_s
        self._relisted = asyncio.Event()

    def relisted(self) -> None:
        """kopf has listed a kind again."""
        self._relisted.set()

    async def run(self) -> None:
        """Check after each new list and every `every_s`, until cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every_s):
                    await self._relisted.wait()
            await asyncio.sleep(SETTLE_S)
            self._relisted.clear()
            await self.check()

    async def check(self) -> None:
        """List all kinds once; those that cannot be listed are left unchanged."""
        for namespace in self._namespaces or ("",):
            try:
                for kind in CACHED_KINDS:
                    await self._check(kind, namespace)
                self._cache.unknown.discard(namespace)
            except RefusedError as error:
                log.warning("%s; objects in this namespace are not scaled", error)
                self._cache.unknown.add(namespace)
            except ClusterError as error:
                log.warning("the cache was not checked: %s", error)

    async def _check(self, kind: Kind, namespace: str) -> None:
        listing = await self._kube.list(kind, namespace, labels=label_of(kind), metadata_only=True)
        listed, version = set(map(uid_of, listing.items)), int(listing.resource_version)
        for key, found in list(self._cache.entries(kind)):
            if namespace not in ("", key.namespace) or uid_of(found) in listed or version_of(found) > version:
                continue
            self._cache.ignore(found)
            log.info("%s %s was deleted without an event", kind.name, found["metadata"]["name"])
            self._enqueue(key)
