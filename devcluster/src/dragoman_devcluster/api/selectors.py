"""Label and field selectors.

Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/ and field-selectors/
"""

from __future__ import annotations

import re
from collections.abc import Callable

from dragoman_devcluster.api.errors import ApiError
from dragoman_devcluster.api.kinds import Kind
from dragoman_devcluster.api.objects import Object, get

Predicate = Callable[[Object], bool]

_SET = re.compile(r"(?P<key>[^\s!=,()]+)\s+(?P<operator>in|notin)\s*\((?P<values>[^)]*)\)")
_EQUALITY = re.compile(r"(?P<key>[^\s!=,()]+)\s*(?P<operator>==|!=|=)\s*(?P<value>[^\s!=,()]*)")
_EXISTS = re.compile(r"(?P<not>!?)\s*(?P<key>[^\s!=,()]+)")
_OUTSIDE_PARENTHESES = re.compile(r",(?![^(]*\))")

_FIELDS: dict[str, tuple[str, ...]] = {
    "pods": ("spec.nodeName", "status.phase", "status.podIP"),
    "events": (
        "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
        "involvedObject.apiVersion", "involvedObject.fieldPath", "reason", "type",
    ),
    "secrets": ("type",),
}  # fmt: skip


def label_selector(text: str) -> Predicate:
    """A predicate on objects for `a=b,c in (d,e),!f`; ApiError (BadRequest) if it cannot be read."""
    requirements = [_requirement(part.strip()) for part in _OUTSIDE_PARENTHESES.split(text) if part.strip()]

    def matches(obj: Object) -> bool:
        labels = get(obj, "metadata", "labels") or {}
        return all(requirement(labels) for requirement in requirements)

    return matches


def _requirement(text: str) -> Callable[[dict[str, str]], bool]:
    if found := _SET.fullmatch(text):
        key, wanted = found["key"], {value.strip() for value in found["values"].split(",")}
        if found["operator"] == "in":
            return lambda labels: key in labels and labels[key] in wanted
        return lambda labels: labels.get(key) not in wanted
    if found := _EQUALITY.fullmatch(text):
        key, value = found["key"], found["value"]
        if found["operator"] == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if found := _EXISTS.fullmatch(text):
        key, absent = found["key"], bool(found["not"])
        return lambda labels: (key in labels) != absent
    raise ApiError("BadRequest", f'unable to parse requirement: found "{text}"')


def field_selector(text: str, kind: Kind) -> Predicate:
    """A predicate for `metadata.name=x,status.phase!=Running`; ApiError (BadRequest) for a field not indexed."""
    served = ("metadata.name", "metadata.namespace", *_FIELDS.get(kind.resource, ()))
    requirements: list[tuple[str, bool, str]] = []
    for part in filter(None, text.split(",")):
        found = re.fullmatch(r"\s*([^=!\s]+)\s*(==|!=|=)\s*(.*?)\s*", part)
        if found is None:
            raise ApiError("BadRequest", f"invalid selector: '{text}'; can't understand '{part}'")
        path, operator, value = found.groups()
        if path not in served:
            raise ApiError("BadRequest", f"field label not supported: {path}")
        requirements.append((path, operator != "!=", value))

    def matches(obj: Object) -> bool:
        return all((field_value(obj, path) == value) == equal for path, equal, value in requirements)

    return matches


def field_value(obj: Object, path: str) -> str:
    """A field as a selector compares it: text, and "" where it is missing."""
    value = get(obj, *path.split("."), default="")
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
