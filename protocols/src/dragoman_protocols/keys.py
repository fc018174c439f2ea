"""The API key of a request: in a header, in the query or in the body.

A key is accepted wherever the clients of any API send theirs.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec

from dragoman_protocols.api import Request
from dragoman_protocols.forms import field_of, first
from dragoman_protocols.routes import ENDPOINTS

MAX_KEY_BYTES = 4096

_SCHEMES = (b"bearer ", b"deepl-auth-key ")
_APIS = dict.fromkeys(endpoint.api for endpoint in ENDPOINTS)
_HEADERS = frozenset(name for api in _APIS for name in api.key_headers)
_PARAMETERS = tuple(dict.fromkeys(name for api in _APIS for name in api.key_parameters))
_IN_QUERY = tuple(f"{name}=".encode() for name in _PARAMETERS)
SECRET_HEADERS = _HEADERS | {b"authorization"}
"""Headers that may have a key."""


def key_in_head(request: Request) -> bytes | None:
    """The key in a header or in the query.

    Raises:
        MalformedRequestError: The query has too many fields, or is not UTF-8.
    """
    for name, value in request.headers:
        if name == b"authorization":
            lowered = value[:20].lower()
            for scheme in _SCHEMES:
                if lowered.startswith(scheme):
                    return value[len(scheme) :].strip()
        elif name in _HEADERS:
            return value.strip()
    if request.query and any(name in request.query for name in _IN_QUERY):
        fields = request.query_fields()
        for parameter in _PARAMETERS:
            if key := first(fields, parameter):
                return key.encode()
    return None


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


def _in_json(field: str) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(
        msgspec.defstruct("_Body", [("key", str | None, msgspec.field(default=None, name=field))])
    )


_IN_JSON = {api.key_field: _in_json(api.key_field) for api in _APIS if api.key_field is not None}
