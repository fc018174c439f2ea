"""Fields of an object as a set of paths, and their `fieldsV1` form.

A path is a tuple of elements as `fieldsV1` writes them: `f:NAME` for a field, `k:{…}` for a list item by its
keys, `v:…` for a set's value. An object's leaves are its scalars, its atomic lists and maps, and whatever is
empty; list items are members too, beside what is in them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from dragoman_devcluster.api.builtin_schema import MODEL
from dragoman_devcluster.api.objects import Json, Object
from dragoman_devcluster.api.structural import child_schema

Path: TypeAlias = tuple[str, ...]
FieldSet: TypeAlias = frozenset[Path]

_PRESENT = object()
"""The value of a container in a flat object: it is there, and that is all there is to compare."""

_EMPTY = object()
"""The value of a container with nothing in it: compares as a container, is owned as a leaf."""

_ALWAYS_THERE = frozenset(
    {
        "f:metadata",
        "f:spec",
        "f:status",
        "f:template",
        "f:strategy",
        "f:containers",
        "f:scaleTargetRef",
        "f:source",
    }
)
"""Containers that every object of a built-in kind has, so that no manager adds or owns them."""


def flatten(schema: Object, value: Json) -> dict[Path, Json]:
    """Every leaf and every container of an object but its root, by path, with what to compare it by."""
    return dict(_walk(schema, value, (), _ALWAYS_THERE if MODEL in schema else frozenset({"f:metadata"})))


def leaves(schema: Object, value: Json) -> FieldSet:
    """What the manager that applies an object owns: its leaves, its map entries and its list items."""
    flat = flatten(schema, value)
    return frozenset(path for path, held in flat.items() if held is not _PRESENT or path[-1][:2] == "k:")


def written(before: dict[Path, Json], after: dict[Path, Json]) -> FieldSet:
    """The paths that are new or have another value in `after`; containers compare by being there."""
    return frozenset(
        path for path, value in after.items() if path not in before or _differ(before[path], value)
    )


def _differ(one: Json, other: Json) -> bool:
    containers = (_PRESENT, _EMPTY)
    if any(one is container for container in containers) and any(
        other is container for container in containers
    ):
        return False
    return bool(one != other)


def _walk(schema: Object, value: Json, path: Path, always: frozenset[str]) -> Iterator[tuple[Path, Json]]:
    if isinstance(value, dict) and value and _is_granular(schema, value):
        if path and path[-1] not in always:
            yield path, _PRESENT
        for key, item in value.items():
            yield from _walk(child_schema(schema, key) or {}, item, (*path, f"f:{key}"), always)
    elif isinstance(value, list) and value and _is_granular(schema, value):
        if path[-1] not in always:
            yield path, _PRESENT
        for item in value:
            element = element_of(schema, item)
            if element[:2] == "v:":
                yield (*path, element), item
            else:
                yield (*path, element), _PRESENT
                yield from _items(schema["items"], item, (*path, element), always)
    elif _is_granular(schema, value):
        yield path, _EMPTY
    else:
        yield path, value


def _is_granular(schema: Object, value: Json) -> bool:
    if isinstance(value, dict):
        return schema.get("x-kubernetes-map-type") != "atomic"
    return isinstance(value, list) and list_type(schema) in ("map", "set")


def _items(schema: Object, item: Object, path: Path, always: frozenset[str]) -> Iterator[tuple[Path, Json]]:
    for key, value in item.items():
        yield from _walk(child_schema(schema, key) or {}, value, (*path, f"f:{key}"), always)


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
