"""Merging an applied object into the live one, and removing what its manager no longer applies."""

from __future__ import annotations

from typing import cast

from dragoman_devcluster.api.apply.fieldset import FieldSet, Path, element_of, list_type
from dragoman_devcluster.api.objects import Json, Object
from dragoman_devcluster.api.structural import child_schema


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
    """The applied order; items that only the live list has stay behind the one that they followed."""
    ours = {element_of(schema, item): item for item in live}
    theirs = {element_of(schema, item): item for item in applied}
    following: dict[str | None, list[str]] = {}
    last: str | None = None
    for element in ours:
        if element in theirs:
            last = element
        else:
            following.setdefault(last, []).append(element)
    result = [ours[element] for element in following.get(None, ())]
    for element, item in theirs.items():
        result.append(merged(schema["items"], ours[element], item) if element in ours else item)
        result += [ours[follower] for follower in following.get(element, ())]
    return result


def without(schema: Object, value: Object, dropped: FieldSet, kept: FieldSet) -> Object:
    """The object less the `dropped` fields, unless someone in `kept` owns them or anything below them.

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
