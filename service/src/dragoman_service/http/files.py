"""Files: their texts are read and translated, and the translation is kept until it is fetched."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import NamedTuple

from cachetools import TTLCache

from dragoman_contract.routing import REPLICA_HEADER, new_document_id
from dragoman_http.exchange import Exchange
from dragoman_protocols.blanks import not_blank, put_back
from dragoman_protocols.calls import TranslateFile
from dragoman_protocols.detection import NOTHING, detect
from dragoman_protocols.errors import UnknownDocumentError
from dragoman_protocols.files import translated_ending
from dragoman_protocols.languages import Pair
from dragoman_protocols.libretranslate.files import FileAnswer
from dragoman_protocols.messages import Answer, Request
from dragoman_protocols.offer import Offer
from dragoman_protocols.translation import TranslationRequest
from dragoman_service.core.costs import Cost, cost_of, demands_of
from dragoman_service.core.translator import Translator
from dragoman_service.files.document import FileDocument
from dragoman_service.files.kinds import read
from dragoman_service.http.answering import Work
from dragoman_service.http.lifecycle import Unfetched

SAMPLED_TEXTS = 200
"""A file's language is detected from its first texts: each alone may be too short."""

KEPT_S = 30 * 60
"""As long as LibreTranslate keeps them."""

MAX_KEPT_BYTES = 128 * 1024 * 1024

_HOST = re.compile(r"[A-Za-z0-9_.-]{1,253}(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:[0-9]{1,5})?")
_PREFIX = re.compile(r"(/[A-Za-z0-9_.~-]{1,100}){1,10}/?")


class Translated(NamedTuple):
    """The content of a translated file.

    Args:
        findings: The number of warnings by their codes, and of segments that are the translation memory's.
    """

    content: bytes
    findings: Mapping[str, int]


@dataclass(frozen=True)
class ReadFile:
    """A file that was read.

    Args:
        texts: All of its texts, blank ones too.
        words: Its texts without their markup, which is what it is charged for.
        request: What the core has to do; None where all texts are blank.
    """

    file: FileDocument
    texts: tuple[str, ...]
    words: tuple[str, ...]
    request: TranslationRequest | None

    @property
    def characters(self) -> int:
        """What it is charged for."""
        return sum(map(len, self.words))

    @property
    def cost(self) -> Cost:
        """Of the translation, for the engine."""
        if self.request is None:
            return cost_of(())
        return cost_of(demands_of(replace(self.request, texts=self.words)))

    async def translated(self, translator: Translator) -> Translated:
        """The file with its texts translated."""
        results = [] if self.request is None else await translator.translate(self.request)

        def rebuilt() -> bytes:
            return self.file.rebuild([result.text for result in put_back(self.texts, results, None)])

        findings = Counter(warned.code for result in results for warned in result.warnings)
        if remembered := sum(result.from_memory for result in results):
            findings["from_memory"] = remembered
        return Translated(await asyncio.to_thread(rebuilt), dict(sorted(findings.items())))


def read_file(call: TranslateFile, offer: Offer) -> ReadFile:
    """The texts of a file, and what has to be done with them. Takes long: call it in a thread.

    Raises:
        CallerError: The file cannot be read.
    """
    file = read(call.name, call.content, call.request.target_lang)
    texts, words = not_blank(file.texts), tuple(file.words())
    request = replace(
        call.request,
        texts=texts,
        format=file.format,
        ignore_tags=file.ignore_tags,
        splitting_tags=file.splitting_tags,
        non_splitting_tags=file.non_splitting_tags,
        source_lang=call.request.source_lang or _detected(words, offer),
    )
    return ReadFile(file, tuple(file.texts), words, request if texts else None)


def result_name(name: str) -> str:
    """The name of a file's translation, which may be of another kind."""
    path = PurePath(name)
    return f"{path.stem}{translated_ending(path.suffix.lower())}"


def _detected(words: tuple[str, ...], offer: Offer) -> str | None:
    """One language for the file; None if it is not clear: the core then detects it text by text."""
    found = detect("\n".join(words[:SAMPLED_TEXTS]), offer.sources)
    return None if found == NOTHING else found.tag


class TranslatedFile(NamedTuple):
    """A translated file and its name."""

    name: str
    content: bytes


class Files:
    """The translated files of a pod by key, for a while and up to a size. Used from the event loop alone.

    Args:
        unfetched: Delays the end of the pod until they are fetched.
        max_bytes: Maximum of all together; those that were not fetched for longest are dropped.
    """

    def __init__(
        self,
        unfetched: Unfetched,
        max_bytes: int = MAX_KEPT_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._files = TTLCache[str, TranslatedFile](
            max_bytes, KEPT_S, clock, getsizeof=lambda file: len(file.content)
        )
        self._unfetched = unfetched

    def put(self, key: str, name: str, content: bytes) -> None:
        """Keep a file. `key` must be hard to guess: fetching requires nothing else."""
        with suppress(ValueError):  # It is larger than all may be together.
            self._files[key] = TranslatedFile(name, content)
        self._unfetched.put(key)

    def find(self, key: str) -> TranslatedFile:
        """A file.

        Raises:
            UnknownDocumentError: There is none, or no longer.
        """
        found = self._files.get(key)
        if found is None:
            raise UnknownDocumentError("no such file; translated files are kept for half an hour")
        self._unfetched.fetched(key)
        return found

    def take(self, key: str) -> bytes | None:
        """The content of a file, which is deleted; None if it is not kept any longer."""
        found = self._files.pop(key, None)
        self._unfetched.fetched(key)
        return None if found is None else found.content


@dataclass
class FileWork(Work):
    """LibreTranslate's: one file to translate within its request."""

    call: TranslateFile
    file: ReadFile
    exchange: Exchange
    files: Files

    is_file = True

    def __post_init__(self) -> None:
        self.characters, self.text_count = self.file.characters, len(self.file.words)

    @property
    def cost(self) -> Cost:
        """Of the texts without markup."""
        return self.file.cost

    def check(self, translator: Translator) -> Pair | None:
        """The pair.

        Raises:
            CallerError: It is not served.
        """
        return translator.check(self.file.request) if self.file.request else None

    async def answer(self, translator: Translator) -> Answer:
        """Translate the file and answer its URL."""
        content, findings = await self.file.translated(translator)
        request = self.exchange.request
        tag = request.text_header(REPLICA_HEADER)
        name = result_name(self.call.name)
        key = f"{new_document_id(tag)}.{name}"
        self.files.put(key, name, content)
        url = f"{base_url(request, self.exchange.scheme)}download_file/{key}"
        return self.call.render(FileAnswer(url, findings))


def base_url(request: Request, scheme: str) -> str:
    """Scheme, host and prefix of the client's address for the pod, with a slash at the end.

    From `X-Forwarded-Proto`, `-Host` and `-Prefix`, which routers and ingresses set, and else from the request itself.
    A client could set them, and gets an address of its own choice back, as with `Host`.
    """
    proto, host, prefix = (_first(request, f"x-forwarded-{name}") for name in ("proto", "host", "prefix"))
    scheme = proto.lower() if proto.lower() in ("http", "https") else scheme
    host = host if _HOST.fullmatch(host) else request.text_header("host") or "localhost"
    prefix = prefix if _PREFIX.fullmatch(prefix) else ""
    return f"{scheme}://{host}{prefix.rstrip('/')}/"


def _first(request: Request, name: str) -> str:
    """The value that the proxy nearest to the client set."""
    return (request.text_header(name) or "").partition(",")[0].strip()
