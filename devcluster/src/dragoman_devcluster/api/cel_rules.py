"""`x-kubernetes-validations`: the CEL rules of custom resources, each a `rule` and a `message`.

The rules have the standard functions of CEL, not those that Kubernetes adds, and see fields of the types that JSON has.
Source: https://kubernetes.io/docs/reference/using-api/cel/
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import cel

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


class RuleError(ValueError):
    """A rule that does not compile, or that fails on a value."""


@lru_cache(maxsize=4096)
def compiled(rule: str) -> Callable[[Json], Json]:
    """A function from `self` to the rule's result, which raises RuleError if it fails on a value.

    Raises RuleError for bad syntax and for `oldSelf`, which is not supported.
    """
    try:
        program = cel.compile(rule)
    except Exception as broken:
        raise RuleError(f"compilation failed: {broken}") from broken
    if "oldSelf" in program.variables():
        raise RuleError("the embedded API does not support oldSelf")

    def evaluate(value: Json) -> Json:
        try:
            return program.execute(cel.Context(variables={"self": value}))
        except KeyError as failed:
            raise RuleError(f"no such key: {failed.args[0]}") from failed
        except Exception as failed:
            raise RuleError(str(failed)) from failed
        except BaseException as failed:  # A panic inside the package is no Exception.
            if isinstance(failed, KeyboardInterrupt | SystemExit | GeneratorExit):
                raise
            raise RuleError("internal error") from failed

    return evaluate


def typed(schema: Object, value: Json) -> Json:
    """The value as rules on this schema see it: floats where it has numbers, no null that is not allowed."""
    if isinstance(value, dict):
        children = {key: child_schema(schema, key) or {} for key in value}
        return {
            key: typed(children[key], item)
            for key, item in value.items()
            if item is not None or children[key].get("nullable")
        }
    if isinstance(value, list):
        return [typed(schema.get("items") or {}, item) for item in value]
    if schema.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def rule_causes(schema: Object, obj: Object, found: list[Cause]) -> list[Cause]:
    """The rules that an object breaks; `found` are the violations of its schema."""
    if any(cause.reason in _BLOCKING for cause in found):
        return [Cause("FieldValueInvalid", _NOT_CHECKED, _NOWHERE)] if _has_rules(schema) else []
    # Rules see names, and nothing else of the metadata.
    metadata = obj.get("metadata") or {}
    names = {key: text for key, text in metadata.items() if key in ("name", "generateName")}
    return list(_walk(schema, {**obj, "metadata": names}, ""))


def _has_rules(schema: Object) -> bool:
    return bool(schema.get(RULES)) or any(_has_rules(child) for _, child in _children(schema))


def _children(schema: Object) -> Iterator[tuple[str, Object]]:
    """The schemas directly inside a schema, and where they are."""
    for name, child in (schema.get("properties") or {}).items():
        yield f"properties[{name}]", child
    for part in ("items", "additionalProperties"):
        if isinstance(schema.get(part), dict):
            yield part, schema[part]


def _walk(schema: Object, value: Json, path: str) -> Iterator[Cause]:
    if value is None:
        return
    if schema.get(RULES):
        yield from _check(schema, value, path)
    if isinstance(value, dict):
        for key, item in value.items():
            named = key in (schema.get("properties") or {})
            at = f"{path}.{key}".lstrip(".") if named else f"{path}[{key}]"
            yield from _walk(child_schema(schema, key) or {}, item, at)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, item in enumerate(value):
            yield from _walk(schema["items"], item, f"{path}[{index}]")


def _check(schema: Object, value: Json, path: str) -> Iterator[Cause]:
    seen = typed(schema, value)
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
        try:
            compiled(declared["rule"])
        except RuleError as broken:
            message = f'Invalid value: {{"rule":"{declared["rule"]}"}}: {broken}'
            yield Cause("FieldValueInvalid", message, f"{path}.{RULES}[{index}].rule")
    for part, child in _children(schema):
        yield from compile_causes(child, f"{path}.{part}")
