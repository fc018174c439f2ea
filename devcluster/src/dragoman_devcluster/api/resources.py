"""The verbs on objects: what a client sends becomes what the store holds."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, replace

from dragoman_devcluster.api import lifecycle, patches, strategies
from dragoman_devcluster.api.admission import Admission
from dragoman_devcluster.api.crds import CRDS, kind_of
from dragoman_devcluster.api.errors import (
    ApiError,
    Cause,
    failed_precondition,
    invalid,
    named_details,
    no_such_object,
    qualified,
)
from dragoman_devcluster.api.kinds import Kind
from dragoman_devcluster.api.managed_fields import Manager, apply, track_update
from dragoman_devcluster.api.objects import Json, Object, get, parse_timestamp
from dragoman_devcluster.api.request import Options, Target
from dragoman_devcluster.api.store import Key, Store
from dragoman_devcluster.api.structural import apply_defaults

Clock = Callable[[], datetime.datetime]

EVENT_LIFETIME = datetime.timedelta(hours=1)
"""How long Events are kept, counted from their creation. Source: kube-apiserver --event-ttl."""


@dataclass(frozen=True)
class Answer:
    """What a verb answers: the body and the HTTP status."""

    body: Object
    code: int = 200


class Resources:
    """Create, read, update, patch and delete objects of every kind. `clock` returns the current time, aware."""

    def __init__(self, store: Store, admission: Admission, clock: Clock) -> None:
        self.store = store
        self.clock = clock
        self._events_expired = clock()
        self._admission = admission

    def read(self, target: Target) -> Object:
        """One object, shared; ApiError (NotFound) if there is none."""
        found = self.store.get(target.kind.key(target.namespace, target.name))
        if found is None:
            raise no_such_object(target.kind.group, target.kind.plural, target.name)
        return found

    def create(self, target: Target, sent: Object, options: Options, manager: str) -> Answer:
        """Create an object; ApiError (AlreadyExists, Invalid, BadRequest) if that cannot be."""
        kind = target.kind
        obj = self._admission.decode(kind, sent, strict=options.is_strict)
        now = self.clock()
        obj = lifecycle.prepare_create(target, obj, now)
        return self._insert(target, obj, options, Manager(manager, "Update"))

    def _insert(self, target: Target, obj: Object, options: Options, manager: Manager | None) -> Answer:
        kind, name = target.kind, obj["metadata"]["name"]
        key = kind.key(target.namespace, name)
        if kind.resource == "events":
            self._expire_events()
        self._admission.check_namespace(target, name)
        if self.store.get(key) is not None:
            raise ApiError(
                "AlreadyExists",
                f'{qualified(kind.plural, kind.group)} "{name}" already exists',
                details=named_details(kind.group, kind.plural, name),
            )
        if manager is not None:
            # Before the server adds what is its own: a manager owns what it sent, and the defaults.
            track_update(kind, None, obj, manager, self.clock())
        if kind.custom:
            # The default of the status, which no manager owns.
            apply_defaults(kind.schema, obj)
        else:
            strategies.complete_new(kind.resource, obj)
        self._admission.allocate(kind, obj)
        self._admission.validate(kind, obj, None)
        stored = obj if options.dry_run else self.store.put(key, obj)
        return Answer(stored, 201)

    def _expire_events(self) -> None:
        """Delete Events that are too old, at most once a minute."""
        now = self.clock()
        if now - self._events_expired < datetime.timedelta(minutes=1):
            return
        self._events_expired = now
        for event in self.store.listed("events"):
            meta = event["metadata"]
            made = parse_timestamp(meta["creationTimestamp"])
            if made is not None and now - made > EVENT_LIFETIME:
                self.store.remove(Key("events", meta["namespace"], meta["name"]))

    def update(
        self, target: Target, sent: Object, options: Options, manager: str, written_through: str = ""
    ) -> Answer:
        """Replace an object, or its status through the subresource; `written_through` names another one."""
        live = self.read(target)
        obj = self._admission.decode(target.kind, sent, strict=options.is_strict)
        # A real server does not record the manager of a custom resource's scale.
        untracked = target.kind.custom and written_through
        owner = None if untracked else Manager(manager, "Update", written_through or target.subresource)
        return self._replace(target, live, obj, options, owner)

    def rewrite(self, target: Target, obj: Object, options: Options) -> None:
        """Store a changed object as it is: the server's own writes belong to no manager."""
        if not options.dry_run:
            self.store.put(target.kind.key(target.namespace, target.name), obj)

    def patch(self, target: Target, body: Json, media_type: str, options: Options, manager: str) -> Answer:
        """Patch an object: JSON, merge, strategic merge or server-side apply, by the media type."""
        if media_type == patches.APPLY_PATCH:
            return self.apply(target, body, options)
        live = self.read(target)
        kind = target.kind
        if media_type == patches.JSON_PATCH:
            sent = patches.json_patch(live, body)
        elif media_type == patches.MERGE_PATCH:
            sent = patches.merge_patch(live, body)
        elif media_type == patches.STRATEGIC_PATCH and not kind.custom:
            sent = patches.strategic_patch(kind.schema, live, body)
        else:
            raise ApiError(
                "UnsupportedMediaType",
                "the body of the request was in an unknown format - accepted media types include: "
                + ", ".join(patches.served(custom=kind.custom)),
            )
        obj = self._admission.decode(kind, sent, strict=options.is_strict)
        return self._replace(target, live, obj, options, Manager(manager, "Update", target.subresource))

    def apply(self, target: Target, body: Json, options: Options, written_through: str = "") -> Answer:
        """Server-side apply: create the object, or merge into it what this manager applies.

        `written_through` names a subresource other than the status.
        """
        kind = target.kind
        if not options.field_manager:
            cause = Cause("FieldValueRequired", "Required value: is required for apply patch", "fieldManager")
            raise invalid("meta.k8s.io", "PatchOptions", "", [cause])
        sent = self._admission.decode_apply(kind, body, target)
        manager = Manager(options.field_manager, "Apply", written_through or target.subresource)
        live = self.store.get(kind.key(target.namespace, target.name))
        if live is None:
            if target.subresource:
                raise no_such_object(kind.group, kind.plural, target.name)
            if uid := get(sent, "metadata", "uid"):
                raise failed_precondition(kind.group, kind.plural, target.name, "UID", uid, "none")
            applied = apply(kind, None, sent, manager, force=options.force, now=self.clock())
            obj = self._admission.decode(kind, applied, strict=options.is_strict)
            managed = obj["metadata"].get("managedFields")
            obj = lifecycle.prepare_create(target, obj, self.clock())
            obj["metadata"]["managedFields"] = managed
            return self._insert(target, obj, options, None)
        applied = apply(kind, live, sent, manager, force=options.force, now=self.clock())
        obj = self._admission.decode(kind, applied, strict=options.is_strict)
        return self._replace(target, live, obj, options, None)

    def _replace(
        self,
        target: Target,
        live: Object,
        sent: Object,
        options: Options,
        manager: Manager | None,
    ) -> Answer:
        """Store the successor of `live`; without a manager, the sender wrote managedFields itself (apply)."""
        kind = target.kind
        obj = lifecycle.prepare_update(target, live, sent)
        if cause := lifecycle.finalizer_cause(live, obj):
            raise invalid(kind.group, kind.name, target.name, [cause])
        self._admission.allocate(kind, obj)
        self._admission.validate(kind, obj, live)
        generation = lifecycle.next_generation(kind, live, obj)
        if generation is not None:
            obj["metadata"]["generation"] = generation
        if manager is not None:
            track_update(kind, live, obj, manager, self.clock())
        key = kind.key(target.namespace, target.name)
        if options.dry_run or _same(obj, live):
            return Answer(obj if options.dry_run else live)
        if lifecycle.released(obj):
            self.store.remove(key, obj)
            self._settle(kind)
            return Answer(obj)
        return Answer(self.store.put(key, obj))

    def delete(self, target: Target, options: Options, preconditions: Object) -> Answer:
        """Delete an object: at once, or marked as terminating until its finalizers and its node are done."""
        live = self.read(target)
        kind, meta = target.kind, live["metadata"]
        if options.propagation not in ("", "Background"):
            raise ApiError(
                "BadRequest",
                f"propagationPolicy: the embedded API supports Background, not {options.propagation}",
            )
        for field, name in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
            wanted = preconditions.get(field)
            if wanted and wanted != meta[field]:
                raise failed_precondition(kind.group, kind.plural, target.name, name, wanted, meta[field])
        decided = lifecycle.delete(kind, live, options.grace_period_s, self.clock())
        key = kind.key(target.namespace, target.name)
        if decided is not None:
            if not options.dry_run and decided is not live:
                decided = self.store.put(key, decided)
                self._settle(kind)
            return Answer(decided)
        if not options.dry_run:
            self.store.remove(key)
            self._settle(kind)
        if kind.resource in ("pods", "services", "serviceaccounts", "persistentvolumeclaims"):
            return Answer(live)
        return Answer(_success(target, str(meta["uid"])))

    def _settle(self, kind: Kind) -> None:
        """Finish the deletion of CustomResourceDefinitions: their objects first, then themselves."""
        if not kind.custom and kind.resource != CRDS.resource:
            return
        for crd in self.store.listed(CRDS.resource):
            if not crd["metadata"].get("deletionTimestamp"):
                continue
            served = kind_of(crd)
            for obj in self.store.listed(served.resource):
                meta = obj["metadata"]
                # A deletion settles too: it may have deleted the rest.
                gone = self.store.get(served.key(meta.get("namespace", ""), meta["name"])) is None
                if not gone and not meta.get("deletionTimestamp"):
                    self.delete(Target(served, meta.get("namespace", ""), meta["name"]), Options(), {})
            if not self.store.listed(served.resource):
                self.store.remove(CRDS.key("", crd["metadata"]["name"]))

    def delete_collection(self, target: Target, options: Options, chosen: list[Object]) -> list[Object]:
        """Delete each of the chosen objects; returns them as they were."""
        for obj in chosen:
            meta = obj["metadata"]
            at = replace(target, namespace=meta.get("namespace", ""), name=meta["name"])
            self.delete(at, options, {})
        return chosen


def _same(obj: Object, live: Object) -> bool:
    """Whether an update changes nothing; when managedFields were written does not count."""

    def timeless(value: Object) -> Object:
        entries = get(value, "metadata", "managedFields") or []
        kept = [{key: item for key, item in entry.items() if key != "time"} for entry in entries]
        return {**value, "metadata": {**value["metadata"], "managedFields": kept}}

    return timeless(obj) == timeless(live)


def _success(target: Target, uid: str) -> Object:
    kind = target.kind
    details = {**named_details(kind.group, kind.plural, target.name), "uid": uid}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
