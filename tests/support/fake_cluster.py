"""A cluster in memory, with the verbs of `KubeClient`: for tests of what reads, watches and writes objects."""

import asyncio
import copy
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime
from typing import Any

from dragoman_kube.client import Listing
from dragoman_kube.errors import ClusterError, ConflictError, NotFoundError
from dragoman_kube.kinds import SERVICE, Kind
from dragoman_kube.objects import Key, key_of, labels_of, uid_of
from dragoman_kube.times import timestamp

Manifest = dict[str, Any]


class FakeCluster:
    """Objects, their versions, and watches of them.

    Attributes:
        calls: The writes, in order, such as ``create Service``, ``status TranslationDeployment`` and ``scale 3``.
        reads: The kinds of single objects that were read.
        failures: Errors, by verb and kind such as ``list Pod``, or by these and a namespace; of writes also by kind.
        unserved: Kinds that the API server does not serve.
        stalled: Kinds whose watches deliver nothing.
        admit: Called with each object before it is stored, as a mutating webhook.
        lag_s: Time of each request.
    """

    def __init__(self, *objects: Manifest) -> None:
        self.objects: dict[tuple[str, Key], Manifest] = {}
        self.version = 100
        self.now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
        self.calls: list[str] = []
        self.reads: list[str] = []
        self.failures: dict[str, ClusterError] = {}
        self.unserved: set[Kind] = set()
        self.stalled: set[Kind] = set()
        self.admit: Callable[[Manifest], None] = lambda manifest: None
        self.lag_s: float | None = None
        self.requests, self.max_requests = 0, 0
        """Reads that are in flight now, and their maximum."""
        self._history: list[tuple[int, str, Manifest | None, Manifest | None]] = []
        self._ends = 0
        self._changed = asyncio.Event()
        for manifest in objects:
            self.put(manifest)

    def put(self, manifest: Manifest, *, reported: bool = True) -> Manifest:
        """Store an object as another client writes it; unless `reported`, no watch shows the change."""
        index = manifest["kind"], key_of(manifest)
        before = self.objects.get(index)
        self.version += 1
        stored = copy.deepcopy(manifest)
        self.admit(stored)
        metadata = stored["metadata"]
        metadata.setdefault(
            "uid", before["metadata"]["uid"] if before else f"{manifest['kind']}-{self.version}"
        )
        metadata.setdefault("generation", 1)
        metadata.setdefault("creationTimestamp", timestamp(self.now))
        metadata["resourceVersion"] = str(self.version)
        if before is not None and before.get("spec") != stored.get("spec"):
            metadata["generation"] = before["metadata"]["generation"] + 1
        if manifest["kind"] == SERVICE.name:
            stored.setdefault("spec", {}).setdefault("clusterIP", f"10.0.0.{self.version % 250}")
        self.objects[index] = stored
        self._note(manifest["kind"], before, stored, reported=reported)
        return copy.deepcopy(stored)

    def edit(
        self, kind: Kind, key: Key, change: Callable[[Manifest], None], *, reported: bool = True
    ) -> Manifest:
        """Change an object as another client does."""
        manifest = copy.deepcopy(self.objects[kind.name, key])
        change(manifest)
        return self.put(manifest, reported=reported)

    def remove(self, kind: Kind, key: Key, *, reported: bool = True) -> None:
        """Delete an object at once, as another client does."""
        self.version += 1
        before = self.objects.pop((kind.name, key))
        self._note(kind.name, before, None, reported=reported)

    def collect_garbage(self) -> None:
        """Delete what belongs to objects that no longer exist, as the garbage collector of Kubernetes does."""
        while orphans := [
            (index, found)
            for index, found in self.objects.items()
            if (owners := found["metadata"].get("ownerReferences"))
            and not any(owner["uid"] in set(map(uid_of, self.objects.values())) for owner in owners)
        ]:
            for (kind, key), found in orphans:
                self.version += 1
                del self.objects[kind, key]
                self._note(kind, found, None)

    def found(self, kind: Kind, key: Key) -> Manifest:
        """The stored object itself; see `edit` and `put` for changes that watches show."""
        return self.objects[kind.name, key]

    async def settle(self) -> None:
        """Let the watches deliver what has changed."""
        for _ in range(20):
            await asyncio.sleep(0)

    def _note(
        self, kind: str, before: Manifest | None, after: Manifest | None, *, reported: bool = True
    ) -> None:
        if reported:
            self._history.append((self.version, kind, copy.deepcopy(before), copy.deepcopy(after)))
            self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def resume(self) -> None:
        """Let all watches deliver again."""
        self.stalled.clear()
        self._wake()

    def end_watches(self) -> None:
        """End all watches, as the server does after their time."""
        self._ends += 1
        self._wake()

    def _check(self, verb: str, kind: Kind, namespace: str = "") -> None:
        names = [f"{verb} {kind.name} {namespace}", f"{verb} {kind.name}"]
        for name in names if verb in ("get", "list", "watch") else [*names, kind.name]:
            if name in self.failures:
                raise self.failures[name]

    async def _lag(self) -> None:
        self.requests += 1
        self.max_requests = max(self.max_requests, self.requests)
        try:
            await asyncio.sleep(self.lag_s or 0)
        finally:
            self.requests -= 1

    async def get(self, kind: Kind, key: Key) -> Manifest | None:
        self._check("get", kind, key.namespace)
        self.reads.append(kind.name)
        return copy.deepcopy(self.objects.get((kind.name, key)))

    async def list(self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "") -> Listing:
        if self.lag_s is not None:
            await self._lag()
        self._check("list", kind, namespace)
        if kind in self.unserved:
            raise NotFoundError(f"list {kind.plural}", "there is no such kind", 404)
        found = [
            copy.deepcopy(manifest)
            for (name, key), manifest in self.objects.items()
            if name == kind.name and namespace in ("", key.namespace) and _is_selected(manifest, labels)
        ]
        return Listing(found, str(self.version))

    async def check_readable(self, kind: Kind, namespace: str = "", *, labels: str = "") -> None:
        await self.list(kind, namespace, labels=labels)
        self._check("watch", kind, namespace)

    async def watch(
        self,
        kind: Kind,
        namespace: str,
        resource_version: str,
        *,
        labels: str = "",
        fields: str = "",
        timeout_s: float = 60.0,
    ) -> AsyncGenerator[Manifest, None]:
        self._check("watch", kind, namespace)
        position, since, ends = 0, int(resource_version), self._ends
        while True:
            while kind in self.stalled or position == len(self._history):
                await self._changed.wait()
                if ends != self._ends:
                    return
            version, name, before, after = self._history[position]
            position += 1
            found = after or before
            if version <= since or name != kind.name or found is None:
                continue
            if namespace not in ("", key_of(found).namespace):
                continue
            was, is_ = _is_selected(before, labels), _is_selected(after, labels)
            if is_ and after:
                yield {"type": "MODIFIED" if was else "ADDED", "object": copy.deepcopy(after)}
            elif was and before:
                metadata = {**before["metadata"], "resourceVersion": str(version)}
                yield {"type": "DELETED", "object": {**copy.deepcopy(before), "metadata": metadata}}

    async def create(self, kind: Kind, manifest: Manifest) -> Manifest:
        self._written("create", kind, manifest)
        if (kind.name, key_of(manifest)) in self.objects:
            raise ConflictError(f"create {kind.name}", "already exists", 409)
        return self.put(manifest)

    async def replace(self, kind: Kind, manifest: Manifest) -> Manifest:
        self._written("replace", kind, manifest)
        self._precondition(kind, key_of(manifest), manifest)
        return self.put(manifest)

    async def apply(self, kind: Kind, manifest: Manifest, subresource: str = "") -> Manifest:
        self._written(subresource or "apply", kind, manifest)
        self._precondition(kind, key_of(manifest), manifest)
        before = self.objects.get((kind.name, key_of(manifest)))
        if subresource:
            assert before is not None
            return self.put({**before, "status": manifest["status"]})
        kept = {"status": before["status"]} if before and "status" in before else {}
        return self.put({**manifest, **kept})

    async def merge(self, kind: Kind, key: Key, fields: Manifest, subresource: str = "") -> Manifest:
        if subresource == "scale":
            self._written(f"scale {fields['spec']['replicas']}", kind, fields)
        else:
            self._written(subresource or "merge", kind, fields)
        if (kind.name, key) not in self.objects:
            raise NotFoundError(f"change {kind.name}", "there is no such object", 404)
        self._precondition(kind, key, fields)
        stored = self.put(_merged(self.objects[kind.name, key], fields))
        return {"kind": "Scale", "metadata": stored["metadata"]} if subresource == "scale" else stored

    async def delete(self, kind: Kind, key: Key, uid: str, *, grace_s: int | None = None) -> Manifest | None:
        self._written("delete", kind, {})
        found = self.objects.get((kind.name, key))
        if found is None:
            return None
        if uid_of(found) != uid:
            raise ConflictError(f"delete {kind.name}", "the uid differs", 409)
        if found["metadata"].get("finalizers"):
            return self.edit(
                kind, key, lambda each: each["metadata"].update(deletionTimestamp=timestamp(self.now))
            )
        self.remove(kind, key)
        return {"kind": "Status", "status": "Success"}

    async def serves(self, kind: Kind) -> bool:
        return kind not in self.unserved

    def _written(self, verb: str, kind: Kind, manifest: Manifest) -> None:
        self.calls.append(verb if verb.startswith("scale ") else f"{verb} {kind.name}")
        verb = verb.partition(" ")[0]
        self._check(verb, kind, (manifest.get("metadata") or {}).get("namespace", ""))

    def _precondition(self, kind: Kind, key: Key, manifest: Manifest) -> None:
        expected = (manifest.get("metadata") or {}).get("resourceVersion")
        found = self.objects.get((kind.name, key))
        if expected and (found is None or found["metadata"]["resourceVersion"] != expected):
            raise ConflictError(f"write {kind.name}", "it has changed", 409)


def _is_selected(manifest: Manifest | None, labels: str) -> bool:
    return manifest is not None and (not labels or labels.partition("=")[0] in labels_of(manifest))


def _merged(base: Manifest, change: Manifest) -> Manifest:
    """RFC 7386."""
    result = copy.deepcopy(base)
    for name, value in change.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict) and isinstance(result.get(name), dict):
            result[name] = _merged(result[name], value)
        else:
            result[name] = copy.deepcopy(value)
    return result
