"""Dragoman's own API for files: `POST /documents`, its state, its result, and `DELETE` to cancel.

The options are those of `POST /translate`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, NamedTuple
from urllib.parse import quote

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from dragoman_protocols.bodies import described, read_json
from dragoman_protocols.calls import Peek, Reading, TranslateFile
from dragoman_protocols.documents import Document, Documents, State
from dragoman_protocols.endpoints import Endpoint, EndpointKind, Handler, Operation
from dragoman_protocols.errors import InvalidFieldError, MalformedRequestError
from dragoman_protocols.files import media_type
from dragoman_protocols.memories import read_memory
from dragoman_protocols.messages import Answer, Request, charge_headers, json_answer
from dragoman_protocols.multipart import MULTIPART, Upload
from dragoman_protocols.native import (
    API,
    MAX_GLOSSARIES,
    ErrorBody,
    NativeTerm,
    Tag,
    TranslateRequest,
    glossary_ids,
    need_of,
    translation_request,
)
from dragoman_protocols.offer import Offer
from dragoman_protocols.site import Site
from dragoman_protocols.translation import Formality, OnFinding, Split

PATH = "/documents"

MAX_TERMS_BYTES = 1024 * 1024

LISTS = frozenset({"glossary_ids", "instructions"})
"""Fields of the form that may be repeated."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_.\-]+")

BINARY = {"format": "binary"}


class DocumentPair(Struct):
    """What a router reads of the form of `POST /documents`."""

    target_lang: Annotated[Tag, Meta(description='BCP-47 tag of the translation, such as "de" or "zh-Hant"')]
    source_lang: Annotated[
        Tag | None, Meta(description='BCP-47 tag of the file; default and "auto": detected')
    ] = None
    glossary_id: Annotated[str | None, Meta(description="a kept glossary")] = None
    glossary_ids: Annotated[
        list[str], Meta(max_length=MAX_GLOSSARIES, description="the same for several glossaries")
    ] = []


class DocumentForm(DocumentPair, forbid_unknown_fields=True, kw_only=True):
    """The form of `POST /documents`."""

    file: Annotated[
        str, Meta(description="the file; its name's ending is its kind", extra_json_schema=BINARY)
    ]
    terms: Annotated[
        str | None,
        Meta(
            description="a glossary: JSON, as `terms` of /translate, in a field or a file",
            extra_json_schema=BINARY,
        ),
    ] = None
    memory: Annotated[
        str | None, Meta(description="a translation memory in TMX, as a file", extra_json_schema=BINARY)
    ] = None
    formality: Annotated[Formality, Meta(description="tone, where the language has one")] = Formality.DEFAULT
    context: Annotated[str, Meta(description="text that helps to understand and is not translated")] = ""
    instructions: Annotated[list[str], Meta(description="instructions to the model, in words")] = []
    split: Annotated[
        Split | None, Meta(description="what may end a segment; default: as the pod is set up")
    ] = None
    ignore_unsupported: Annotated[
        bool, Meta(description="drop an option that the model does not support; else refuse")
    ] = False
    on_finding: Annotated[
        OnFinding, Meta(description="what a finding of a guard leads to: a count in `findings`, or an error")
    ] = OnFinding.FLAG
    timeout_s: Annotated[float, Meta(gt=0, description="time limit of the translation in seconds")] | None = (
        None
    )


class _Terms(Struct):
    terms: list[NativeTerm]


_TERMS = msgspec.json.Decoder(_Terms)


class DocumentState(Struct):
    """A document, as each response describes it."""

    id: Annotated[str, Meta(description="for the paths of the other requests; a secret")]
    state: State
    name: Annotated[str, Meta(description="file name of the translation")]
    characters: Annotated[int | None, Meta(description="characters of its texts; null until it is parsed")]
    progress: Annotated[float, Meta(ge=0, le=1, description="share of segments that are translated")]
    source_lang: Annotated[
        str | None, Meta(description="BCP-47 tag, as given or as detected; null: not known yet, or not one")
    ]
    target_lang: str
    findings: Annotated[dict[str, int], Meta(description="number of warnings by code")]
    seconds_remaining: Annotated[int, Meta(description="estimated")] | UnsetType = UNSET
    error: Annotated[ErrorBody, Meta(description="where it failed")] | UnsetType = UNSET
    expires_at: (
        Annotated[str, Meta(description="time at which it is deleted, RFC 3339; absent until it has ended")]
        | UnsetType
    ) = UNSET


class Parsed(NamedTuple):
    """An upload, and the fields of its form."""

    upload: Upload
    form: DocumentPair


def find(parsed: Parsed, _: Offer) -> Peek:
    """The pair and the glossaries of an upload, and a sample of its text."""
    form = parsed.form
    need = need_of(form.source_lang, form.target_lang)
    return Peek((need,), 0, glossary_ids=glossary_ids(form), sample=parsed.upload.sample)


