"""`/v2/document`: uploads, and documents that are fetched once they are translated."""

from __future__ import annotations

import hmac
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from dragoman_protocols.calls import EQUAL, Peek, Reading, TranslateFile
from dragoman_protocols.deepl.errors import API, missing, unsupported
from dragoman_protocols.deepl.fields import Fields, bounded_fields
from dragoman_protocols.deepl.translate import glossary_ids, need_of, options
from dragoman_protocols.documents import Document, Documents, State
from dragoman_protocols.errors import InvalidFieldError, MalformedRequestError, UnknownDocumentError
from dragoman_protocols.files import media_type, translated_ending
from dragoman_protocols.languages import canonical
from dragoman_protocols.memories import read_memory
from dragoman_protocols.messages import Answer, Request, charge_headers, json_answer
from dragoman_protocols.multipart import Upload
from dragoman_protocols.offer import Offer
from dragoman_protocols.site import Site

STATES = {State.DONE: "done", State.FAILED: "error", State.CANCELLED: "error"}
"""DeepL's words; all other states are `translating`."""

CANCELLED = "cancelled by its client"


Parsed = tuple[Upload, Fields]


def parse(request: Request) -> Parsed:
    """The form of an upload."""
    if request.upload is None:
        raise MalformedRequestError("the body is no form with a file; send multipart/form-data")
    return request.upload, Fields(request.upload.fields, is_form=True)


def find(parsed: Parsed, offer: Offer) -> Peek:
    """The pair and the glossaries of an upload, and a sample of its text."""
    upload, fields = parsed
    need = need_of(fields, offer)
    if (fields.text("source_lang") or "").lower() == fields.required("target_lang").lower():
        raise InvalidFieldError(EQUAL)
    return Peek((need,), 0, glossary_ids=glossary_ids(fields, need.source), sample=upload.sample)


def call(parsed: Parsed, found: Peek, _: Site) -> TranslateFile:
    """A file, and the options of its translation."""
    upload, fields = parsed
    if upload.file_name is None:
        raise missing("file")
    name = fields.text("filename") or upload.file_name
    if not name:
        raise InvalidFieldError("Invalid file data.")
    _check_output_format(fields.text("output_format"), PurePath(name).suffix.lower())
    (need,) = found.needs
    memory = read_memory(upload.memory, need.source, need.targets[0])
    request = replace(options(fields, found), memory=memory)
    return TranslateFile(
        name,
        upload.content,
        request,
        uploaded,
        found.glossary_ids,
        # Not the variant of a language: English is translated into EN-US.
        refused_source=canonical(fields.required("target_lang")),
    )


READING = Reading(parse, find, call)


def _check_output_format(output_format: str | None, ending: str) -> None:
    """Refuse a translation that would be of another kind than its client takes it for."""
    wanted = ending if output_format is None else f".{output_format.lower()}"
    made = translated_ending(ending)
    if wanted == made:
        return
    if made == ending:
        raise unsupported("output_format")
    raise InvalidFieldError(
        f"Value for 'output_format' not supported: {ending} is translated into {made}. Set output_format to "
        f"{made[1:]!r}; DeepL's clients do so for an output file whose name ends in {made}."
    )


def uploaded(document: Document) -> Answer:
    """The answer of an upload."""
    return json_answer(
        {"document_id": _id(document), "document_key": document.secret},
        headers=charge_headers(document.charge()),
    )


def handle_state(request: Request) -> Callable[[Documents], Awaitable[Answer]]:
    """Describe a document's state."""
    key = _key(request)

    async def act(documents: Documents) -> Answer:
        return _described(_find(documents, request, key))

    return act


def handle_cancel(request: Request) -> Callable[[Documents], Awaitable[Answer]]:
    """Cancel a document, and describe its state; not DeepL's."""
    key = _key(request)

    async def act(documents: Documents) -> Answer:
        found = _find(documents, request, key)
        documents.cancel(found)
        return _described(found)

    return act


def handle_result(request: Request) -> Callable[[Documents], Awaitable[Answer]]:
    """Answer a translated document."""
    key = _key(request)

    async def act(documents: Documents) -> Answer:
        found = _find(documents, request, key)
        content = documents.result(found)
        headers = (("Content-Type", media_type(found.name)), *charge_headers(found.charge()))
        return Answer(200, content, headers, delivered=lambda: documents.delivered(found))

    return act


def state_json(document: Document) -> dict[str, Any]:
    """The body of `/v2/document/{document_id}`."""
    status = STATES.get(document.state, "translating")
    described: dict[str, Any] = {"document_id": _id(document), "status": status}
    match document.state:
        case State.DONE:
            described["billed_characters"] = document.characters
            if document.findings:
                described["findings"] = document.findings
        case State.FAILED | State.CANCELLED:
            error = CANCELLED if document.error is None else str(document.error)
            described["message"] = described["error_message"] = error
        case _:
            described["progress"] = round(document.share, 3)
            remaining_s = document.seconds_remaining(time.monotonic())
            if remaining_s is not None:
                described["seconds_remaining"] = remaining_s
    return described


def _described(document: Document) -> Answer:
    return json_answer(state_json(document), headers=charge_headers(document.charge()))


def _id(document: Document) -> str:
    return document.id.hex.upper()


def _key(request: Request) -> str:
    return bounded_fields(request).required("document_key")


def _find(documents: Documents, request: Request, key: str) -> Document:
    found = documents.find(API.name, request.variables["document_id"])
    if not hmac.compare_digest(found.secret.encode(), key.encode(errors="replace")):
        raise UnknownDocumentError("Document not found")
    return found
