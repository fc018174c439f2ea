"""Which dialect a request speaks, and what kind of request it is.

`/translate` and `/languages` are claimed by three APIs: Azure's is told by its `api-version`, LibreTranslate's by a
form, a query or the field `q`; what is left is our own.
"""

from __future__ import annotations

import posixpath
import re
from enum import Enum

from dragoman_contract.routing import HELD_GLOSSARIES_PATH
from dragoman_router.dialects.asking import Dialect, Request
from dragoman_router.dialects.azure import VERSION_PARAMETER, Azure
from dragoman_router.dialects.deepl import DeepL, DeepLFiles
from dragoman_router.dialects.google import Google
from dragoman_router.dialects.libretranslate import LibreTranslate, LibreTranslateFiles
from dragoman_router.dialects.native import Native
from dragoman_router.dialects.openai import OpenAI
from dragoman_router.errors import UnknownPathError

NATIVE, LIBRETRANSLATE, DEEPL = Native(), LibreTranslate(), DeepL()
LIBRETRANSLATE_FILES, DEEPL_FILES = LibreTranslateFiles(), DeepLFiles()
GOOGLE, AZURE, OPENAI = Google(), Azure(), OpenAI()


class Action(Enum):
    """What a request is for."""

    TRANSLATE = "translate"
    """To a deployment that serves its pair."""
    FORWARD = "forward"
    """To any deployment: the pair does not matter."""
    UPLOAD = "upload"
    """As TRANSLATE, with a file in a form."""
    FETCH = "fetch"
    """To the replica that has the document."""
    GLOSSARIES = "glossaries"
    """What the router keeps for callers; where it keeps nothing, as `FORWARD`."""
    LANGUAGES = "languages"
    USAGE = "usage"
    SETTINGS = "settings"
    """These three the router answers itself."""


Call = tuple[Dialect, Action]

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_READ = frozenset({"GET", "POST"})
_POST = frozenset({"POST"})
_GET = frozenset({"GET"})

PATHS: dict[str, tuple[Dialect, Action, frozenset[str]]] = {
    "/translate": (NATIVE, Action.TRANSLATE, _POST),
    # argostranslate asks by POST, deepl's client by GET with a body.
    "/languages": (LIBRETRANSLATE, Action.LANGUAGES, _READ),
    "/translate_file": (LIBRETRANSLATE_FILES, Action.UPLOAD, _POST),
    "/detect": (LIBRETRANSLATE, Action.FORWARD, _POST),
    "/frontend/settings": (LIBRETRANSLATE, Action.SETTINGS, _GET),
    "/v2/translate": (DEEPL, Action.TRANSLATE, _POST),
    "/v2/document": (DEEPL_FILES, Action.UPLOAD, _POST),
    "/v2/languages": (DEEPL, Action.LANGUAGES, _READ),
    "/v2/usage": (DEEPL, Action.USAGE, _READ),
    "/language/translate/v2": (GOOGLE, Action.TRANSLATE, _READ),
    "/language/translate/v2/languages": (GOOGLE, Action.LANGUAGES, _READ),
    "/language/translate/v2/detect": (GOOGLE, Action.FORWARD, _READ),
    "/v1/chat/completions": (OPENAI, Action.TRANSLATE, _POST),
    "/v1/models": (OPENAI, Action.LANGUAGES, _GET),
}

PREFIXES: tuple[tuple[str, Dialect, Action], ...] = (
    ("/v2/glossar", DEEPL, Action.GLOSSARIES),
    ("/v3/glossar", DEEPL, Action.GLOSSARIES),
)

DOCUMENTS: tuple[tuple[str, re.Pattern[str], Dialect, str], ...] = (
    ("/v2/document/", re.compile(r"/v2/document/([0-9A-Fa-f]{32})(?:/result)?"), DEEPL, "POST"),
    (
        "/download_file/",
        re.compile(rf"/download_file/({_UUID})\.[\w.\-]{{1,200}}", re.A),
        LIBRETRANSLATE,
        "GET",
    ),
)
"""Where documents that pods have are asked for, and how."""

FAMILIES: tuple[tuple[str, Dialect], ...] = (
    ("/translate_file", LIBRETRANSLATE),
    ("/download_file", LIBRETRANSLATE),
    ("/v1/", OPENAI),
    ("/v2/", DEEPL),
    ("/v3/", DEEPL),
    ("/language/", GOOGLE),
)
"""Whose errors a path gets that nobody has."""

PRIVATE = frozenset({"/livez", "/readyz", "/startupz", "/metrics", "/drained"})
"""Paths of a pod that are for the cluster."""


def recognise(request: Request) -> Call:
    """The dialect and the kind of a request, by method, path and query.

    Raises:
        UnknownPathError: Nobody has this path, or not with this method.
    """
    found = PATHS.get(request.path)
    if found is not None and request.method in found[2]:
        dialect, action, _ = found
        if request.path in ("/translate", "/languages", "/detect") and _is_azure(request):
            return AZURE, action
        return dialect, action
    for prefix, dialect, action in PREFIXES:
        if request.path.startswith(prefix):
            return dialect, action
    for prefix, _, dialect, method in DOCUMENTS:
        if request.path.startswith(prefix):
            if request.method == method:
                return dialect, Action.FETCH
            raise UnknownPathError(
                f"nothing here at {request.path[:100]!r} with {request.method}: use {method}"
            )
    if request.deployment is not None and found is None and not _is_private(request.path):
        return family(request), Action.FORWARD
    allowed = "" if found is None else f" with {request.method}: use {' or '.join(sorted(found[2]))}"
    raise UnknownPathError(f"nothing here at {request.path[:100]!r}{allowed}")


def document_of(request: Request) -> str | None:
    """The id of the document that a request asks for; None where it has not the shape of one."""
    for _, pattern, _, _ in DOCUMENTS:
        found = pattern.fullmatch(request.path)
        if found is not None:
            return found[1]
    return None


def needs_key(dialect: Dialect, action: Action) -> bool:
    """Whether a key is needed where keys are asked for; names of LibreTranslate's documents are secrets themselves."""
    return not (action is Action.FETCH and dialect is LIBRETRANSLATE)


def may_bring_key(dialect: Dialect, action: Action) -> bool:
    """Whether a request may have its key in a body: LibreTranslate's, DeepL's, and those at our own path, which
    LibreTranslate's clients send theirs to.
    """
    return dialect.key_field is not None or (dialect is NATIVE and action is Action.TRANSLATE)


def family(request: Request) -> Dialect:
    """The dialect in which to refuse a request that could not be recognised."""
    if _is_azure(request):
        return AZURE
    return next((dialect for prefix, dialect in FAMILIES if request.path.startswith(prefix)), NATIVE)


def refined(dialect: Dialect, request: Request) -> Dialect:
    """The dialect, once the body is there: LibreTranslate's requests at our own path."""
    if dialect is not NATIVE:
        return dialect
    if request.body.lstrip()[:1] == b"{":
        return LIBRETRANSLATE if b'"q"' in request.body and b'"text"' not in request.body else dialect
    return LIBRETRANSLATE if request.query or request.is_form else dialect


def _is_private(path: str) -> bool:
    """Whether a path is for the cluster, or might become one where dots are resolved."""
    normal = posixpath.normpath(path)
    if "//" in path or normal != (path.rstrip("/") or "/"):
        return True
    return normal in PRIVATE or f"{normal}/".startswith(HELD_GLOSSARIES_PATH)


def _is_azure(request: Request) -> bool:
    return bool(request.query) and f"{VERSION_PARAMETER}=".encode() in request.query