def call(parsed: Parsed, found: Peek, _: Site) -> TranslateFile:
    """A file, and the options of its translation."""
    upload, form = parsed
    assert isinstance(form, DocumentForm)
    if upload.file_name is None:
        raise InvalidFieldError("file is required")
    if not upload.file_name:
        raise InvalidFieldError("file must have a name, which shows its kind")
    (need,) = found.needs
    options = TranslateRequest(
        [],
        form.target_lang,
        form.source_lang,
        terms=_terms(upload.terms or (form.terms or "").encode()),
        formality=form.formality,
        context=form.context,
        instructions=form.instructions,
        split=form.split,
        ignore_unsupported=form.ignore_unsupported,
        on_finding=form.on_finding,
        timeout_s=form.timeout_s,
    )
    memory = read_memory(upload.memory, need.source, need.targets[0])
    wanted = replace(translation_request(options, need), memory=memory)
    return TranslateFile(
        upload.file_name,
        upload.content,
        wanted,
        lambda document: describe(document, 202),
        found.glossary_ids,
    )


def describe(document: Document, status: int = 200) -> Answer:
    """The response that describes a document, and charges for it."""
    state = DocumentState(
        document.id.hex,
        document.state,
        document.name,
        document.characters,
        round(document.share, 3),
        document.source_lang,
        document.target_lang,
        dict(document.findings),
    )
    remaining_s = document.seconds_remaining(time.monotonic())
    if remaining_s is not None:
        state.seconds_remaining = remaining_s
    if document.error is not None:
        state.error = ErrorBody(document.error.code, str(document.error))
    if document.expires_s is not None:
        state.expires_at = datetime.fromtimestamp(int(document.expires_s), UTC).isoformat()
    return json_answer(state, status, charge_headers(document.charge()))


def handle_state(request: Request) -> Callable[[Documents], Awaitable[Answer]]:
    """Describe a document."""

    async def act(documents: Documents) -> Answer:
        return describe(documents.find(API.name, request.variables["id"]))

    return act


def handle_cancel(request: Request) -> Callable[[Documents], Awaitable[Answer]]:
    """Cancel a document, and describe it."""

    async def act(documents: Documents) -> Answer:
        found = documents.find(API.name, request.variables["id"])
        documents.cancel(found)
        return describe(found)

    return act


def handle_result(request: Request) -> Callable[[Documents], Awaitable[Answer]]:
    """Answer a translated file."""

    async def act(documents: Documents) -> Answer:
        found = documents.find(API.name, request.variables["id"])
        content = documents.result(found)
        headers = (
            ("Content-Type", media_type(found.name)),
            ("Content-Disposition", content_disposition(found.name)),
            ("X-Content-Type-Options", "nosniff"),
            *charge_headers(found.charge()),
        )
        return Answer(200, content, headers, delivered=lambda: documents.delivered(found))

    return act


def content_disposition(name: str) -> str:
    """The header for a download (RFC 6266), in ASCII, with the whole name percent-encoded beside it."""
    encoded = quote(name, safe="", errors="replace")
    return f"attachment; filename=\"{_UNSAFE.sub('_', name)}\"; filename*=UTF-8''{encoded}"


def _parsed(request: Request, shape: type[DocumentPair]) -> Parsed:
    if request.upload is None:
        raise MalformedRequestError("the body is no form with a file; send multipart/form-data")
    values = {name: found if name in LISTS else found[-1] for name, found in request.upload.fields.items()}
    try:
        return Parsed(request.upload, msgspec.convert({"file": "", **values}, shape, strict=False))
    except msgspec.ValidationError as error:
        raise described(error, shape) from None


def _terms(content: bytes) -> list[NativeTerm]:
    if len(content) > MAX_TERMS_BYTES:
        raise InvalidFieldError(f"terms is longer than {MAX_TERMS_BYTES} bytes")
    return read_json(b'{"terms":%b}' % content, _TERMS).terms if content else []


def _document(method: str, path: str, handle: Handler, operation: Operation) -> Endpoint:
    return Endpoint(API, EndpointKind.DOCUMENT, path, frozenset({method}), handle=handle, operation=operation)


READING = Reading(
    lambda request: _parsed(request, DocumentPair),
    find,
    call,
    lambda request: _parsed(request, DocumentForm),
)
ENDPOINTS = (
    Endpoint(
        API,
        EndpointKind.FILE,
        PATH,
        frozenset({"POST"}),
        reading=READING,
        in_background=True,
        operation=Operation(
            "Upload a file. It is translated in the background.",
            {MULTIPART.decode(): DocumentForm},
            answer=DocumentState,
        ),
    ),
    _document(
        "GET",
        f"{PATH}/{{id}}",
        handle_state,
        Operation("Get the state of a document.", answer=DocumentState),
    ),
    _document(
        "DELETE",
        f"{PATH}/{{id}}",
        handle_cancel,
        Operation("Cancel the translation of a document, or delete its result.", answer=DocumentState),
    ),
    _document(
        "GET",
        f"{PATH}/{{id}}/result",
        handle_result,
        Operation("Download a translated document; possible until it expires."),
    ),
)
