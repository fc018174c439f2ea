"""Which endpoint a request is for: of `dragoman_protocols`, or of an API that is not there yet."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable

from dragoman_contract.routing import HELD_GLOSSARIES_PATH
from dragoman_protocols import routes
from dragoman_protocols.api import Answer, Api, Endpoint, Kind, Request, Site
from dragoman_protocols.azure.api import API as AZURE
from dragoman_protocols.azure.head import is_azure
from dragoman_protocols.errors import UnknownPathError
from dragoman_protocols.google.api import API as GOOGLE
from dragoman_protocols.libretranslate.api import API as LIBRETRANSLATE
from dragoman_protocols.native import API as NATIVE
from dragoman_protocols.openai.api import API as OPENAI
from dragoman_router.dialects import asking
from dragoman_router.dialects.asking import Dialect
from dragoman_router.dialects.deepl import DeepL, DeepLFiles

DEEPL, DEEPL_FILES = DeepL(), DeepLFiles()

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_READ = frozenset({"GET", "POST"})
_POST = frozenset({"POST"})
_GET = frozenset({"GET"})


def _endpoint(
    dialect: Dialect,
    kind: Kind,
    path: str,
    methods: frozenset[str] = frozenset(),
    respond: Callable[[Request, Site], Answer] | None = None,
) -> Endpoint:
    return Endpoint(
        dialect,
        kind,
        path,
        methods,
        peek=lambda request, _: dialect.read(request),
        respond=respond or dialect.languages,
        key_field=getattr(dialect, "key_field", None),
    )


# deepl's client requests `/v2/languages` by GET with a body.
PATHS: dict[str, Endpoint] = {
    each.path: each
    for each in (
        _endpoint(DEEPL, Kind.TRANSLATE, "/v2/translate", _POST),
        _endpoint(DEEPL_FILES, Kind.FILE, "/v2/document", _POST),
        _endpoint(DEEPL, Kind.RESPOND, "/v2/languages", _READ),
        _endpoint(DEEPL, Kind.RESPOND, "/v2/usage", _READ, DEEPL.usage),
    )
}

_GLOSSARIES = _endpoint(DEEPL, Kind.GLOSSARIES, "/v2/glossaries")
GLOSSARY_PREFIXES = ("/v2/glossar", "/v3/glossar")

_DOWNLOAD = re.compile(rf"/download_file/({_UUID})\.[\w.\-]{{1,200}}", re.A)
DOCUMENTS: tuple[tuple[str, re.Pattern[str], Endpoint], ...] = (
    (
        "/v2/document/",
        re.compile(r"/v2/document/([0-9A-Fa-f]{32})(?:/result)?"),
        _endpoint(DEEPL, Kind.DOCUMENT, "/v2/document/{id}", _POST),
    ),
)
"""Where documents that pods have are requested."""

FAMILIES: tuple[tuple[str, Api], ...] = (
    ("/translate_file", LIBRETRANSLATE),
    ("/download_file", LIBRETRANSLATE),
    ("/v1/", OPENAI),
    ("/v2/", DEEPL),
    ("/v3/", DEEPL),
    ("/language/", GOOGLE),
)
"""Whose errors an unknown path gets."""

PRIVATE = frozenset({"/livez", "/readyz", "/startupz", "/metrics", "/drained"})
"""Paths of a pod that are for the cluster."""


def recognise(request: asking.Request) -> Endpoint:
    """The endpoint of a request, by method, path and query.

    Raises:
        UnknownPathError: No API has this path, or not with this method.
    """
    ported = routes.recognise(request)
    if ported is not None:
        return ported
    found = PATHS.get(request.path)
    if found is not None and request.method in found.methods:
        return found
    if request.path.startswith(GLOSSARY_PREFIXES):
        return _GLOSSARIES
    for prefix, _, document in DOCUMENTS:
        if request.path.startswith(prefix):
            if request.method in document.methods:
                return document
            raise UnknownPathError(
                f"nothing here at {request.path[:100]!r} with {request.method}: use {min(document.methods)}"
            )
    if request.deployment is not None and found is None and not _is_private(request.path):
        return Endpoint(family(request), Kind.DETECT, request.path, frozenset())
    allowed = "" if found is None else f" with {request.method}: use {' or '.join(sorted(found.methods))}"
    raise UnknownPathError(f"nothing here at {request.path[:100]!r}{allowed}")


def document_of(request: Request) -> str | None:
    """The id of the document that a request asks for; None where it has not the shape of one."""
    for pattern in (_DOWNLOAD, *(pattern for _, pattern, _ in DOCUMENTS)):
        found = pattern.fullmatch(request.path)
        if found is not None:
            return found[1]
    return None


def family(request: Request) -> Api:
    """The API whose errors a request gets that could not be recognised."""
    known = routes.api_of(request)
    if known is not None:
        return known
    other = AZURE if is_azure(request) else NATIVE
    return next((api for prefix, api in FAMILIES if request.path.startswith(prefix)), other)


def _is_private(path: str) -> bool:
    """Whether a path is for the cluster, or might become one where dots are resolved."""
    normal = posixpath.normpath(path)
    if "//" in path or normal != (path.rstrip("/") or "/"):
        return True
    return normal in PRIVATE or f"{normal}/".startswith(HELD_GLOSSARIES_PATH)
