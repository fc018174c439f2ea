"""`x-kubernetes-validations`: the CEL rules of custom resources, each a `rule` and a `message`."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman_devcluster.api.cel import RuleError, cel_value, compiled
from dragoman_devcluster.api.errors import Cause
from dragoman_devcluster.api.objects import Json, Object
from dragoman_devcluster.api.structural import child_schema
from dragoman_devcluster.api.validation import shown

RULES = "x-kubernetes-validations"
_BLOCKING = frozenset(
    {
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
        "FieldValueNotSupported",
    }
)
_NOWHERE = "<nil>"
"""How a server calls the object itself."""

_NOT_CHECKED = (
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the "
    "existing errors to complete validation"
)


def rule_causes(schema: Object, obj: Object, found: list[Cause]) -> list[Cause]:
    """The rules that an object breaks; `found` are the violations of its schema."""
    if any(cause.reason in _BLOCKING for cause in found):
        return [Cause("FieldValueInvalid", _NOT_CHECKED, _NOWHERE)] if _has_rules(schema) else []
    return list(_walk(schema, obj, "", root=True))


def _has_rules(schema: Object) -> bool:
    return bool(schema.get(RULES)) or any(_has_rules(child) for _, child in _children(schema))


def _children(schema: Object) -> Iterator[tuple[str, Object]]:
    """The schemas directly inside a schema, and where they are."""
    for name, child in (schema.get("properties") or {}).items():
        yield f"properties[{name}]", child
    for part in ("items", "additionalProperties"):
        if isinstance(schema.get(part), dict):
            yield part, schema[part]


def _walk(schema: Object, value: Json, path: str, *, root: bool = False) -> Iterator[Cause]:
    if value is None:
        return
    if schema.get(RULES):
        yield from _check(schema, value, path, root=root)
    if isinstance(value, dict):
        for key, item in value.items():
            child = child_schema(schema, key)
            if child and not (root and key == "metadata"):
                named = key in (schema.get("properties") or {})
                yield from _walk(
                    child, item, (f"{path}.{key}" if path else key) if named else f"{path}[{key}]"
                )
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, item in enumerate(value):
            yield from _walk(schema["items"], item, f"{path}[{index}]")


def _check(schema: Object, value: Json, path: str, *, root: bool) -> Iterator[Cause]:
    seen = cel_value(schema, value, root=root)
    for declared in schema[RULES]:
        try:
            if compiled(declared["rule"])(seen) is True:
                continue
            message = str(declared.get("message") or f"failed rule: {declared['rule']}")
            # Objects and lists are not repeated.
            quoted = "" if isinstance(value, dict | list) else f"{shown(value)}: "
            sentence = f"Invalid value: {quoted}{message}"
        except RuleError as failed:
            rule_text = declared.get("message") or declared["rule"]
            sentence = (
                f'Invalid value: "{schema.get("type", "object")}": {failed} evaluating rule: {rule_text}'
            )
        yield Cause("FieldValueInvalid", sentence, path or _NOWHERE)


def compile_causes(schema: Object, path: str) -> Iterator[Cause]:
    """What is wrong with the rules of a schema in a definition; `path` is where the schema is."""
    for index, declared in enumerate(schema.get(RULES) or ()):
        at = f"{path}.{RULES}[{index}]"
        try:
            compiled(declared["rule"])
        except RuleError as broken:
            message = f'Invalid value: {{"rule":"{declared["rule"]}"}}: {broken}'
            yield Cause("FieldValueInvalid", message, f"{at}.rule")
    for part, child in _children(schema):
        yield from compile_causes(child, f"{path}.{part}")
