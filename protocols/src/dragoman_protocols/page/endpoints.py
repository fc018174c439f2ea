"""`/`, `/page/…`, `/fleet`: the web page for people who translate in a browser; see docs/how-to/page.md.

Its scripts call the APIs of this package like any other client.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

from dragoman_protocols.api import Answer, Endpoint, Kind, Request, Site
from dragoman_protocols.errors import UnknownPathError
from dragoman_protocols.native import API as NATIVE
from dragoman_protocols.page.fleet import ENDPOINT as FLEET

PAGE = "index.html"
"""The file that is answered at `/`."""
DIRECTORY = "/page/"
"""Path of the other files."""

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
    "fleet.css": _STYLE,
    "fleet.html": _DOCUMENT,
    "fleet.js": _SCRIPT,
    "key.js": _SCRIPT,
    "languages.js": _SCRIPT,
    "refusal.js": _SCRIPT,
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
    ("X-Content-Type-Options", "nosniff"),
)
"""Of every file."""


@cache
def content(name: str) -> bytes:
    """A file's bytes, by its name in `MEDIA`."""
    return files(__package__).joinpath("files", name).read_bytes()


@cache
def etag(name: str) -> str:
    """A strong validator (RFC 9110, section 8.8.3) of a file: a hash of its bytes."""
    return f'"{hashlib.sha256(content(name)).hexdigest()[:32]}"'


def is_known(tag: str, if_none_match: str | None) -> bool:
    """Whether the client has the file of this ETag (RFC 9110, section 13.1.2)."""
    listed = [each.strip().removeprefix("W/") for each in (if_none_match or "").split(",")]
    return tag in listed or listed == ["*"]


def answer_file(name: str, request: Request, site: Site) -> Answer:
    """A file, or 304 where the client has it.

    Raises:
        UnknownPathError: The page is off.
    """
    if not site.page:
        raise UnknownPathError(f"nothing here at {request.path[:100]!r}: the page is off (--no-page)")
    headers = (("Content-Type", MEDIA[name]), ("ETag", etag(name)), *HEADERS)
    if is_known(etag(name), request.text_header("If-None-Match")):
        return Answer(304, b"", headers[1:])
    return Answer(200, content(name), headers)


def _endpoint(name: str) -> Endpoint:
    return Endpoint(
        NATIVE,
        Kind.RESPOND,
        "/" if name == PAGE else DIRECTORY + name,
        frozenset({"GET", "HEAD"}),
        respond=lambda request, site: answer_file(name, request, site),
        # The page asks for the key.
        needs_key=False,
    )


ENDPOINTS = (*map(_endpoint, MEDIA), FLEET)
