"""The schemas in CustomResourceDefinitions: whether they can be understood, are structural, and compile."""

from __future__ import annotations

from jsonschema import Draft4Validator

from dragoman_devcluster.api.cel_rules import RULES, compile_causes
from dragoman_devcluster.api.errors import Cause
from dragoman_devcluster.api.objects import Object
from dragoman_devcluster.api.validation import schema_causes

_TEXT: Object = {"type": "string"}
_DRAFT_4 = Draft4Validator.META_SCHEMA
_SCHEMA_OF_SCHEMAS: Object = {
    "definitions": _DRAFT_4["definitions"],
    "type": "object",
    "properties": {
        **_DRAFT_4["properties"],
        "type": {"enum": ["object", "array", "string", "integer", "number", "boolean"]},
        "items": {"$ref": "#"},
        "enum": {"type": "array"},
        "format": _TEXT,
        "nullable": {"type": "boolean"},
        "required": {"type": "array", "items": _TEXT},
        "x-kubernetes-list-type": {"enum": ["atomic", "set", "map"]},
        "x-kubernetes-list-map-keys": {"type": "array", "items": _TEXT},
        RULES: {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["rule"],
                "properties": {"rule": _TEXT, "message": _TEXT},
                "additionalProperties": False,
            },
        },
    },
}
"""OpenAPI v3.0 is close to JSON Schema's draft 4. Of a rule's fields only two are supported here."""


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
    if schema.get("type") == "array" and not isinstance(schema.get("items"), dict):
        found.append(Cause("FieldValueRequired", "Required value: must be specified", f"{path}.items"))
    for name, child in (schema.get("properties") or {}).items():
        found += _structural_causes(child, f"{path}.properties[{name}]")
    for part in ("items", "additionalProperties"):
        if isinstance(schema.get(part), dict):
            found += _structural_causes(schema[part], f"{path}.{part}")
    return found
