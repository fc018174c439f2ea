"""`/`, `/page/…`, `/fleet`: the web page for people who translate in a browser; see docs/how-to/page.md.

Its scripts call the APIs of this package like any other client.
"""

from __future__ import annotations

import gzip
import hashlib
import math
from functools import cache
from importlib.resources import files

import msgspec

from dragoman_protocols.endpoints import Endpoint, EndpointKind, Operation
from dragoman_protocols.errors import InvalidFieldError, UnknownPathError
from dragoman_protocols.fleet import FleetQuery, FleetView, view
from dragoman_protocols.messages import Answer, Request
from dragoman_protocols.native import API as NATIVE
from dragoman_protocols.site import Site

PAGE = "index.html"
"""The file that is answered at `/`."""
DIRECTORY = "/page/"
"""Path of the other files."""
FLEET_PATH = "/fleet"

_DOCUMENT = "text/html; charset=utf-8"
_SCRIPT, _STYLE = "text/javascript; charset=utf-8", "text/css; charset=utf-8"
MEDIA = {
    PAGE: _DOCUMENT,
    "icon.svg": "image/svg+xml",
    "style.css": _STYLE,
    "app.js": _SCRIPT,
    "chart.js": _SCRIPT,
    "client.js": _SCRIPT,
    "documents.js": _SCRIPT,
    "findings.js": _SCRIPT,
    "fleet.css": _STYLE,
    "fleet.html": _DOCUMENT,
    "fleet.js": _SCRIPT,
    "key.js": _SCRIPT,
    "languages.js": _SCRIPT,
    "refusal.js": _SCRIPT,
    "session.js": _SCRIPT,
    "theme.js": _SCRIPT,
}
"""Media types of the files of `files/`, by their names; no other file is served."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Content-Security-Policy: nothing inline, nothing of another host, no HTML made of strings."""

HEADERS = (
    # Asked for again with its ETag each time: a page of one version never runs scripts of an older one.
    ("Cache-Control", "no-cache"),
    ("Content-Security-Policy", POLICY),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("Vary", "Accept-Encoding"),
    ("X-Content-Type-Options", "nosniff"),
)
"""Of every file."""


@cache
def content(name: str) -> bytes:
    """A file's bytes, by its name in `MEDIA`."""
    return files(__package__).joinpath("files", name).read_bytes()


@cache
def packed(name: str) -> bytes:
    """The same with gzip, of a third of the size."""
    return gzip.compress(content(name), mtime=0)


@cache
def etag(name: str) -> str:
    """A weak validator (RFC 9110, section 8.8.3) of a file, packed or not: a hash of its bytes."""
    return f'W/"{hashlib.sha256(content(name)).hexdigest()[:32]}"'


def is_known(tag: str, if_none_match: str | None) -> bool:
    """Whether the client has the file of this ETag (RFC 9110, section 13.1.2)."""
    listed = [each.strip().removeprefix("W/") for each in (if_none_match or "").split(",")]
    return tag.removeprefix("W/") in listed or listed == ["*"]


def accepts_gzip(accept_encoding: str | None) -> bool:
    """Whether the client names gzip (RFC 9110, section 12.5.3), and not with a weight of zero."""
    named = [each.replace(" ", "").lower() for each in (accept_encoding or "").split(",")]
    return any(each == "gzip" or (each.startswith("gzip;q=") and each[7:].strip("0.")) for each in named)


def answer_file(name: str, request: Request, site: Site) -> Answer:
    """A file, or 304 where the client has it.

    Raises:
        UnknownPathError: The page is off.
    """
    if not site.page:
        raise UnknownPathError(f"nothing here at {request.path[:100]!r}: the page is off")
    headers = (("Content-Type", MEDIA[name]), ("ETag", etag(name)), *HEADERS)
    if is_known(etag(name), request.text_header("If-None-Match")):
        return Answer(304, b"", headers[1:])
    if accepts_gzip(request.text_header("Accept-Encoding")):
        return Answer(200, packed(name), (("Content-Encoding", "gzip"), *headers))
    return Answer(200, content(name), headers)


def _endpoint(name: str) -> Endpoint:
    return Endpoint(
        NATIVE,
        EndpointKind.RESPOND,
        "/" if name == PAGE else DIRECTORY + name,
        frozenset({"GET", "HEAD"}),
        respond=lambda request, site: answer_file(name, request, site),
        # The page asks for the key.
        needs_key=False,
    )


def _since(request: Request) -> int:
    given = request.query_fields().get("since", ["0"])[-1]
    try:
        seconds = float(given)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise InvalidFieldError("since: must be Unix seconds, such as 1764000000")
    return int(seconds)


def respond_fleet(request: Request, site: Site) -> Answer:
    """The view as JSON.

    Raises:
        UnknownPathError: The page is off, or this is an engine pod.
        InvalidFieldError: `since` is no time.
    """
    if not site.page:
        raise UnknownPathError(f"nothing here at {FLEET_PATH!r}: the page is off")
    if site.fleet is None:
        raise UnknownPathError("an engine pod has no fleet view; routers have one")
    since, fleet = _since(request), site.fleet
    deployments = [view(each, since, fleet.step_s) for each in fleet.deployments]
    answer = FleetView(fleet.router, fleet.time, fleet.step_s, fleet.kept_s, deployments, fleet.left_out)
    return Answer(200, msgspec.json.encode(answer), (("Cache-Control", "no-store"),))


FLEET = Endpoint(
    NATIVE,
    EndpointKind.RESPOND,
    FLEET_PATH,
    frozenset({"GET"}),
    respond=respond_fleet,
    operation=Operation(
        "Get replicas, load and scaling decisions of all TranslationDeployments. Routers only.",
        query=FleetQuery,
        answer=FleetView,
    ),
)
ENDPOINTS = (*map(_endpoint, MEDIA), FLEET)
