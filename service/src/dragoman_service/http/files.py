"""LibreTranslate's files: translated within the request, and kept until their URL is fetched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from starlette.requests import Request as Received
from starlette.responses import Response

from dragoman_contract.routing import REPLICA_HEADER, new_document_id
from dragoman_protocols.api import Answer, TranslateFile
from dragoman_protocols.blanks import not_blank, put_back
from dragoman_protocols.detection import NOTHING, detect
from dragoman_protocols.errors import RequestError, UnknownDocumentError
from dragoman_protocols.languages import Pair
from dragoman_protocols.offer import Offer
from dragoman_protocols.translation import TranslationRequest
from dragoman_service.core.costs import Cost, cost_of, demands_of
from dragoman_service.core.translator import Translator
from dragoman_service.files.document import FileDocument
from dragoman_service.files.kinds import reader_for
from dragoman_service.http.addresses import base_url
from dragoman_service.http.draining import Unfetched
from dragoman_service.http.shelf import Shelf, Shelved
from dragoman_service.http.work import response_of

SAMPLED_TEXTS = 200
"""A file's language is detected from its first texts: each alone may be too short."""


class Files:
    """The translated files of a pod.

    Args:
        unfetched: Delays the end of the pod until they are fetched.
    """

    def __init__(self, unfetched: Unfetched) -> None:
        self._shelf = Shelf()
        self._unfetched = unfetched

    def find(self, key: str) -> Shelved:
        """A file.

        Raises:
            UnknownDocumentError: There is none, or no longer.
        """
        found = self._shelf.get(key)
        if found is None:
            raise UnknownDocumentError("no such file; translated files are kept for half an hour")
        self._unfetched.fetched(key)
        return found

    def put(self, key: str, name: str, content: bytes) -> None:
        """Keep a file."""
        self._shelf.put(key, name, content)
        self._unfetched.put(key)


@dataclass(frozen=True)
class FileWork:
    """One file to translate.

    Args:
        document: The file, read.
        request: What the core has to do; None where all texts are blank.
        texts: Its texts without their markup, which the engine never sees.
        name: Of the translation.
        files: Keeps it.
        base_url: The address of the pod as the client sees it.
        tag: Of this pod, from the router.
        render: Makes the answer of the URL.
    """

    document: FileDocument
    request: TranslationRequest | None
    texts: Sequence[str]
    name: str
    files: Files
    base_url: str
    tag: str | None
    render: Callable[[str], Answer]
    streams: bool = False
    is_file: bool = True

    @property
    def cost(self) -> Cost:
        """Of the texts without markup."""
        return cost_of(demands_of(replace(self.request, texts=tuple(self.texts))) if self.request else ())

    @property
    def characters(self) -> int:
        """Of the texts without markup."""
        return sum(map(len, self.texts))

    def reserve(self) -> AbstractContextManager[None]:
        """Nothing: the quota is that of DeepL's API."""
        return nullcontext()

    def check(self, translator: Translator) -> Pair | None:
        """The pair.

        Raises:
            CallerError: It is not served.
        """
        return translator.check(self.request) if self.request else None

    async def answer(self, translator: Translator) -> Response:
        """Translate the file and answer its URL."""
        results = await translator.translate(self.request) if self.request else []

        def rebuilt() -> bytes:
            return self.document.rebuild(
                [result.text for result in put_back(self.document.texts, results, None)]
            )

        content = await asyncio.to_thread(rebuilt)
        key = f"{new_document_id(self.tag)}.{self.name}"
        self.files.put(key, self.name, content)
        return response_of(self.render(f"{self.base_url}download_file/{key}"))

    async def stream(self, translator: Translator) -> AsyncGenerator[bytes]:
        """Not supported."""
        del translator
        raise NotImplementedError
        yield b""

    def failed(self, error: RequestError) -> bytes:
        """Not supported."""
        raise NotImplementedError


def file_work(call: TranslateFile, received: Received, offer: Offer, files: Files) -> FileWork:
    """The work of a call. Reading the file takes long: call it in a thread.

    Raises:
        CallerError: The file cannot be read.
    """
    document = reader_for(call.name)(call.content)
    texts, words = not_blank(document.texts), document.words()
    request = replace(
        call.request,
        texts=texts,
        source_lang=call.request.source_lang or _detected(words, offer),
        format=document.format,
        ignore_tags=document.ignore_tags,
        splitting_tags=document.splitting_tags,
        non_splitting_tags=document.non_splitting_tags,
    )
    return FileWork(
        document,
        request if texts else None,
        words,
        call.name,
        files,
        base_url(received),
        received.headers.get(REPLICA_HEADER),
        call.render,
    )


def _detected(words: Sequence[str], offer: Offer) -> str | None:
    """One language for the file."""
    found = detect("\n".join(words[:SAMPLED_TEXTS]), offer.sources)
    return None if found == NOTHING else found.tag
