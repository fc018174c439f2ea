"""What a structural schema does to an object: prune, default, normalise.

Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
"""

from __future__ import annotations

import copy

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


def prune(schema: Object, value: Json, path: str = "") -> list[str]:
    """Remove in place what the schema does not have; returns the paths of what was removed."""
    dropped: list[str] = []
    if isinstance(value, dict):
        for key in list(value):
            at = f"{path}.{key}" if path else key
            child = child_schema(schema, key)
            if child is None:
                del value[key]
                dropped.append(at)
            else:
                dropped += prune(child, value[key], at)
    elif isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            dropped += prune(schema["items"], item, f"{path}[{index}]")
    return dropped


def apply_defaults(schema: Object, value: Json) -> None:
    """Fill in the defaults of missing fields, in place, and of null ones that may not be null."""
    if isinstance(value, dict):
        for key, child in (schema.get("properties") or {}).items():
            present = key in value
            if present and value[key] is None and not child.get("nullable") and "default" in child:
                present = False
            if not present and "default" in child:
                value[key] = copy.deepcopy(child["default"])
            if key in value:
                apply_defaults(child, value[key])
        additional = schema.get("additionalProperties")
        if isinstance(additional, dict):
            for key in value.keys() - (schema.get("properties") or {}).keys():
                apply_defaults(additional, value[key])
    elif isinstance(value, list) and "items" in schema:
        for item in value:
            apply_defaults(schema["items"], item)


def drop_empty(schema: Object, value: Json) -> None:
    """Remove empty maps and lists that are not required, in place, as built-in kinds are stored."""
    if isinstance(value, dict):
        for key in list(value):
            child = child_schema(schema, key) or {}
            drop_empty(child, value[key])
            collection = child.get("type") == "array" or "additionalProperties" in child
            if collection and not value[key] and key not in (schema.get("required") or ()):
                del value[key]
    elif isinstance(value, list):
        for item in value:
            drop_empty(schema.get("items", {}), item)


def drop_nulls(schema: Object, value: Json) -> None:
    """Remove null fields that are not nullable by the schema, in place; free-form ones stay."""
    if isinstance(value, dict):
        for key in list(value):
            child = child_schema(schema, key) or {}
            declared = child.get("type") or child.get(INT_OR_STRING)
            if value[key] is None and declared and not child.get("nullable"):
                del value[key]
            else:
                drop_nulls(child, value[key])
    elif isinstance(value, list):
        for item in value:
            drop_nulls(schema.get("items", {}), item)


def normalise_quantities(schema: Object, value: Json) -> Json:
    """The value with every quantity in its canonical form (`1000m` is `1`); containers change in place."""
    if schema.get("format") == "quantity":
        return canonical(value)
    if isinstance(value, dict):
        for key in value:
            child = child_schema(schema, key)
            if child is not None:
                value[key] = normalise_quantities(child, value[key])
    elif isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            value[index] = normalise_quantities(schema["items"], item)
    return value
