"""Which names objects may have.

Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
"""

from __future__ import annotations

import re

from dragoman_devcluster.api.errors import Cause
from dragoman_devcluster.api.kinds import Kind
from dragoman_devcluster.api.objects import Object, get

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")

_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
    "end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_KEY_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
    "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
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
        if (
            not _QUALIFIED.fullmatch(name)
            or len(name) > 63
            or (prefix and not re.fullmatch(_SUBDOMAIN, prefix))
        ):
            text = f'Invalid value: "{key}": {_KEY_RULE}'
            causes.append(Cause("FieldValueInvalid", text, "metadata.labels"))
        if not isinstance(value, str) or (value and not _QUALIFIED.fullmatch(value)):
            causes.append(
                Cause("FieldValueInvalid", f'Invalid value: "{value}": {_VALUE_RULE}', "metadata.labels")
            )
        elif len(value) > 63:
            text = f'Invalid value: "{value}": must be no more than 63 characters'
            causes.append(Cause("FieldValueInvalid", text, "metadata.labels"))
    return causes
