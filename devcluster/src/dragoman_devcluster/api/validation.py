"""Validation of an object: its name, its labels, and each field by its structural schema.

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
from dragoman_devcluster.api.kinds import Kind
from dragoman_devcluster.api.objects import Json, Object, get
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


# Names: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")

_SUBDOMAIN_RULE = f"a lowercase RFC 1123 subdomain must match '{_SUBDOMAIN}'"
_LABEL_RULE = f"a lowercase RFC 1123 label must match '{_LABEL}'"
_FREE = ("rbac.authorization.k8s.io",)
"""Groups whose names are only held to being one path segment."""


def name_cause(kind: Kind, name: str) -> Cause | None:
    """Why an object of this kind may not have this name; None if it may."""
    if kind.group in _FREE:
        legal = name not in (".", "..") and "/" not in name and "%" not in name
        message = None if legal else "may not contain '/' or '%' and may not be '.' or '..'"
    elif kind.resource == "services" or kind.resource == "namespaces":
        message = _fault(name, _LABEL, 63, _LABEL_RULE)
    else:
        message = _fault(name, _SUBDOMAIN, 253, _SUBDOMAIN_RULE)
    return (
        Cause("FieldValueInvalid", f'Invalid value: "{name}": {message}', "metadata.name")
        if message
        else None
    )


def _fault(name: str, pattern: str, maximum: int, message: str) -> str | None:
    if len(name) > maximum:
        return f"must be no more than {maximum} characters"
    return None if re.fullmatch(pattern, name) else message


def label_causes(obj: Object) -> list[Cause]:
    """What is wrong with an object's labels."""
    causes = []
    for key, value in (get(obj, "metadata", "labels") or {}).items():
        prefix, _, name = key.rpartition("/")
        if not _is_qualified(name) or (prefix and not re.fullmatch(_SUBDOMAIN, prefix)):
            causes.append(_label_cause(key, "a label's key must be [prefix/]name"))
        if not isinstance(value, str) or (value and not _is_qualified(value)):
            causes.append(_label_cause(value, "a label's value must be empty or like a name"))
    return causes


def _is_qualified(name: str) -> bool:
    return len(name) <= 63 and _QUALIFIED.fullmatch(name) is not None


def _label_cause(text: Json, rule: str) -> Cause:
    message = f"Invalid value: \"{text}\": {rule}; a name must match '{_QUALIFIED.pattern}' in 63 characters"
    return Cause("FieldValueInvalid", message, "metadata.labels")
