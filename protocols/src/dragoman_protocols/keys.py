"""The API key of a request: in a header, in the query or in the body.

A key is accepted wherever the clients of any API send theirs, and is removed from all of these places before a request
is forwarded: what finds it also removes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from dragoman_protocols.azure.head import KEY_HEADER
from dragoman_protocols.bodies import read_json
from dragoman_protocols.forms import MAX_FIELDS, MAX_QUERY_FIELDS, FieldValues, first, taken, unquoted
from dragoman_protocols.messages import Request
from dragoman_protocols.multipart import masked, read_form
from dragoman_protocols.routes import ENDPOINTS

MAX_KEY_BYTES = 4096

_BEARER = b"bearer "
_SCHEMES = (_BEARER, b"deepl-auth-key ")
_APIS = dict.fromkeys(endpoint.api for endpoint in ENDPOINTS)
_HEADERS = tuple(dict.fromkeys(name for api in _APIS for name in api.key_headers))
_PARAMETERS = tuple(dict.fromkeys(name for api in _APIS for name in api.key_parameters))
_NAMES = frozenset(name.encode() for name in _PARAMETERS)
_MARK = re.compile(b"|".join(sorted(_NAMES)) + b"|%")
"""A query without it has no key, not even with escapes in its name."""
_ESCAPED_LETTER = re.compile(rb"\\u00[4-7]")
"""In JSON: of a letter, or an underscore. Without it the name of a field is as it is written."""
SECRET_HEADERS = frozenset({*_HEADERS, b"authorization", b"cookie"})
"""Headers that may have a key, or another credential."""
MARKING_HEADERS = frozenset({KEY_HEADER})
"""Those of them by which an API recognises its requests: they are forwarded without their value."""


def key_in_head(request: Request) -> bytes | None:
    """The key in a header or in the query.

    A bearer token that is built like a JSON Web Token is no key where the query has one: Crowdin sends its own.

    Raises:
        MalformedRequestError: The query may have a key, and has too many fields.
    """
    if (value := request.header(b"authorization")) is not None:
        lowered = value[:20].lower()
        for scheme in _SCHEMES:
            if lowered.startswith(scheme):
                key = value[len(scheme) :].strip()
                return (split_query(request.query)[0] if looks_like_token(key) else None) or key
    for name in _HEADERS:
        if (value := request.header(name)) is not None:
            return value.strip()
    return split_query(request.query)[0]


def bearer_of(request: Request) -> bytes | None:
    """What `Authorization: Bearer` has: a token, or a key."""
    value = request.header(b"authorization")
    if value is None or value[: len(_BEARER)].lower() != _BEARER:
        return None
    return value[len(_BEARER) :].strip()


def looks_like_token(value: bytes) -> bool:
    """Whether it is built like a JSON Web Token: three parts, the first an object in base64url."""
    return value.startswith(b"eyJ") and value.count(b".") == 2


def split_query(query: bytes) -> tuple[bytes | None, bytes]:
    """The key in a query, and the query without the parameters in which any API's clients send theirs.

    Raises:
        MalformedRequestError: It may have one, and has too many fields.
    """
    if not query or _MARK.search(query) is None:
        return None, query
    found, left = taken(query, _NAMES, MAX_QUERY_FIELDS, "query")
    return _first_key(_unquoted(found[name]) for name in sorted(found, key=_ORDER)), left


_ORDER = {name.encode(): at for at, name in enumerate(_PARAMETERS)}.__getitem__


def split_body(request: Request, fields: tuple[str, ...]) -> tuple[bytes | None, bytes]:
    """The key in a body, and the body without it: removed from JSON and forms, overwritten in a form of several parts.

    Args:
        request: Its body is read, and its `upload` where it has one.
        fields: `key_fields` of its API.

    Raises:
        MalformedRequestError: It may have a key, and cannot be read.
        InvalidFieldError: It is JSON, may have a key, and is no object.
    """
    body = request.body
    if request.is_form:
        found, left = taken(body, {name.encode() for name in fields}, MAX_FIELDS, "form")
        return _first_key(map(_unquoted, found.values())), left
    if request.is_multipart:
        form = request.upload or read_form(request.header(b"content-type"), body)
        places = [place for name in fields for place in form.positions.get(name, ())]
        return key_of_form(form.fields, fields), masked(body, places)
    if not any(name.encode() in body for name in fields) and _ESCAPED_LETTER.search(body) is None:
        return None, body
    try:
        # `Raw` copies the other values as they are.
        values = _OBJECT.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        values = read_json(body, _OBJECT)  # Raises, in words.
    removed = [values.pop(name) for name in fields if name in values]
    keys = [key for raw in removed if isinstance(key := msgspec.json.decode(raw), str)]
    return _first_key(keys), msgspec.json.encode(values) if removed else body


def key_of_form(values: FieldValues, fields: tuple[str, ...]) -> bytes | None:
    """The key in a form of several parts, as far as it was read; `fields` as in `split_body`."""
    return _first_key(first(values, name) or "" for name in fields)


def _first_key(found: Iterable[str]) -> bytes | None:
    return next((key.encode() for key in found if key), None)


def _unquoted(value: bytes) -> str:
    return unquoted(value[:MAX_KEY_BYTES], "replace")


_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
