"""Which endpoint a request is for: by path and method, then by what the head and the body look like."""

from __future__ import annotations

import re
from functools import cache

from dragoman_contract.http import TRANSLATE_PATH
from dragoman_protocols import browser_extensions, crowdin, google, google_v3, native, native_documents
from dragoman_protocols.azure import api as azure
from dragoman_protocols.deepl import api as deepl
from dragoman_protocols.endpoints import Api, Endpoint, EndpointKind
from dragoman_protocols.errors import MethodNotAllowedError, UnknownPathError
from dragoman_protocols.libretranslate import api as libretranslate
from dragoman_protocols.messages import CORS_HEADERS, Answer, Request, json_answer
from dragoman_protocols.openai import api as openai
from dragoman_protocols.openapi import document
from dragoman_protocols.page import endpoints as page
from dragoman_protocols.site import Site

Candidates = tuple[Endpoint, ...]


@cache
def _openapi() -> Answer:
    return json_answer(document(ENDPOINTS))


ENDPOINTS = (
    *azure.ENDPOINTS,
    *native.ENDPOINTS,
    *native_documents.ENDPOINTS,
    *libretranslate.ENDPOINTS,
    *deepl.ENDPOINTS,
    *google.ENDPOINTS,
    *google_v3.ENDPOINTS,
    *openai.ENDPOINTS,
    *browser_extensions.ENDPOINTS,
    *crowdin.ENDPOINTS,
    *page.ENDPOINTS,
    Endpoint(
        native.API,
        EndpointKind.RESPOND,
        "/openapi.json",
        frozenset({"GET"}),
        respond=lambda _request, _site: _openapi(),
        needs_key=False,
    ),
)
"""Where APIs share a path, the first that claims a request gets it."""

_BY_PATH: dict[str, Candidates] = {}
_BY_SEGMENT: dict[str, Candidates] = {}
"""By the first segment of the path."""


def _segment(path: str) -> str:
    return path[1:].partition("/")[0]


for _each in ENDPOINTS:
    if _each.claims_body is None:
        for _table, _key in ((_BY_PATH, _each.path), (_BY_SEGMENT, _segment(_each.path))):
            _table[_key] = (*_table.get(_key, ()), _each)

_BY_BODY: dict[Endpoint, Candidates] = {}
"""By the endpoint that a request is for unless its body is for one of these."""
for _each in ENDPOINTS:
    if _each.claims_body is not None:
        _default = _BY_PATH[_each.path][-1]
        _BY_BODY[_default] = (*_BY_BODY.get(_default, ()), _each)


def _respond_preflight(_: Request, __: Site) -> Answer:
    return Answer(200, b"", CORS_HEADERS)


_PREFLIGHTS = {
    each.path: Endpoint(
        each.api,
        EndpointKind.RESPOND,
        each.path,
        frozenset({"OPTIONS"}),
        respond=_respond_preflight,
        needs_key=False,
    )
    for each in ENDPOINTS
    if each.api.cors
}


class Path:
    """One path with the endpoints that share it.

    Args:
        template: Such as `/v1/models/{name}`; a slash at the end of a request's path does not matter.
        candidates: In the order in which they may claim a request.
    """

    def __init__(self, template: str, candidates: Candidates = ()) -> None:
        self.template, self.candidates = template, candidates
        self.prefix, variable, _ = template.partition("{")
        self.exact = None if variable else template.rstrip("/")
        pattern = re.sub(r"\\{(\w+)\\}$", r"(?P<\1>.+)", re.escape(template))
        self._pattern = re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", pattern), re.S)

    def variables(self, path: str) -> dict[str, str] | None:
        """The variables of a path without a slash at its end; None where it is another one."""
        if self.exact is not None:
            return {} if path == self.exact else None
        matched = self._pattern.fullmatch(path) if path.startswith(self.prefix) else None
        return None if matched is None else matched.groupdict()

    def endpoint(self, request: Request) -> Endpoint:
        """The endpoint of a request by its head; `with_body` may find another one once the body is there.

        Where there is GET there is HEAD, for which the server sends no body.

        Raises:
            MethodNotAllowedError: The path exists, with other methods; `api_of` has the API to answer in.
            UnknownPathError: No API that has the path claims the request.
        """
        method = "GET" if request.method == "HEAD" else request.method
        allowed: frozenset[str] = frozenset()
        for endpoint in self.candidates:
            if endpoint.api.claims(request):
                if method in endpoint.methods:
                    return endpoint
                allowed |= endpoint.methods
        if method == "OPTIONS" and (preflight := _PREFLIGHTS.get(self.template)) is not None:
            return preflight
        if not allowed:
            raise unknown_path(request.path)
        raise MethodNotAllowedError(
            f"nothing here at {request.path[:100]!r} with {request.method}: use {' or '.join(sorted(allowed))}",
            allowed,
        )


PATHS = [Path(template, found) for template, found in _BY_PATH.items()]
_EXACT = {path.exact: path for path in PATHS if path.exact is not None}
TEMPLATES = sorted(
    (path for path in PATHS if path.exact is None),
    key=lambda path: (-len(path.prefix), -path.template.count("/")),
)
"""Longest first, so that `/glossaries/{id}/entries` comes before `/glossaries/{id}`."""


def recognise(request: Request) -> Endpoint:
    """The endpoint of a request by its path, and as `Path.endpoint`, which has the errors."""
    path = _path(request)
    if path is None:
        raise unknown_path(request.path)
    return path.endpoint(request)


def unknown_path(path: str) -> UnknownPathError:
    """The error for a path that no API has."""
    return UnknownPathError(f"nothing here at {path[:100]!r}")


def with_body(endpoint: Endpoint, request: Request) -> Endpoint:
    """The endpoint that a request's body shows it to be for, where several share its path."""
    for other in _BY_BODY.get(endpoint, ()):
        method = "GET" if request.method == "HEAD" else request.method
        if method in other.methods and other.claims_body is not None and other.claims_body(request):
            return other
    return endpoint


def may_have_key_in_body(endpoint: Endpoint) -> bool:
    """Whether the body of a request may have the API key."""
    return bool(endpoint.api.key_fields) or endpoint in _BY_BODY


def api_of(request: Request) -> Api:
    """The API in which a request is answered that is for no endpoint, or could not be read.

    It has the path, or other paths with the same first segment; else it is one of those that share `/translate`.
    """
    path = _path(request)
    candidates = path.candidates if path is not None else _BY_SEGMENT.get(_segment(request.path), ())
    for each in (*candidates, *_EXACT[TRANSLATE_PATH].candidates):
        if each.api.claims(request):
            return each.api
    return native.API


def _path(request: Request) -> Path | None:
    path = request.path.rstrip("/")
    found = _EXACT.get(path)
    if found is not None:
        return found
    for each in TEMPLATES:
        if (variables := each.variables(path)) is not None:
            request.variables = variables
            return each
    return None
