"""Server-side apply: `metadata.managedFields`, kept on every write, and how applied objects merge.

Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/ and sigs.k8s.io/structured-merge-diff, whose
rules this follows over plain sets of paths.
"""

from __future__ import annotations

import copy
import datetime
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import cast

from dragoman_devcluster.api.errors import ApiError, Cause
from dragoman_devcluster.api.fieldset import (
    FieldSet,
    Path,
    dotted,
    element_of,
    flatten,
    from_fields_v1,
    list_type,
    to_fields_v1,
    written,
)
from dragoman_devcluster.api.kinds import Kind
from dragoman_devcluster.api.objects import Json, Object, get
from dragoman_devcluster.api.structural import child_schema
from dragoman_kube.times import timestamp

_NEVER_OWNED = frozenset(
    ("f:metadata", f"f:{name}")
    for name in (
        "name", "namespace", "creationTimestamp", "selfLink", "uid", "generation", "managedFields",
        "resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds",
    )
)  # fmt: skip
_ROOTS = frozenset({("f:apiVersion",), ("f:kind",), ("f:metadata",)})


@dataclass(frozen=True)
class Manager:
    """Whose fields: a name, Apply or Update, and the subresource written through."""

    name: str
    operation: str
    subresource: str = ""


@dataclass(frozen=True)
class Entry:
    """One entry of managedFields. `time` is when its set last changed."""

    manager: Manager
    api_version: str
    time: str
    fields: FieldSet


def read_entries(obj: Object) -> list[Entry]:
    """The entries of an object's managedFields."""
    return [
        Entry(
            Manager(raw.get("manager", ""), raw.get("operation", "Update"), raw.get("subresource", "")),
            raw.get("apiVersion", ""),
            raw.get("time", ""),
            from_fields_v1(raw.get("fieldsV1") or {}),
        )
        for raw in get(obj, "metadata", "managedFields") or []
    ]


def write_entries(obj: Object, entries: Iterable[Entry]) -> None:
    """Put entries into an object's metadata, Apply before Update and older before newer, in place."""
    ordered = sorted(
        (entry for entry in entries if entry.fields),
        key=lambda entry: (
            entry.manager.operation,
            entry.time,
            entry.manager.name,
            entry.manager.subresource,
        ),
    )
    obj["metadata"].pop("managedFields", None)
    if ordered:
        obj["metadata"]["managedFields"] = [
            {
                "manager": entry.manager.name,
                "operation": entry.manager.operation,
                "apiVersion": entry.api_version,
                "time": entry.time,
                "fieldsType": "FieldsV1",
                "fieldsV1": to_fields_v1(entry.fields),
                **({"subresource": entry.manager.subresource} if entry.manager.subresource else {}),
            }
            for entry in ordered
        ]


def _ownable(paths: Iterable[Path]) -> FieldSet:
    return frozenset(path for path in paths if path and path not in _ROOTS and path[:2] not in _NEVER_OWNED)


def track_update(
    kind: Kind, live: Object | None, obj: Object, manager: Manager, now: datetime.datetime
) -> None:
    """Give `manager` the fields that an update changed, and remove them from all other managers, in place.

    Entries sent by the client replace the live ones, as on a real server: an empty list resets ownership.
    """
    before = flatten(kind.schema, live) if live else {}
    after = flatten(kind.schema, obj)
    set_now = _ownable(written(before, after))
    removed = _ownable(before.keys() - after.keys())
    sent = read_entries(obj)
    entries = sent if sent or not live else read_entries(live)
    own = next((entry for entry in entries if entry.manager == manager), None)
    own = own or Entry(manager, kind.api_version, "", frozenset())
    others = [
        replace(entry, fields=entry.fields - set_now - removed)
        for entry in entries
        if entry.manager != manager
    ]
    fields = (own.fields | set_now) - removed
    if fields != own.fields or set_now:
        own = replace(own, fields=fields, time=timestamp(now), api_version=kind.api_version)
    write_entries(obj, [*others, own])


