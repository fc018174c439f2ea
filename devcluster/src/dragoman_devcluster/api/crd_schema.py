"""The schemas in CustomResourceDefinitions: whether they can be understood, are structural, and compile."""

from __future__ import annotations

from dragoman_devcluster.api.cel_rules.check import compile_causes
from dragoman_devcluster.api.errors import Cause
from dragoman_devcluster.api.objects import Object
from dragoman_devcluster.api.validation import schema_causes

_TEXT: Object = {"type": "string"}
_TEXTS: Object = {"type": "array", "items": _TEXT}
_FLAG: Object = {"type": "boolean"}
_NUMBER: Object = {"type": "number"}
_COUNT: Object = {"type": "integer", "minimum": 0}
_NESTED: Object = {"$ref": "#"}
_MANY: Object = {"type": "array", "items": _NESTED}
_SCHEMA_OF_SCHEMAS: Object = {
    "type": "object",
    "properties": {
        "type": {"enum": ["object", "array", "string", "integer", "number", "boolean"]},
        "properties": {"type": "object", "additionalProperties": _NESTED},
        "additionalProperties": {"anyOf": [{"type": "boolean"}, _NESTED]},
        "items": _NESTED,
        "not": _NESTED,
        **dict.fromkeys(("allOf", "anyOf", "oneOf"), _MANY),
        **dict.fromkeys(("required", "x-kubernetes-list-map-keys"), _TEXTS),
        **dict.fromkeys(("format", "description", "title", "pattern"), _TEXT),
        **dict.fromkeys(
            ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _COUNT
        ),
        **dict.fromkeys(("minimum", "maximum"), _NUMBER),
        "multipleOf": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
        **dict.fromkeys(
            (
                "nullable",
                "uniqueItems",
                "exclusiveMinimum",
                "exclusiveMaximum",
                "x-kubernetes-int-or-string",
                "x-kubernetes-preserve-unknown-fields",
                "x-kubernetes-embedded-resource",
            ),
            _FLAG,
        ),
        "enum": {"type": "array"},
        "x-kubernetes-list-type": {"enum": ["atomic", "set", "map"]},
        "x-kubernetes-map-type": {"enum": ["atomic", "granular"]},
        "x-kubernetes-validations": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["rule"],
                "properties": {
                    **dict.fromkeys(("rule", "message", "messageExpression", "reason", "fieldPath"), _TEXT),
                    "optionalOldSelf": {"type": "boolean"},
                },
            },
        },
    },
}
"""What the server has to be able to rely on in the schema of a definition."""


def definition_causes(schema: Object, path: str) -> list[Cause]:
    """What is wrong with the schema of a definition; `path` is where it is."""
    malformed = schema_causes(_SCHEMA_OF_SCHEMAS, schema, (path,))
    if malformed:
        return malformed
    found = _structural_causes(schema, path)
    if schema.get("type") != "object":
        told = f'Invalid value: "{schema.get("type", "")}": must be object at the root'
        found.append(Cause("FieldValueInvalid", told, f"{path}.type"))
    return [*found, *compile_causes(schema, path)]


def _structural_causes(schema: Object, path: str) -> list[Cause]:
    found = []
    if not schema.get("type") and not (
        schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    ):
        told = "Required value: must not be empty for specified object fields"
        found.append(Cause("FieldValueRequired", told, f"{path}.type"))
    if schema.get("properties") and isinstance(schema.get("additionalProperties"), dict):
        told = "Forbidden: additionalProperties and properties are mutual exclusive"
        found.append(Cause("FieldValueForbidden", told, f"{path}.additionalProperties"))
    if schema.get("type") == "array" and not isinstance(schema.get("items"), dict):
        found.append(Cause("FieldValueRequired", "Required value: must be specified", f"{path}.items"))
    if schema.get("x-kubernetes-list-type") == "map" and not schema.get("x-kubernetes-list-map-keys"):
        told = "Required value: must not be empty if x-kubernetes-list-type is map"
        found.append(Cause("FieldValueRequired", told, f"{path}.x-kubernetes-list-map-keys"))
    for name, child in (schema.get("properties") or {}).items():
        found += _structural_causes(child, f"{path}.properties[{name}]")
    for part in ("items", "additionalProperties"):
        if isinstance(schema.get(part), dict):
            found += _structural_causes(schema[part], f"{path}.{part}")
    return found
