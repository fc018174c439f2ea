"""`POST /translate_file` and `GET /download_file/{key}`: a file is translated and kept until its URL is fetched."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import PurePath

from dragoman_protocols.calls import Peek, Reading, TranslateFile
from dragoman_protocols.documents import KEPT_S, Document, Documents
from dragoman_protocols.errors import InvalidFieldError, UnknownDocumentError
from dragoman_protocols.files import media_type
from dragoman_protocols.libretranslate.fields import Fields, missing, read_fields
from dragoman_protocols.memories import read_memory
from dragoman_protocols.messages import CORS_HEADERS, Answer, Request, cors_answer
from dragoman_protocols.offer import Offer
from dragoman_protocols.site import Site
from dragoman_protocols.translation import TranslationRequest

API_NAME = "libretranslate"
MAX_NAME_CHARS = 100
MAX_TARGET_CHARS = 35

_HOST = re.compile(r"[A-Za-z0-9_.-]{1,253}(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:[0-9]{1,5})?")
_PREFIX = re.compile(r"(/[A-Za-z0-9_.~-]{1,100}){1,10}/?")
_UNSAFE = re.compile(r"[^A-Za-z0-9_.\-]+")
"""Removed from a file's name, so that it is the same in every header and on every disk."""


Parsed = tuple[Request, Fields]


def parse(request: Request) -> Parsed:
    """The fields of an upload, beside the request."""
    return request, read_fields(request)


def find(parsed: Parsed, offer: Offer) -> Peek:
    """The pair, and the beginning of the file."""
    request, fields = parsed
    return Peek((fields.need(offer),), 0, sample="" if request.upload is None else request.upload.sample)


def call(parsed: Parsed, found: Peek, _: Site) -> TranslateFile:
    """A file of one pair."""
    request, _fields = parsed
    upload = request.upload
    if upload is None or upload.file_name is None:
        raise missing("file")
    if not upload.file_name:
        raise InvalidFieldError("Invalid request: empty file")
    (need,) = found.needs
    (target,) = need.targets
    name = translated_name(upload.file_name, target)
    memory = read_memory(upload.memory, need.source, target)
    wanted = TranslationRequest((), target, need.source, memory=memory)
    url = base_url(request)
    return TranslateFile(name, upload.content, wanted, lambda document: _translated(document, url))


READING = Reading(parse, find, call)


def handle_download(request: Request) -> Callable[[Documents], Awaitable[Answer]]:
    """Answer a translated file, while it is kept."""
    document_id, _, name = request.variables["key"].partition(".")

    async def act(documents: Documents) -> Answer:
        found = documents.find(API_NAME, document_id)
        if found.name != name:
            raise UnknownDocumentError("no such file; translated files are kept for half an hour")
        headers = (
            ("Content-Type", media_type(name)),
            ("Content-Disposition", f"attachment; filename={name}"),
            ("X-Content-Type-Options", "nosniff"),
        )
        content = documents.result(found)
        return Answer(
            200, content, CORS_HEADERS + headers, delivered=lambda: documents.delivered(found, KEPT_S)
        )

    return act


def _translated(document: Document, base_url: str) -> Answer:
    url = f"{base_url}download_file/{document.id}.{document.name}"
    findings = {"findings": document.findings} if document.findings else {}
    return cors_answer({"translatedFileUrl": url, **findings})


def base_url(request: Request) -> str:
    """Scheme, host and prefix of the client's address for the pod, with a slash at the end.

    From `X-Forwarded-Proto`, `-Host` and `-Prefix`, which routers and ingresses set, and else from the request itself.
    A client could set them, and gets an address of its own choice back, as with `Host`.
    """
    proto, host, prefix = (_first(request, f"x-forwarded-{name}") for name in ("proto", "host", "prefix"))
    scheme = proto.lower() if proto.lower() in ("http", "https") else request.scheme
    host = host if _HOST.fullmatch(host) else request.text_header("host") or "localhost"
    prefix = prefix if _PREFIX.fullmatch(prefix) else ""
    return f"{scheme}://{host}{prefix.rstrip('/')}/"


def _first(request: Request, name: str) -> str:
    """The value that the proxy nearest to the client set."""
    return (request.text_header(name) or "").partition(",")[0].strip()


def translated_name(name: str, target: str) -> str:
    """The name of a file's translation: `letter_de.docx` for `letter.docx` in German."""
    path = PurePath(name.replace("\\", "/"))
    stem = _UNSAFE.sub("_", path.stem).strip("._")[:MAX_NAME_CHARS] or "file"
    return f"{stem}_{_UNSAFE.sub('_', target)[:MAX_TARGET_CHARS]}{path.suffix.lower()}"
