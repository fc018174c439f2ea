"""`POST /translate_file` and `GET /download_file/{key}`: a file is translated and kept until its URL is fetched."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import PurePath
from typing import NamedTuple, Protocol

from dragoman_protocols.calls import Peek, TranslateFile
from dragoman_protocols.errors import InvalidFieldError
from dragoman_protocols.files import media_type
from dragoman_protocols.libretranslate.fields import missing, read_fields
from dragoman_protocols.memories import read_memory
from dragoman_protocols.messages import CORS_HEADERS, Answer, Request, cors_answer
from dragoman_protocols.offer import Offer
from dragoman_protocols.site import Site
from dragoman_protocols.translation import TranslationRequest

MAX_NAME_CHARS = 100
MAX_TARGET_CHARS = 35

_UNSAFE = re.compile(r"[^A-Za-z0-9_.\-]+")
"""Removed from a file's name, so that it is the same in every header and on every disk."""


class KeptFile(Protocol):
    """A translated file."""

    @property
    def name(self) -> str:
        """For the one who saves it."""
        ...

    @property
    def content(self) -> bytes:
        """Its bytes."""
        ...


class FileAnswer(NamedTuple):
    """What is known of a translated file.

    Args:
        findings: The number of warnings about its translation by their codes.
    """

    url: str
    findings: Mapping[str, int]


class Files(Protocol):
    """The translated files of a pod."""

    def find(self, key: str) -> KeptFile:
        """A file.

        Raises:
            UnknownDocumentError: There is none, or no longer.
        """
        ...


def peek_file(request: Request, offer: Offer) -> Peek:
    """The pair, and the beginning of the file."""
    need = read_fields(request).need(offer)
    return Peek((need,), 0, sample="" if request.upload is None else request.upload.sample)


def read_file(request: Request, site: Site) -> TranslateFile:
    """A file of one pair."""
    need = read_fields(request).need(site.offer)
    upload = request.upload
    if upload is None or upload.file_name is None:
        raise missing("file")
    if not upload.file_name:
        raise InvalidFieldError("Invalid request: empty file")
    target = need.targets[0]
    name = translated_name(upload.file_name, target)
    memory = read_memory(upload.memory, need.source, target)
    wanted = TranslationRequest((), target, need.source, memory=memory)
    return TranslateFile(name, upload.content, wanted, (need,), _translated, upload.sample)


def handle_download(request: Request) -> Callable[[Files], Awaitable[Answer]]:
    """Answer a translated file, while it is kept."""
    key = request.variables["key"]

    async def act(files: Files) -> Answer:
        found = files.find(key)
        media = media_type(found.name)
        headers = (
            ("Content-Type", media),
            ("Content-Disposition", f"attachment; filename={found.name}"),
            ("X-Content-Type-Options", "nosniff"),
        )
        return Answer(200, found.content, CORS_HEADERS + headers)

    return act


def _translated(file: FileAnswer) -> Answer:
    findings = {"findings": file.findings} if file.findings else {}
    return cors_answer({"translatedFileUrl": file.url, **findings})


def translated_name(name: str, target: str) -> str:
    """The name of a file's translation: `letter_de.docx` for `letter.docx` in German."""
    path = PurePath(name.replace("\\", "/"))
    stem = _UNSAFE.sub("_", path.stem).strip("._")[:MAX_NAME_CHARS] or "file"
    return f"{stem}_{_UNSAFE.sub('_', target)[:MAX_TARGET_CHARS]}{path.suffix.lower()}"
