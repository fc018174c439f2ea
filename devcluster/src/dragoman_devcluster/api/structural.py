"""What a structural schema does to an object: prune, default, normalise.

Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

from dragoman_devcluster.api.objects import Json, Object
from dragoman_kube.quantity import canonical

PRESERVE = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"


def child_schema(schema: Object, key: str) -> Object | None:
    """The schema of an object's field or map entry; None where the schema does not know the field."""
    properties = schema.get("properties") or {}
    if key in properties:
        return properties[key]  # type: ignore[no-any-return]
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        return additional
    return {PRESERVE: True} if additional or schema.get(PRESERVE) else None


def nodes(schema: Object, value: Json, path: str = "") -> Iterator[tuple[Object, Object, str]]:
    """Every object in a value with its schema and its path, the outer ones first; they may be changed on the way."""
    if isinstance(value, dict):
        yield schema, value, path
        for key, item in list(value.items()):
            yield from nodes(child_schema(schema, key) or {}, item, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from nodes(schema["items"], item, f"{path}[{index}]")


def prune(schema: Object, value: Json) -> list[str]:
    """Remove in place what the schema does not have; returns the paths of what was removed."""
    dropped: list[str] = []
    for described, obj, path in nodes(schema, value):
        unknown = [key for key in obj if child_schema(described, key) is None]
        dropped += [f"{path}.{key}" if path else key for key in unknown]
        for key in unknown:
            del obj[key]
    return dropped


def apply_defaults(schema: Object, value: Json) -> None:
    """Fill in the defaults of missing fields, in place, and of null ones that may not be null."""
    for described, obj, _ in nodes(schema, value):
        for key, child in (described.get("properties") or {}).items():
            is_missing = key not in obj or (obj[key] is None and not child.get("nullable"))
            if is_missing and "default" in child:
                obj[key] = copy.deepcopy(child["default"])


def drop_empty(schema: Object, value: Json) -> None:
    """Remove empty maps and lists that are not required, in place, as built-in kinds are stored."""
    for described, obj, _ in nodes(schema, value):
        for key in list(obj):
            child = child_schema(described, key) or {}
            is_collection = child.get("type") == "array" or "additionalProperties" in child
            if is_collection and not obj[key] and key not in (described.get("required") or ()):
                del obj[key]


def drop_nulls(schema: Object, value: Json) -> None:
    """Remove null fields that are not nullable by the schema, in place; free-form ones stay."""
    for described, obj, _ in nodes(schema, value):
        for key in [key for key, item in obj.items() if item is None]:
            child = child_schema(described, key) or {}
            if (child.get("type") or child.get(INT_OR_STRING)) and not child.get("nullable"):
                del obj[key]


def normalise_quantities(schema: Object, value: Json) -> None:
    """Write every quantity in its canonical form (`1000m` is `1`), in place."""
    for described, obj, _ in nodes(schema, value):
        for key in obj:
            if (child_schema(described, key) or {}).get("format") == "quantity":
                obj[key] = canonical(obj[key])
