"""The API key of a request: in a header, in the query or in the body.

A key is accepted wherever the clients of any API send theirs, and is removed from all of these places before a request
is forwarded.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import msgspec

from dragoman_protocols.azure.head import KEY_HEADER
from dragoman_protocols.bodies import read_json
from dragoman_protocols.forms import MAX_FIELDS, MAX_QUERY_FIELDS, field_of, first, without_fields
from dragoman_protocols.messages import Request
from dragoman_protocols.multipart import masked, read_form
from dragoman_protocols.routes import ENDPOINTS

MAX_KEY_BYTES = 4096

_BEARER = b"bearer "
_SCHEMES = (_BEARER, b"deepl-auth-key ")
_APIS = dict.fromkeys(endpoint.api for endpoint in ENDPOINTS)
_HEADERS = frozenset(name for api in _APIS for name in api.key_headers)
_PARAMETERS = tuple(dict.fromkeys(name for api in _APIS for name in api.key_parameters))
_IN_QUERY = tuple(f"{name}=".encode() for name in _PARAMETERS)
_NAMES = frozenset(name.encode() for name in _PARAMETERS)
_MARK = re.compile(b"|".join(sorted(_NAMES)) + b"|%")
"""A query without it has no key, not even with escapes in its name."""
_ESCAPED_LETTER = re.compile(rb"\\u00[5-7]")
"""In JSON: of a to z, or an underscore. Without it the name of a field is as it is written."""
SECRET_HEADERS = _HEADERS | {b"authorization", b"cookie"}
"""Headers that may have a key, or another credential."""
MARKING_HEADERS = frozenset({KEY_HEADER})
"""Those of them by which an API recognises its requests: they are forwarded without their value."""


def key_in_head(request: Request) -> bytes | None:
    """The key in a header or in the query.

    A bearer token that is built like a JSON Web Token is no key where the query has one: Crowdin sends its own.

    Raises:
        MalformedRequestError: The query has too many fields, or is not UTF-8.
    """
    for name, value in request.headers:
        if name == b"authorization":
            lowered = value[:20].lower()
            for scheme in _SCHEMES:
                if lowered.startswith(scheme):
                    key = value[len(scheme) :].strip()
                    return (_key_in_query(request) if looks_like_token(key) else None) or key
        elif name in _HEADERS:
            return value.strip()
    return _key_in_query(request)


def _key_in_query(request: Request) -> bytes | None:
    if request.query and any(name in request.query for name in _IN_QUERY):
        fields = request.query_fields()
        for parameter in _PARAMETERS:
            if key := first(fields, parameter):
                return key.encode()
    return None


def bearer_of(request: Request) -> bytes | None:
    """What `Authorization: Bearer` has: a token, or a key."""
    value = request.header(b"authorization")
    if value is None or value[: len(_BEARER)].lower() != _BEARER:
        return None
    return value[len(_BEARER) :].strip()


def looks_like_token(value: bytes) -> bool:
    """Whether it is built like a JSON Web Token: three parts, the first an object in base64url."""
    return value.startswith(b"eyJ") and value.count(b".") == 2


def key_in_body(request: Request, field: str) -> bytes | None:
    """The key in the body, of which nothing else is read.

    Args:
        request: Its body is read.
        field: `key_field` of its API.
    """
    key: str | None = None
    if request.is_form:
        key = field_of(request.body, field, MAX_KEY_BYTES)
    elif request.upload is None:
        # Where it is no JSON, or the key no string, there is none: the body is refused once a key is known.
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            key = _IN_JSON[field].decode(request.body).key
    return key.encode() if key else None


def query_without_keys(query: bytes) -> bytes:
    """A query without the parameters in which any API's clients send their key.

    Raises:
        MalformedRequestError: It may have one, and has too many fields.
    """
    if _MARK.search(query) is None:
        return query
    return without_fields(query, _NAMES, MAX_QUERY_FIELDS, "query")


def body_without_key(request: Request, field: str) -> bytes:
    """A body without its key: removed from JSON and forms, overwritten in a form of several parts.

    Args:
        request: Its body is read, and its `upload` where it has one.
        field: `key_field` of its API.

    Raises:
        MalformedRequestError: It may have a key, and cannot be read.
        InvalidFieldError: It is JSON, may have a key, and is no object.
    """
    body, name = request.body, field.encode()
    if request.is_form:
        return without_fields(body, {name}, MAX_FIELDS, "form")
    if request.is_multipart:
        form = request.upload or read_form(request.header(b"content-type"), body)
        return masked(body, form.positions.get(field, ()))
    if name not in body and _ESCAPED_LETTER.search(body) is None:
        return body
    # `Raw` copies the other values as they are.
    fields = read_json(body, _OBJECT)
    return body if fields.pop(field, None) is None else msgspec.json.encode(fields)


_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _in_json(field: str) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(
        msgspec.defstruct("_Body", [("key", str | None, msgspec.field(default=None, name=field))])
    )


_IN_JSON = {api.key_field: _in_json(api.key_field) for api in _APIS if api.key_field is not None}
