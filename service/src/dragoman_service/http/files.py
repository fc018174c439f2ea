"""LibreTranslate's files: translated within the request, and kept until their URL is fetched."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from starlette.requests import Request as Received
from starlette.responses import Response

from dragoman_contract.routing import REPLICA_HEADER, new_document_id
from dragoman_protocols.api import TranslateFile
from dragoman_protocols.errors import RequestError, UnknownDocumentError
from dragoman_protocols.languages import Pair
from dragoman_service.core.costs import Cost
from dragoman_service.core.translator import Translator
from dragoman_service.http.addresses import base_url
from dragoman_service.http.draining import Unfetched
from dragoman_service.http.shelf import Shelf, Shelved
from dragoman_service.http.uploads import ReadFile
from dragoman_service.http.work import response_of


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
    """One file to translate within its request.

    Args:
        call: What the client requests.
        file: The file, read.
        received: The request.
        files: Keeps the translation.
    """

    call: TranslateFile
    file: ReadFile
    received: Received
    files: Files
    streams: bool = False
    is_file: bool = True

    @property
    def texts(self) -> Sequence[str]:
        """Without markup, which the engine never sees."""
        return self.file.words

    @property
    def cost(self) -> Cost:
        """Of the texts without markup."""
        return self.file.cost

    @property
    def characters(self) -> int:
        """Of the texts without markup."""
        return self.file.characters

    def reserve(self) -> AbstractContextManager[None]:
        """Nothing: the quota is that of DeepL's API."""
        return nullcontext()

    def check(self, translator: Translator) -> Pair | None:
        """The pair.

        Raises:
            CallerError: It is not served.
        """
        return translator.check(self.file.request) if self.file.request else None

    async def answer(self, translator: Translator) -> Response:
        """Translate the file and answer its URL."""
        content = await self.file.translated(translator)
        tag = self.received.headers.get(REPLICA_HEADER)
        key = f"{new_document_id(tag)}.{self.call.name}"
        self.files.put(key, self.call.name, content)
        return response_of(self.call.render(f"{base_url(self.received)}download_file/{key}"))

    async def stream(self, translator: Translator) -> AsyncGenerator[bytes]:
        """Not supported."""
        del translator
        raise NotImplementedError
        yield b""

    def failed(self, error: RequestError) -> bytes:
        """Not supported."""
        raise NotImplementedError
