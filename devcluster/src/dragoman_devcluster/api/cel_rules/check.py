"""Running the rules of a schema over an object, and the objects of a definition over its rules."""

from __future__ import annotations

from collections.abc import Iterator

import cel

from dragoman_devcluster.api.apply.fieldset import element_of, list_type
from dragoman_devcluster.api.cel_rules.rule import RuleError, check_fields, compiled
from dragoman_devcluster.api.cel_rules.values import cel_value
from dragoman_devcluster.api.errors import Cause
from dragoman_devcluster.api.objects import Json, Object
from dragoman_devcluster.api.structural import child_schema
from dragoman_devcluster.api.validation import shown

_RULES = "x-kubernetes-validations"
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


def rule_causes(schema: Object, obj: Object, live: Object | None, found: list[Cause]) -> list[Cause]:
    """The rules that an object breaks; `live` is what it replaces, `found` the violations of its schema."""
    if any(cause.reason in _BLOCKING for cause in found):
        return [Cause("FieldValueInvalid", _NOT_CHECKED, _NOWHERE)] if has_rules(schema) else []
    return list(_walk(schema, obj, live, "", root=True))


def has_rules(schema: Object) -> bool:
    """Whether there is a rule anywhere in a schema."""
    children = [
        *(schema.get("properties") or {}).values(),
        schema.get("items"),
        schema.get("additionalProperties"),
    ]
    return bool(schema.get(_RULES)) or any(has_rules(child) for child in children if isinstance(child, dict))


def _walk(schema: Object, value: Json, old: Json, path: str, *, root: bool = False) -> Iterator[Cause]:
    if value is None:
        return
    if schema.get(_RULES):
        yield from _check(schema, value, old, path, root=root)
    if isinstance(value, dict):
        for key, item in value.items():
            child = child_schema(schema, key)
            if child and not (root and key == "metadata"):
                named = key in (schema.get("properties") or {})
                at = (f"{path}.{key}" if path else key) if named else f"{path}[{key}]"
                yield from _walk(child, item, old.get(key) if isinstance(old, dict) else None, at)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        # Only the items of a list with keys are the same before and after.
        before = {}
        if list_type(schema) == "map" and isinstance(old, list):
            before = {element_of(schema, item): item for item in old}
        for index, item in enumerate(value):
            previous = before.get(element_of(schema, item)) if before else None
            yield from _walk(schema["items"], item, previous, f"{path}[{index}]")


def _check(schema: Object, value: Json, old: Json, path: str, *, root: bool) -> Iterator[Cause]:
    seen = cel_value(schema, value, root=root)
    before = None if old is None else cel_value(schema, old, root=root)
    for declared in schema[_RULES]:
        at = (path + str(declared.get("fieldPath", ""))).lstrip(".") or _NOWHERE
        try:
            rule = compiled(declared["rule"])
            previous = before
            if rule.needs_old and declared.get("optionalOldSelf"):
                previous = cel.OptionalValue.of(before) if old is not None else cel.OptionalValue.none()
            elif rule.needs_old and old is None:
                continue
            if rule.evaluate(seen, previous) is True:
                continue
            message = _message(declared, seen, previous)
        except RuleError as failed:
            rule_told = declared.get("message") or declared["rule"]
            told = f'Invalid value: "{schema.get("type", "object")}": {failed} evaluating rule: {rule_told}'
            yield Cause("FieldValueInvalid", told, path or _NOWHERE)
            continue
        reason = declared.get("reason", "FieldValueInvalid")
        by_reason = {
            "FieldValueForbidden": f"Forbidden: {message}",
            "FieldValueRequired": f"Required value: {message}",
            "FieldValueDuplicate": f"Duplicate value: {shown(value)}",
        }
        yield Cause(reason, by_reason.get(reason, f"Invalid value: {_quoted(value)}{message}"), at)


def _message(declared: Object, value: Json, old: Json) -> str:
    if declared.get("messageExpression"):
        try:
            message = compiled(declared["messageExpression"]).evaluate(value, old)
        except RuleError:
            message = None
        if isinstance(message, str) and message.strip() and "\n" not in message:
            return message
    return str(declared.get("message") or f"failed rule: {declared['rule']}")


def _quoted(value: Json) -> str:
    """A scalar as messages quote it; objects and lists are not repeated."""
    return "" if isinstance(value, dict | list) else f"{shown(value)}: "


def compile_causes(schema: Object, path: str, *, root: bool = True) -> Iterator[Cause]:
    """What is wrong with the rules of a schema in a definition; `path` is where the schema is."""
    for index, declared in enumerate(schema.get(_RULES) or ()):
        at = f"{path}.{_RULES}[{index}].rule"
        try:
            compiled(declared.get("rule", ""))
            check_fields(declared.get("rule", ""), schema, root=root)
        except RuleError as broken:
            told = f'Invalid value: {{"rule":"{declared.get("rule", "")}"}}: {broken}'
            yield Cause("FieldValueInvalid", told, at)
    for name, child in (schema.get("properties") or {}).items():
        yield from compile_causes(child, f"{path}.properties[{name}]", root=False)
    for part in ("items", "additionalProperties"):
        if isinstance(schema.get(part), dict):
            yield from compile_causes(schema[part], f"{path}.{part}", root=False)
