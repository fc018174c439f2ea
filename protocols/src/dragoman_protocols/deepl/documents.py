"""`/v2/document`: uploads, and documents that are fetched once they are translated."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import PurePath
from typing import Any, Protocol

from dragoman_contract.routing import CHARACTERS_HEADER
from dragoman_protocols.calls import Peek, TranslateFile
from dragoman_protocols.deepl.errors import missing, unsupported
from dragoman_protocols.deepl.fields import Fields, bounded_fields
from dragoman_protocols.deepl.translate import glossary_ids, need_of, options
from dragoman_protocols.errors import InvalidFieldError, MalformedRequestError
from dragoman_protocols.files import media_type, translated_ending
from dragoman_protocols.memories import read_memory
from dragoman_protocols.messages import Answer, Request, json_answer
from dragoman_protocols.multipart import Upload
from dragoman_protocols.offer import Offer
from dragoman_protocols.site import Site


class State(StrEnum):
    """The state of a document, in DeepL's words."""

    TRANSLATING = "translating"
    DONE = "done"
    ERROR = "error"


@dataclass
class Document:
    """One document.

    Args:
        name: Of its translation.
        characters: What it is charged for, and what counts as usage once it is done.
        charged: Characters that answers so far have charged for it.
        charged_share: Of the characters, where it failed: what was translated before its client cancelled it.
        share: Of its segments, those that are translated.
        started_s: When its translation started, on the monotonic clock.
        findings: The number of warnings about its translation by their codes.
    """

    document_id: str
    document_key: str
    name: str
    characters: int
    state: State = State.TRANSLATING
    error: str = ""
    charged: int = 0
    charged_share: float = 0.0
    share: float = 0.0
    started_s: float = 0.0
    findings: Mapping[str, int] = field(default_factory=dict)

    def advance(self, share: float) -> None:
        """Set the share of its segments that are translated."""
        self.share = share

    def seconds_remaining(self, now_s: float) -> int | None:
        """Estimated by the share that is done; None while nothing is."""
        if not self.share:
            return None
        return math.ceil((now_s - self.started_s) * (1 - self.share) / self.share)


class Documents(Protocol):
    """Documents of a pod."""

    def find(self, document_id: str, document_key: str) -> Document:
        """A document.

        Raises:
            UnknownDocumentError: There is none of this id, or no longer, or the key is another's.
        """
        ...

    def cancel(self, document_id: str, document_key: str) -> Document:
        """End a document's translation, or delete what came of it.

        Raises:
            UnknownDocumentError: See `find`.
        """
        ...

    def take(self, document_id: str, document_key: str) -> bytes:
        """A document's translation, which is deleted.

        Raises:
            UnknownDocumentError: See `find`; or it was kept for too long.
            DocumentNotDoneError: It is not done.
        """
        ...


def peek(request: Request, offer: Offer) -> Peek:
    """The pair and the glossaries of an upload, and a sample of its text."""
    upload, fields = _form(request)
    need = need_of(fields, offer)
    return Peek((need,), 0, glossary_ids=glossary_ids(fields, need.source), sample=upload.sample)


def read(request: Request, site: Site) -> TranslateFile:
    """A file, and the options of its translation."""
    upload, fields = _form(request)
    if upload.file_name is None:
        raise missing("file")
    name = fields.text("filename") or upload.file_name
    if not name:
        raise InvalidFieldError("Invalid file data.")
    _check_output_format(fields.text("output_format"), PurePath(name).suffix.lower())
    need = need_of(fields, site.offer)
    named = glossary_ids(fields, need.source)
    memory = read_memory(upload.memory, need.source, need.targets[0])
    wanted = replace(options(fields, need, named), memory=memory)
    return TranslateFile(name, upload.content, wanted, (need,), uploaded, upload.sample, named)


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
        {"document_id": document.document_id, "document_key": document.document_key},
        headers=charge(document),
    )


def handle_state(request: Request) -> Callable[[Documents], Awaitable[Answer]]:
    """Describe a document's state."""
    key = bounded_fields(request).required("document_key")

    async def act(documents: Documents) -> Answer:
        found = documents.find(request.variables["document_id"], key)
        return json_answer(state_json(found), headers=charge(found))

    return act


def handle_cancel(request: Request) -> Callable[[Documents], Awaitable[Answer]]:
    """Cancel a document, and describe its state; not DeepL's."""
    key = bounded_fields(request).required("document_key")

    async def act(documents: Documents) -> Answer:
        found = documents.cancel(request.variables["document_id"], key)
        return json_answer(state_json(found), headers=charge(found))

    return act


def handle_result(request: Request) -> Callable[[Documents], Awaitable[Answer]]:
    """Answer a translated document, once."""
    key = bounded_fields(request).required("document_key")

    async def act(documents: Documents) -> Answer:
        document_id = request.variables["document_id"]
        media = media_type(documents.find(document_id, key).name)
        return Answer(200, documents.take(document_id, key), (("Content-Type", media),))

    return act


def charge(document: Document) -> tuple[tuple[str, str], ...]:
    """What an answer charges for a document: its upload for all characters; a failure takes them back once.

    Of a document that its client cancelled, the share that was translated stays charged.
    """
    failed = document.state is State.ERROR
    due = round(document.characters * document.charged_share) if failed else document.characters
    change, document.charged = due - document.charged, due
    return ((CHARACTERS_HEADER, str(change)),) if change else ()


def state_json(document: Document) -> dict[str, Any]:
    """The body of `/v2/document/{document_id}`."""
    described: dict[str, Any] = {"document_id": document.document_id, "status": document.state}
    if document.state is State.TRANSLATING:
        described["progress"] = round(document.share, 3)
        remaining_s = document.seconds_remaining(time.monotonic())
        if remaining_s is not None:
            described["seconds_remaining"] = remaining_s
    if document.state is State.DONE:
        described["billed_characters"] = document.characters
        if document.findings:
            described["findings"] = document.findings
    if document.state is State.ERROR:
        described["message"] = described["error_message"] = document.error
    return described


def _form(request: Request) -> tuple[Upload, Fields]:
    if request.upload is None:
        raise MalformedRequestError("the body is no form with a file; send multipart/form-data")
    return request.upload, Fields(request.upload.fields, is_form=True)
