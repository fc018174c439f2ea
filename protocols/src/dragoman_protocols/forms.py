"""HTML forms and queries as fields, at a cost that is linear and the same for any bytes.

urllib's `parse_qsl` takes 130 to 740 ms for a mebibyte of escapes, in Python; the codec here takes 6.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set

from dragoman_protocols.errors import MalformedRequestError

FORM_TYPE = b"application/x-www-form-urlencoded"

FieldValues = Mapping[str, list[str]]
"""The values of each field, in their order."""

MAX_FIELDS = 4096
"""Of a form: enough for every limit on texts, and a bound on what a hostile one costs."""
MAX_QUERY_FIELDS = 1000
"""Azure's clients name each of their target languages in one."""

MAX_STRAY_SIGNS = 4096
"""Percent signs of one value that begin no escape: each costs 0.2 µs, so that a mebibyte of them would take 0.2 s."""

MAX_ESCAPED_NAME_BYTES = 3 * 32
"""Longer names are none of those that `taken` looks for, also with their escapes decoded."""

_STRAY = re.compile(rb"%(?![0-9A-Fa-f]{2})")


def fields_of(encoded: bytes, most: int, what: str) -> dict[str, list[str]]:
    """The values of a form or a query, by name, in their order; a name without `=` has an empty one.

    Args:
        encoded: `application/x-www-form-urlencoded`.
        most: Maximum number of fields.
        what: `form` or `query`, for messages.

    Raises:
        MalformedRequestError: It has more fields, or is not UTF-8.
    """
    _check_count(encoded, most, what)
    found: dict[str, list[str]] = {}
    try:
        for part in encoded.split(b"&"):
            if part:
                name, _, value = part.partition(b"=")
                found.setdefault(unquoted(name), []).append(unquoted(value))
    except UnicodeDecodeError as error:
        if error.encoding == "unicodeescape":
            signs = f"more than {MAX_STRAY_SIGNS} percent signs that begin no escape"
            raise MalformedRequestError(f"the {what} has {signs}; write %25 for each") from None
        raise MalformedRequestError(f"the {what} is not UTF-8: {error.reason}") from None
    return found


def taken(encoded: bytes, names: Set[bytes], most: int, what: str) -> tuple[dict[bytes, bytes], bytes]:
    """The first value of some fields of a form or a query, and the form or query without them.

    Args:
        encoded: `application/x-www-form-urlencoded`.
        names: Of the fields, in ASCII.
        most: Maximum number of fields.
        what: `form` or `query`, for messages.

    Returns:
        The values by name, still encoded; and the same bytes where it has none of them.

    Raises:
        MalformedRequestError: It has more fields.
    """
    _check_count(encoded, most, what)
    parts = encoded.split(b"&")
    found: dict[bytes, bytes] = {}
    kept = []
    for part in parts:
        name = _plain_name(part)
        if name in names:
            found.setdefault(name, part.partition(b"=")[2])
        else:
            kept.append(part)
    return found, b"&".join(kept) if found else encoded


def _plain_name(part: bytes) -> bytes:
    name = part.partition(b"=")[0]
    if b"%" in name and len(name) <= MAX_ESCAPED_NAME_BYTES:
        return unquoted(name, "replace").encode()
    return name


def _check_count(encoded: bytes, most: int, what: str) -> None:
    if encoded.count(b"&") >= most:
        raise MalformedRequestError(f"the {what} has more than {most} fields")


def first(fields: FieldValues, name: str) -> str | None:
    """The first value of a field."""
    values = fields.get(name)
    return values[0] if values else None


def last(fields: FieldValues, name: str) -> str | None:
    """The last value of a field."""
    values = fields.get(name)
    return values[-1] if values else None


def unquoted(value: bytes, errors: str = "strict") -> str:
    """A name or a value as text; a `%` without two hexadecimal digits behind it stands for itself.

    Args:
        value: As it was encoded.
        errors: What happens to bytes that are not UTF-8, as in `bytes.decode`.

    Raises:
        UnicodeDecodeError: It is not UTF-8, or has more than `MAX_STRAY_SIGNS`.
    """
    value = value.replace(b"+", b" ")
    if b"%" in value:
        value = _STRAY.sub(b"%25", value, count=MAX_STRAY_SIGNS)
        escaped = value.replace(b"\\", b"\\\\").replace(b"%", b"\\x")
        value = escaped.decode("unicode_escape").encode("latin-1")
    return value.decode(errors=errors)
