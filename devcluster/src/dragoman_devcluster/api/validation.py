"""Validation of an object against its structural schema, reported field by field as a real server does.

The schema is checked by jsonschema (OpenAPI v3.0 is close to its draft 4); the wording follows
k8s.io/kube-openapi's validate package and k8s.io/apimachinery's field errors.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import jsonschema
from jsonschema import Draft4Validator, FormatChecker
from jsonschema.validators import extend

from dragoman_devcluster.api.errors import Cause
from dragoman_devcluster.api.objects import Json, Object
from dragoman_kube import quantity

_FORMATS = FormatChecker(formats=())
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


@_FORMATS.checks("date-time", raises=ValueError)
def _date_time(value: Json) -> bool:
    return not isinstance(value, str) or datetime.datetime.fromisoformat(value).tzinfo is not None


@_FORMATS.checks("byte")
def _byte(value: Json) -> bool:
    return not isinstance(value, str) or _BASE64.fullmatch(value) is not None


@_FORMATS.checks("quantity", raises=ValueError)
def _quantity(value: Json) -> bool:
    quantity.parse(value)
    return True


def _type(validator: Any, types: Json, instance: Json, schema: Mapping[str, Json]) -> Iterable[Any]:
    if instance is None and schema.get("nullable"):
        return
    if (
        schema.get("format") == "quantity"
        and not isinstance(instance, bool)
        and validator.is_type(instance, "number")
    ):
        return
    if not validator.is_type(instance, types):
        yield jsonschema.ValidationError(f"must be of type {types}")


def _int_or_string(_: Any, wanted: Json, instance: Json, schema: Mapping[str, Json]) -> Iterable[Any]:
    legal = isinstance(instance, str | int) and not isinstance(instance, bool)
    if wanted and not legal and not (instance is None and schema.get("nullable")):
        yield jsonschema.ValidationError("must be of type integer,string")


def _list_type(_: Any, wanted: Json, instance: Json, schema: Mapping[str, Json]) -> Iterable[Any]:
    if wanted not in ("map", "set") or not isinstance(instance, list):
        return
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    seen: list[Json] = []
    for index, item in enumerate(instance):
        shown = {key: item.get(key) for key in keys} if keys and isinstance(item, dict) else item
        if shown in seen:
            yield jsonschema.ValidationError("duplicate", path=[index], instance=shown)
        seen.append(shown)


_Validator: Any = cast(Any, extend)(
    Draft4Validator,
    {"type": _type, "x-kubernetes-int-or-string": _int_or_string, "x-kubernetes-list-type": _list_type},
)


def schema_causes(schema: Object, value: Json, root: tuple[str | int, ...] = ()) -> list[Cause]:
    """Every way in which a value breaks its schema; `root` is where the value sits in its object."""
    validator = _Validator(schema, format_checker=_FORMATS)
    return [_cause(error, root) for error in validator.iter_errors(value)]


def field_path(steps: Iterable[str | int]) -> str:
    """A path as errors name it: `spec.languages[0].source`, `spec.limits.nvidia.com/gpu`."""
    message = ""
    for step in steps:
        message += f"[{step}]" if isinstance(step, int) else f".{step}" if message else step
    return message


def shown(value: Json) -> str:
    """A value as errors quote it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


_SENTENCES: dict[str, Callable[[Json, Mapping[str, Json]], str]] = {
    "minimum": lambda bound, rest: (
        f"should be greater than{'' if rest.get('exclusiveMinimum') else ' or equal to'} {bound}"
    ),
    "maximum": lambda bound, rest: (
        f"should be less than{'' if rest.get('exclusiveMaximum') else ' or equal to'} {bound}"
    ),
    "pattern": lambda bound, _: f"should match '{bound}'",
    "minLength": lambda bound, _: f"should be at least {bound} chars long",
    "minItems": lambda bound, _: f"should have at least {bound} items",
}


def _cause(error: Any, root: tuple[str | int, ...]) -> Cause:
    path = field_path([*root, *error.absolute_path])
    rule, bound, value = error.validator, error.validator_value, error.instance
    if rule == "required":
        missing = next(name for name in bound if name not in value and f"'{name}'" in error.message)
        return Cause("FieldValueRequired", "Required value", f"{path}.{missing}" if path else missing)
    if rule in ("type", "x-kubernetes-int-or-string"):
        kind = "integer,string" if rule != "type" else bound
        message = f'Invalid value: "{_type_name(value)}": {path} in body must be of type {kind}: "{_type_name(value)}"'
        return Cause("FieldValueTypeInvalid", message, path)
    if rule == "enum":
        message = ", ".join(shown(choice) for choice in bound)
        return Cause(
            "FieldValueNotSupported", f"Unsupported value: {shown(value)}: supported values: {message}", path
        )
    if rule == "maxLength":
        return Cause("FieldValueTooLong", f"Too long: may not be more than {bound} bytes", path)
    if rule in ("maxItems", "maxProperties"):
        message = f"Too many: {len(value)}: must have at most {bound} items"
        return Cause("FieldValueTooMany", message, path)
    if rule == "x-kubernetes-list-type":
        return Cause("FieldValueDuplicate", f"Duplicate value: {shown(value)}", path)
    if rule == "format":
        message = f"Invalid value: {shown(value)}: {path} in body must be of type {bound}: {shown(value)}"
        return Cause("FieldValueTypeInvalid", message, path)
    sentence = _SENTENCES[rule](bound, error.schema) if rule in _SENTENCES else error.message
    counted = len(value) if rule == "minItems" else value
    return Cause("FieldValueInvalid", f"Invalid value: {shown(counted)}: {path} in body {sentence}", path)


def _type_name(value: Json) -> str:
    if value is None:
        return "null"
    names: tuple[tuple[type, str], ...] = (
        (bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (list, "array"),
    )  # fmt: skip
    return next((name for kind, name in names if isinstance(value, kind)), "object")