def apply(
    kind: Kind, live: Object | None, patch: Object, manager: Manager, *, force: bool, now: datetime.datetime
) -> Object:
    """The object after a server-side apply, its managedFields included.

    Raises ApiError (Conflict) if the patch changes fields that others own, unless `force`.
    """
    if get(patch, "metadata", "managedFields"):
        raise ApiError("BadRequest", "metadata.managedFields must be nil")
    fields = _ownable(flatten(kind.schema, patch))
    base: Object = live or {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {}}
    result: Object = copy.deepcopy(merged(kind.schema, base, patch))
    entries = read_entries(base)
    before, after = flatten(kind.schema, base), flatten(kind.schema, result)
    changed = _ownable(written(before, after))
    others = [entry for entry in entries if entry.manager != manager]
    conflicts = [(entry, path) for entry in others for path in sorted(entry.fields & changed)]
    if conflicts and not force:
        raise _conflict(conflicts)
    others = [replace(entry, fields=entry.fields - changed) for entry in others]
    own = next((entry for entry in entries if entry.manager == manager), None)
    if own is not None:
        kept = fields.union(*(entry.fields for entry in others))
        result = without(kind.schema, result, own.fields - fields, kept)
    if own is None or own.fields != fields or own.api_version != kind.api_version:
        own = Entry(manager, kind.api_version, timestamp(now), fields)
    write_entries(result, [*others, own])
    return result


def _conflict(conflicts: list[tuple[Entry, Path]]) -> ApiError:
    causes = [
        Cause("FieldManagerConflict", f"conflict with {_manager_text(entry)}", dotted(path))
        for entry, path in conflicts
    ]
    named = [f"conflict with {_manager_text(entry)}: {dotted(path)}" for entry, path in conflicts]
    plural = "conflict" if len(named) == 1 else "conflicts"
    message = f"Apply failed with {len(named)} {plural}: " + ", ".join(named)
    return ApiError("Conflict", message, causes=causes)


def _manager_text(entry: Entry) -> str:
    """The owner of a field, as kubectl prints it."""
    message = f'"{entry.manager.name}"'
    if entry.manager.subresource:
        message += f' with subresource "{entry.manager.subresource}"'
    if entry.manager.operation == "Update":
        message += f" using {entry.api_version}"
    return message


def merged(schema: Object, live: Json, applied: Json) -> Json:
    """The live value with the applied one laid over it, by the schema's list and map types. Shares parts."""
    if isinstance(live, dict) and isinstance(applied, dict):
        if schema.get("x-kubernetes-map-type") == "atomic":
            return applied
        return {
            **live,
            **{
                key: merged(child_schema(schema, key) or {}, live[key], value) if key in live else value
                for key, value in applied.items()
            },
        }
    if isinstance(live, list) and isinstance(applied, list) and list_type(schema) in ("map", "set"):
        return _merged_list(schema, live, applied)
    return applied


def _merged_list(schema: Object, live: list[Json], applied: list[Json]) -> list[Json]:
    """The live items in their order, then the new ones; a real server takes the applied order."""
    result = {element_of(schema, item): item for item in live}
    for item in applied:
        element = element_of(schema, item)
        result[element] = merged(schema["items"], result[element], item) if element in result else item
    return list(result.values())


def without(schema: Object, value: Object, dropped: FieldSet, kept: FieldSet) -> Object:
    """The object less the `dropped` fields, unless a manager in `kept` owns them or anything below them.

    A container whose every owned field goes, goes too.
    """
    owned = {path[:depth] for path in kept for depth in range(1, len(path) + 1)}
    gone = {
        path[:depth] for path in dropped for depth in range(1, len(path) + 1) if path[:depth] not in owned
    } - {("f:metadata",)}
    return cast(Object, _without(schema, value, (), gone)) if gone else value


def _without(schema: Object, value: Json, path: Path, gone: set[Path]) -> Json:
    if isinstance(value, dict):
        kept = {}
        for key, item in value.items():
            at = (*path, f"f:{key}")
            if at not in gone:
                kept[key] = _without(child_schema(schema, key) or {}, item, at, gone)
        return kept
    if isinstance(value, list) and list_type(schema) in ("map", "set"):
        remaining = []
        for item in value:
            at = (*path, element_of(schema, item))
            if at not in gone:
                remaining.append(_without(schema["items"], item, at, gone))
        return remaining
    return value
