"""`POST /translate_file`: a file in a form, translated and kept until its URL is fetched."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import PurePath

from fastapi import Request, Response

from dragoman_contract.routing import REPLICA_HEADER, new_document_id
from dragoman_protocols.api import CORS_HEADERS, json_answer
from dragoman_protocols.api import Request as ApiRequest
from dragoman_protocols.blanks import not_blank, put_back
from dragoman_protocols.detection import NOTHING, detect
from dragoman_protocols.errors import InvalidFieldError, RequestError
from dragoman_protocols.languages import Pair
from dragoman_protocols.libretranslate.api import API
from dragoman_protocols.libretranslate.fields import missing, read_fields
from dragoman_protocols.multipart import read_form
from dragoman_protocols.offer import Offer, offer_of
from dragoman_protocols.translation import TranslationRequest
from dragoman_service.core.costs import Cost, cost_of, demands_of
from dragoman_service.core.translator import Translator
from dragoman_service.dialects.addresses import base_url
from dragoman_service.files.document import FileDocument
from dragoman_service.files.kinds import reader_for
from dragoman_service.http.draining import Unfetched
from dragoman_service.http.endpoints import response_of
from dragoman_service.http.shelf import Shelf

UNSAFE = re.compile(r"[^A-Za-z0-9_.\-]+")
"""What a file's name is freed from, so that it is the same in every header and on every disk."""

MOST_NAME_CHARS = 100
SAMPLED_TEXTS = 200
"""A file's language is detected from its first texts."""


@dataclass(frozen=True)
class FileWork:
    """One file to translate.

    Args:
        document: The file, read.
        asked: Its texts that are not blank, and what for; None where it has none.
        texts: Their words, without the markup that the engine never sees.
        name: For the one who saves it.
        base_url: By which its sender came, with a slash at its end.
        shelf: Where it will wait.
        unfetched: Told that it waits.
        tag: By which routers know this pod.
    """

    document: FileDocument
    asked: TranslationRequest | None
    texts: Sequence[str]
    name: str
    base_url: str
    shelf: Shelf
    unfetched: Unfetched
    tag: str | None = None
    streams: bool = False
    is_file: bool = True

    @property
    def cost(self) -> Cost:
        """Of the words: the engine never sees the markup."""
        return cost_of(demands_of(replace(self.asked, texts=tuple(self.texts))) if self.asked else ())

    @property
    def characters(self) -> int:
        """Of the words."""
        return sum(map(len, self.texts))

    def reserve(self) -> AbstractContextManager[None]:
        """Nothing: the quota is that of DeepL's API."""
        return nullcontext()

    def check(self, translator: Translator) -> Pair | None:
        """The pair asked for.

        Raises:
            CallerError: It is not served.
        """
        return translator.check(self.asked) if self.asked else None

    async def answer(self, translator: Translator) -> Response:
        """Translate the file and say where it waits."""
        results = await translator.translate(self.asked) if self.asked else []

        def rebuilt() -> bytes:
            return self.document.rebuild(
                [result.text for result in put_back(self.document.texts, results, None)]
            )

        content = await asyncio.to_thread(rebuilt)
        key = f"{new_document_id(self.tag)}.{self.name}"
        self.shelf.put(key, self.name, content)
        self.unfetched.put(key)
        return respond({"translatedFileUrl": f"{self.base_url}download_file/{key}"})

    async def stream(self, translator: Translator) -> AsyncGenerator[bytes]:
        """Never asked for."""
        del translator
        raise NotImplementedError
        yield b""

    def failed(self, error: RequestError) -> bytes:
        """Never asked for."""
        raise NotImplementedError


@dataclass(frozen=True)
class LibreTranslateFiles:
    """The dialect's part for files.

    Args:
        translator: Whose languages a file is detected among.
        shelf: Where translated files wait.
        unfetched: Told of each.
    """

    translator: Translator
    shelf: Shelf
    unfetched: Unfetched
    name: str = "libretranslate"

    async def read(self, request: Request, body: bytes) -> FileWork:
        """What a request asks for; the file is read in a thread.

        Raises:
            CallerError: It cannot be answered as it is.
        """
        return await asyncio.to_thread(self._read, request, body)

    def refuse(self, error: RequestError) -> Response:
        """As for texts."""
        return response_of(API.error(error, ApiRequest("POST", "/translate_file", b"", [])))

    def _read(self, request: Request, body: bytes) -> FileWork:
        sent = ApiRequest("POST", "/translate_file", request.scope["query_string"], request.headers.raw, body)
        if sent.is_multipart:
            sent.upload = read_form(sent.header(b"content-type"), body, keep_file=True)
        need = read_fields(sent).need(self._offer)
        target = need.targets[0]
        if sent.upload is None or sent.upload.file_name is None:
            raise missing("file")
        if not sent.upload.file_name:
            raise InvalidFieldError("Invalid request: empty file")
        document = reader_for(sent.upload.file_name)(sent.upload.content)
        texts = not_blank(document.texts)
        words = document.words()
        asked = TranslationRequest(
            texts=texts,
            target_lang=target,
            source_lang=need.source or self._detected(words),
            format=document.format,
            ignore_tags=document.ignore_tags,
            splitting_tags=document.splitting_tags,
            non_splitting_tags=document.non_splitting_tags,
        )
        name = translated_name(sent.upload.file_name, target)
        return FileWork(
            document,
            asked if texts else None,
            words,
            name,
            base_url(request),
            self.shelf,
            self.unfetched,
            request.headers.get(REPLICA_HEADER),
        )

    @property
    def _offer(self) -> Offer:
        return offer_of([self.translator.languages])

    def _detected(self, words: Sequence[str]) -> str | None:
        """One language for the file: its texts may be too short to tell theirs."""
        sample = "\n".join(words[:SAMPLED_TEXTS])
        found = detect(sample, self._offer.sources)
        return None if found == NOTHING else found.tag


def respond(document: object, status: int = 200) -> Response:
    """An answer of this API."""
    return response_of(json_answer(document, status, CORS_HEADERS))


def translated_name(name: str, target: str) -> str:
    """What the translation of a file is called: `letter.docx` in German is `letter_de.docx`."""
    path = PurePath(name.replace("\\", "/"))
    stem = UNSAFE.sub("_", path.stem).strip("._")[:MOST_NAME_CHARS] or "file"
    return f"{stem}_{UNSAFE.sub('_', target)[:35]}{path.suffix.lower()}"
