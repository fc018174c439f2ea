"""Which names objects may have.

Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
"""

from __future__ import annotations

import re

from dragoman_devcluster.api.errors import Cause
from dragoman_devcluster.api.kinds import Kind
from dragoman_devcluster.api.objects import Json, Object, get

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
