"""What `/v2/document` is sent: a file and wishes, in a form of parts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from pathlib import PurePath

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from dragoman_contract.languages import Languages
from dragoman_protocols.detection import NOTHING, detect
from dragoman_protocols.errors import InvalidFieldError, MalformedRequestError
from dragoman_protocols.offer import offer_of
from dragoman_service.dialects.deepl.asked import Asked, read_asked
from dragoman_service.dialects.deepl.errors import missing, unsupported
from dragoman_service.dialects.deepl.fields import Fields
from dragoman_service.files.document import FileDocument
from dragoman_service.files.kinds import reader_for

MOST_FIELDS = 100

SLICE_BYTES = 16 * 1024
"""Of a body, parsed at a stretch: a millisecond or two at the worst."""

SAMPLED_TEXTS = 200
"""A file's language is detected from its first texts: each alone may be too short to tell."""


@dataclass(frozen=True)
class Upload:
    """A file as it came.

    Args:
        name: Its name, of which the end tells its kind.
        content: Its bytes.
        fields: What came with it.
    """

    name: str
    content: bytes
    fields: Fields


async def read_upload(request: Request, body: bytes) -> Upload:
    """The file in a form.

    Raises:
        MalformedRequestError: The body is no such form.
        InvalidFieldError: There is no file in it, or it has no name.
    """
    form = MultiPartParser(request.headers, _sliced(body), max_files=1, max_fields=MOST_FIELDS)
    try:
        parts = await form.parse()
    except (MultiPartException, KeyError) as error:
        raise MalformedRequestError(f"the body is no form with a file: {error}") from None
    values: dict[str, list[str]] = {}
    files: list[UploadFile] = []
    for name, part in parts.multi_items():
        if isinstance(part, UploadFile):
            files.append(part)
        else:
            values.setdefault(name, []).append(part)
    try:
        if not files:
            raise missing("file")
        name = (values.get("filename") or [files[0].filename or ""])[-1]
        if not name:
            raise InvalidFieldError("Invalid file data.")
        return Upload(name, await files[0].read(), Fields(values, is_form=True))
    finally:
        for file in files:
            await file.close()


def read_document(upload: Upload, served: tuple[Languages, ...]) -> tuple[FileDocument, Asked]:
    """A file's texts, and what is to be done with them. Takes its time: call it in a thread.

    Args:
        upload: As it came.
        served: The deployment's pairs; empty means every pair.

    Raises:
        CallerError: The file cannot be read, or a field cannot be taken.
    """
    output_format = upload.fields.text("output_format")
    if output_format is not None and f".{output_format.lower()}" != PurePath(upload.name).suffix.lower():
        raise unsupported("output_format")
    document = reader_for(upload.name)(upload.content)
    fields = Fields({**upload.fields.values, "text": list(document.texts) or [""]}, is_form=True)
    asked = read_asked(fields, served, max_texts=len(document.texts) or 1)
    asked = replace(asked, words=document.words())
    if asked.request is None:
        return document, asked
    request = replace(
        asked.request,
        format=document.format,
        ignore_tags=document.ignore_tags,
        splitting_tags=document.splitting_tags,
        non_splitting_tags=document.non_splitting_tags,
        source_lang=asked.request.source_lang or _detected(asked.request.texts, served),
    )
    return document, replace(asked, request=request)


def _detected(texts: tuple[str, ...], served: tuple[Languages, ...]) -> str | None:
    """One language for the file; None where it cannot be told, which leaves it to the core, text by text."""
    found = detect("\n".join(texts[:SAMPLED_TEXTS]), offer_of([served]).sources)
    return None if found == NOTHING else found.tag


async def _sliced(body: bytes) -> AsyncGenerator[bytes]:
    """The body in slices, between which the event loop has its turn."""
    for start in range(0, len(body), SLICE_BYTES):
        yield body[start : start + SLICE_BYTES]
        await asyncio.sleep(0)
