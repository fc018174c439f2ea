"""Schemas of the built-in kinds, read from the models of the package `kubernetes`.

The package is generated from a real server's OpenAPI document, so that its models name every field, its
type and whether it is required. What they do not carry (merge keys, defaults) is in `builtin_traits`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import kubernetes.client

from dragoman_devcluster.api.builtin_traits import (
    ATOMIC_MODELS,
    DEFAULTS,
    ENUMS,
    INT_OR_STRING,
    LISTS,
    MINIMA,
    OPTIONAL,
    QUANTITIES,
)
from dragoman_devcluster.api.objects import Object

_SCALARS: dict[str, Object] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "datetime": {"type": "string", "format": "date-time"},
    "bytes": {"type": "string", "format": "byte"},
    "object": {"x-kubernetes-preserve-unknown-fields": True},
}
QUANTITY: Object = {"type": "string", "format": "quantity"}
MODEL = "x-dragoman-model"
"""On the schema of a model: its name."""

_CONTAINER = re.compile(r"(?P<outer>[Ll]ist|[Dd]ict)[\[(](?:str, )?(?P<inner>.+)[\])]")


@cache
def model_schema(model: str) -> Object:
    """The structural schema of a model such as `V1PodSpec`; shared, so not to be changed."""
    if model == "V1JSONSchemaProps":  # It contains itself, and a CRD's schema is checked elsewhere.
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    described: Any = getattr(kubernetes.client, model)
    fields = described.model_fields
    required = []
    properties: Object = {}
    for attribute, declared in described.openapi_types.items():
        name = described.attribute_map[attribute]
        schema = {**_schema(model, name, declared)}
        info = fields.get(attribute)
        if info is not None and info.description:
            schema["description"] = info.description
        if info is not None and info.is_required() and (model, name) not in OPTIONAL:
            required.append(name)
        if (model, name) in DEFAULTS:
            schema["default"] = DEFAULTS[model, name]
        if (model, name) in ENUMS:
            schema["enum"] = list(ENUMS[model, name])
        if (model, name) in MINIMA:
            schema["minimum"] = MINIMA[model, name]
        properties[name] = schema
    result: Object = {"type": "object", "properties": properties, MODEL: model}
    if model == "V1DeploymentStrategy":
        result["x-kubernetes-patch-strategy"] = "retainKeys"
    summary = (described.__doc__ or "").partition("Attributes:")[0].strip()
    if summary:
        result["description"] = summary
    if required:
        result["required"] = required
    if model in ATOMIC_MODELS:
        result["x-kubernetes-map-type"] = "atomic"
    return result


def _schema(model: str, name: str, declared: str) -> Object:
    if declared == "object" and name in INT_OR_STRING:
        return {"x-kubernetes-int-or-string": True}
    if name in QUANTITIES and declared == "str":
        return QUANTITY
    container = _CONTAINER.fullmatch(declared)
    if container is None:
        return _SCALARS[declared] if declared in _SCALARS else model_schema(declared)
    inner = _schema(model, "", container["inner"])
    if container["outer"] in ("Dict", "dict"):
        values = QUANTITY if name in QUANTITIES else inner
        traits: Object = {"x-kubernetes-map-type": "atomic"} if LISTS.get((model, name)) == "atomic" else {}
        return {"type": "object", "additionalProperties": values, **traits}
    trait = LISTS.get((model, name)) or (("type",) if name == "conditions" else "atomic")
    if isinstance(trait, str):
        merging: Object = {"x-kubernetes-patch-strategy": "merge"} if trait == "set" else {}
        return {"type": "array", "items": inner, "x-kubernetes-list-type": trait, **merging}
    return {
        "type": "array",
        "items": inner,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": list(trait),
        "x-kubernetes-patch-strategy": "merge,retainKeys" if name == "volumes" else "merge",
        "x-kubernetes-patch-merge-key": trait[0],
    }
