"""Validation of an object against its structural schema, reported field by field.

The schema is checked by jsonschema: OpenAPI v3.0 is close to its draft 4. Fields and reasons are those of a real
server, the sentences are jsonschema's.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterable, Mapping
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
        yield jsonschema.ValidationError(f"{shown(instance)} is not of type {types}")


def _int_or_string(_: Any, wanted: Json, instance: Json, schema: Mapping[str, Json]) -> Iterable[Any]:
    legal = isinstance(instance, str | int) and not isinstance(instance, bool)
    if wanted and not legal and not (instance is None and schema.get("nullable")):
        yield jsonschema.ValidationError(f"{shown(instance)} is not of type integer or string")


def _list_type(_: Any, wanted: Json, instance: Json, schema: Mapping[str, Json]) -> Iterable[Any]:
    if wanted not in ("map", "set") or not isinstance(instance, list):
        return
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    seen: list[Json] = []
    for index, item in enumerate(instance):
        identity = {key: item.get(key) for key in keys} if keys and isinstance(item, dict) else item
        if identity in seen:
            yield jsonschema.ValidationError(f"{shown(identity)} is there twice", path=[index])
        seen.append(identity)


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


_REASONS = {
    "required": "FieldValueRequired",
    "type": "FieldValueTypeInvalid",
    "x-kubernetes-int-or-string": "FieldValueTypeInvalid",
    "format": "FieldValueTypeInvalid",
    "enum": "FieldValueNotSupported",
    "maxLength": "FieldValueTooLong",
    "maxItems": "FieldValueTooMany",
    "maxProperties": "FieldValueTooMany",
    "x-kubernetes-list-type": "FieldValueDuplicate",
}
"""Of a rule's violation, as a real server calls it; others are FieldValueInvalid."""


def _cause(error: Any, root: tuple[str | int, ...]) -> Cause:
    path = field_path([*root, *error.absolute_path])
    reason = _REASONS.get(error.validator, "FieldValueInvalid")
    if error.validator == "required":
        wanted = error.validator_value
        missing = next(name for name in wanted if name not in error.instance and f"'{name}'" in error.message)
        return Cause(reason, "Required value", f"{path}.{missing}" if path else missing)
    return Cause(reason, f"Invalid value: {error.message}", path)
