"""Fields of an object as a set of paths, and their `fieldsV1` form.

A path is a tuple of elements as `fieldsV1` writes them: `f:NAME` for a field, `k:{…}` for a list item by its
keys, `v:…` for a set's value. An object's leaves are its scalars, its atomic lists and maps, and what is
empty; list items are members too, beside what is in them. A real server also records the maps and lists themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from dragoman_devcluster.api.objects import Json, Object
from dragoman_devcluster.api.structural import child_schema

Path: TypeAlias = tuple[str, ...]
FieldSet: TypeAlias = frozenset[Path]

_ITEM = object()
"""The value of a list's item in a flat object: it is there, and what is in it is compared by itself."""


def flatten(schema: Object, value: Json, path: Path = ()) -> dict[Path, Json]:
    """Every leaf of an object and every item of its lists that merge by key, by path, with what to compare it by."""
    return dict(_walk(schema, value, path))


def written(before: dict[Path, Json], after: dict[Path, Json]) -> FieldSet:
    """The paths that are new or have another value in `after`."""
    return frozenset(path for path, value in after.items() if path not in before or before[path] != value)


def _walk(schema: Object, value: Json, path: Path) -> Iterator[tuple[Path, Json]]:
    if isinstance(value, dict) and value and schema.get("x-kubernetes-map-type") != "atomic":
        for key, item in value.items():
            yield from _walk(child_schema(schema, key) or {}, item, (*path, f"f:{key}"))
    elif isinstance(value, list) and value and list_type(schema) in ("map", "set"):
        for item in value:
            element = element_of(schema, item)
            if element[:2] == "v:":
                yield (*path, element), item
            else:
                yield (*path, element), _ITEM
                yield from _walk(schema["items"], item, (*path, element))
    else:
        yield path, value


def list_type(schema: Object) -> str:
    """How a list merges: "map", "set" or "atomic"."""
    return str(schema.get("x-kubernetes-list-type", "atomic"))


def element_of(schema: Object, item: Json) -> str:
    """The path element of a list's item: its keys (with their defaults), or the value itself in a set."""
    if list_type(schema) == "set" or not isinstance(item, dict):
        return "v:" + _compact(item)
    keys = {}
    for key in schema.get("x-kubernetes-list-map-keys", ()):
        if key in item:
            keys[key] = item[key]
        elif "default" in (child := child_schema(schema["items"], key) or {}):
            keys[key] = child["default"]
    return "k:" + _compact(dict(sorted(keys.items())))


def _compact(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def to_fields_v1(paths: Iterable[Path]) -> Object:
    """Nest paths as `managedFields[].fieldsV1` does; "." marks a container that is owned itself."""
    root: Object = {}
    for path in sorted(paths):
        node = root
        for element in path:
            node = node.setdefault(element, {})
        node["."] = {}
    _strip_dots(root)
    return root


def _strip_dots(node: Object) -> None:
    for child in node.values():
        _strip_dots(child)
        if child.keys() == {"."}:
            child.clear()


def from_fields_v1(fields: Mapping[str, Json]) -> FieldSet:
    """The paths of a `fieldsV1` object."""
    return frozenset(_unnest(fields, ()))


def _unnest(node: Mapping[str, Json], path: Path) -> Iterator[Path]:
    for element, child in node.items():
        if element == ".":
            yield path
        elif not child:
            yield (*path, element)
        else:
            yield from _unnest(child, (*path, element))


def dotted(path: Path) -> str:
    """A path as messages write it: `.spec.containers[name="a"].image`."""
    message = ""
    for element in path:
        kind, _, text = element.partition(":")
        if kind == "f":
            message += f".{text}"
        elif kind == "k":
            message += (
                "[" + ",".join(f"{key}={_compact(value)}" for key, value in json.loads(text).items()) + "]"
            )
        else:
            message += f"[={text}]"
    return message
