"""Which endpoint a request is for: by path and method, then by what the head and the body look like."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module

from dragoman_protocols.api import CORS_HEADERS, Answer, Api, Endpoint, Kind, Request, Site
from dragoman_protocols.errors import MethodNotAllowedError

APIS = ("azure.api", "native", "libretranslate.api", "deepl.api", "google.api", "openai.api")
"""Modules of this package with `ENDPOINTS`; where APIs share a path, the first that claims a request gets it."""

Candidates = tuple[Endpoint, ...]


def _endpoints() -> Iterator[Endpoint]:
    for name in APIS:
        yield from import_module(f"dragoman_protocols.{name}").ENDPOINTS


ENDPOINTS = tuple(_endpoints())

_BY_PATH: dict[str, Candidates] = {}
_BY_BODY: dict[str, Candidates] = {}
for _each in ENDPOINTS:
    _table = _BY_PATH if _each.claims_body is None else _BY_BODY
    _table[_each.path] = (*_table.get(_each.path, ()), _each)


def _pattern(template: str) -> re.Pattern[str]:
    """The paths of a template; its last variable takes slashes where it ends the template."""
    pattern = re.sub(r"\\{(\w+)\\}$", r"(?P<\1>.+)", re.escape(template))
    return re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", pattern), re.S)


_TEMPLATES = sorted(
    ((path.partition("{")[0], _pattern(path), found) for path, found in _BY_PATH.items() if "{" in path),
    key=lambda row: (-len(row[0]), -row[1].pattern.count("/")),
)
"""Longest first, so that `/glossaries/{id}/entries` comes before `/glossaries/{id}`."""

_EXACT = {path: found for path, found in _BY_PATH.items() if "{" not in path}


def _respond_preflight(_: Request, __: Site) -> Answer:
    return Answer(200, b"", CORS_HEADERS)


def _preflight(endpoint: Endpoint) -> Endpoint:
    methods = frozenset({"OPTIONS"})
    return Endpoint(
        endpoint.api, Kind.RESPOND, endpoint.path, methods, respond=_respond_preflight, needs_key=False
    )


_PREFLIGHTS = {endpoint.path: _preflight(endpoint) for endpoint in ENDPOINTS if endpoint.cors}


def recognise(request: Request) -> Endpoint | None:
    """The endpoint of a request by its head; None where no API has its path.

    `with_body` may find another one on the same path once the body is there.

    Raises:
        MethodNotAllowedError: The path exists, with other methods; `api_of` has the API to answer in.
    """
    candidates = _candidates(request)
    if not candidates:
        return None
    allowed = frozenset[str]()
    for endpoint in candidates:
        if endpoint.claims is None or endpoint.claims(request):
            if request.method in endpoint.methods:
                return endpoint
            allowed |= endpoint.methods
    if request.method == "OPTIONS" and (preflight := _PREFLIGHTS.get(candidates[0].path)) is not None:
        return preflight
    if not allowed:
        return None
    raise MethodNotAllowedError(
        f"nothing here at {request.path[:100]!r} with {request.method}: use {' or '.join(sorted(allowed))}",
        allowed,
    )


def with_body(endpoint: Endpoint, request: Request) -> Endpoint:
    """The endpoint that a request's body shows it to be for, where several share its path."""
    others = _BY_BODY.get(endpoint.path)
    if others is None or endpoint.claims is not None:
        return endpoint
    for other in others:
        if request.method in other.methods and other.claims_body is not None and other.claims_body(request):
            return other
    return endpoint


def may_have_key_in_body(endpoint: Endpoint) -> bool:
    """Whether the body of a request may have the API key."""
    return endpoint.key_field is not None or (endpoint.claims is None and endpoint.path in _BY_BODY)


def api_of(request: Request) -> Api | None:
    """The API that a request with a wrong method, or one that could not be read, is answered in."""
    candidates = _candidates(request) or ()
    return next((each.api for each in candidates if each.claims is None or each.claims(request)), None)


def _candidates(request: Request) -> Candidates | None:
    found = _EXACT.get(request.path)
    if found is not None:
        return found
    path = request.path.rstrip("/")
    for prefix, pattern, candidates in _TEMPLATES:
        if path.startswith(prefix) and (match := pattern.fullmatch(path)):
            request.variables = match.groupdict()
            return candidates
    return _EXACT.get(path)
