"""The endpoints of DeepL's API.

Source: https://github.com/DeepLcom/openapi
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from dragoman_protocols.deepl import (
    codes,
    documents,
    glossary_handlers,
    languages,
    style_handlers,
    translate,
    types,
)
from dragoman_protocols.deepl.errors import API
from dragoman_protocols.deepl.fields import bounded_fields
from dragoman_protocols.endpoints import Endpoint, EndpointKind, Handler, Operation, json_or_form
from dragoman_protocols.errors import UnknownPathError
from dragoman_protocols.messages import Answer, Request, json_answer
from dragoman_protocols.multipart import MULTIPART
from dragoman_protocols.site import Site

MAX_BODY_BYTES = 128 * 1024
"""DeepL's own maximum for `/v2/translate`. Source: https://developers.deepl.com/api-reference/translate"""

UNLIMITED = 1_000_000_000_000
"""DeepL's limit for keys without one; clients divide by it."""

_GET, _POST, _BOTH = frozenset({"GET"}), frozenset({"POST"}), frozenset({"GET", "POST"})
_ANY = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})


def respond_languages(request: Request, site: Site) -> Answer:
    """Source or target languages; the Python client names the type in a form body on GET."""
    kind = bounded_fields(request).choice("type", ("source", "target"))
    listed = codes.targets if kind == "target" else codes.sources
    return json_answer(listed(site.offer))


def respond_usage(request: Request, site: Site) -> Answer:
    """The characters that the key used, or the pod translated since it started."""
    bounded_fields(request)
    limit = UNLIMITED if site.usage.limit is None else site.usage.limit
    return json_answer({"character_count": site.usage.characters, "character_limit": limit})


def respond_glossary_pairs(request: Request, site: Site) -> Answer:
    """The pairs that glossaries can be created for."""
    bounded_fields(request)
    return json_answer({"supported_languages": codes.glossary_pairs(site.offer)})


def refuse(request: Request, _: Site) -> NoReturn:
    """What DeepL has, or may have, and is not served."""
    raise UnknownPathError(f"{request.method} {request.path[:100]} is not served here")


def _information(
    path: str, methods: frozenset[str], respond: Callable[[Request, Site], Answer], operation: Operation
) -> Endpoint:
    return Endpoint(API, EndpointKind.RESPOND, path, methods, respond=respond, operation=operation)


def _document(path: str, handle: Handler, summary: str) -> Endpoint:
    operation = Operation(summary, json_or_form(types.DocumentKeyShape))
    return Endpoint(API, EndpointKind.DOCUMENT, path, _POST, handle=handle, operation=operation)


ENDPOINTS = (
    Endpoint(
        API,
        EndpointKind.TRANSLATE,
        "/v2/translate",
        _POST,
        reading=translate.READING,
        max_body_bytes=MAX_BODY_BYTES,
        operation=Operation("Translate texts.", json_or_form(types.TranslateShape)),
    ),
    _information(
        "/v2/languages",
        _BOTH,
        respond_languages,
        Operation("List the source languages or the target languages.", query=types.LanguagesShape),
    ),
    _information(
        "/v3/languages",
        _GET,
        languages.respond_languages,
        Operation(
            "List the languages of a resource, with the features that are supported for them.",
            query=types.ResourceShape,
        ),
    ),
    _information(
        "/v3/languages/resources",
        _GET,
        languages.respond_resources,
        Operation("List the resources, with their features."),
    ),
    _information(
        "/v2/usage",
        _BOTH,
        respond_usage,
        Operation("Get the number of translated characters, and the limit."),
    ),
    _information(
        "/v2/glossary-language-pairs",
        _GET,
        respond_glossary_pairs,
        Operation("List the language pairs for which glossaries can be created."),
    ),
    *glossary_handlers.ENDPOINTS,
    *style_handlers.ENDPOINTS,
    Endpoint(
        API,
        EndpointKind.FILE,
        "/v2/document",
        _POST,
        reading=documents.READING,
        in_background=True,
        operation=Operation("Upload a document and translate it.", {MULTIPART.decode(): types.DocumentShape}),
    ),
    _document("/v2/document/{document_id}", documents.handle_state, "Get the state of a document."),
    _document(
        "/v2/document/{document_id}/cancel", documents.handle_cancel, "Cancel the translation of a document."
    ),
    _document(
        "/v2/document/{document_id}/result",
        documents.handle_result,
        "Download a translated document.",
    ),
    *(
        Endpoint(API, EndpointKind.RESPOND, path, _ANY, respond=refuse, needs_key=False)
        for path in ("/v2/{rest}", "/v3/{rest}")
    ),
)
