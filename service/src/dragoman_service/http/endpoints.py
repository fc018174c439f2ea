"""Serves the endpoints of `dragoman_protocols`: requests become work for the core."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial

from starlette.routing import BaseRoute

from dragoman_contract.routing import GLOSSARIES_HEADER, ROUTER_HEADER
from dragoman_http.exchange import Exchange
from dragoman_protocols.calls import Events, Results, Translate, TranslateFile
from dragoman_protocols.chat import Chat
from dragoman_protocols.detection import detect
from dragoman_protocols.endpoints import Kind
from dragoman_protocols.errors import CapacityError
from dragoman_protocols.files import MAX_FILE_BYTES
from dragoman_protocols.languages import Pair
from dragoman_protocols.messages import Answer, Request
from dragoman_protocols.multipart import read_form
from dragoman_protocols.routes import PATHS, TEMPLATES, Path, unknown_path
from dragoman_protocols.site import Site, Usage
from dragoman_protocols.translation import TranslationRequest, TranslationResult
from dragoman_service.core.concurrency import together
from dragoman_service.core.costs import Cost, cost_of, demands_of
from dragoman_service.core.translator import Translator
from dragoman_service.engine.protocol import Phase
from dragoman_service.files.kinds import is_read_apart
from dragoman_service.http.answering import Answering, Stream, Work, in_thread_if_long
from dragoman_service.http.chat import ChatWork
from dragoman_service.http.documents import (
    MAX_CONCURRENT,
    BackgroundDocuments,
    DocumentStore,
    FileWork,
    new_document,
)
from dragoman_service.http.files import ReadFile, read_file
from dragoman_service.http.glossaries import GlossaryTerms
from dragoman_service.http.routes import Defect, PodRoute

MAX_CONCURRENT_REQUESTS = 8
"""Of one call: each may have many texts in the engine at once."""

ROUTER = ROUTER_HEADER.lower().encode()

MAX_APART = 2
"""Files that are read in processes of their own at once: each may take half a gigabyte."""


@dataclass
class TranslationWork(Work):
    """The usual work: translations.

    Args:
        requests: One, or one for each target language, done concurrently.
        call: The call that they were read from.
    """

    requests: tuple[TranslationRequest, ...]
    call: Translate

    def __post_init__(self) -> None:
        self.characters = self.call.characters
        self.text_count = sum(len(request.texts) for request in self.requests)

    @property
    def cost(self) -> Cost:
        """Of all requests together."""
        return cost_of(demand for request in self.requests for demand in demands_of(request))

    def check(self, translator: Translator) -> Pair | None:
        """The last request's pair, once all were checked."""
        pairs = [translator.check(request) for request in self.requests]
        return pairs[-1] if pairs else None

    async def answer(self, translator: Translator) -> Answer:
        """All requests concurrently; the first failure ends the others."""
        results: Results
        if len(self.requests) == 1:
            results = [await translator.translate(self.requests[0])]
        else:
            slots = asyncio.Semaphore(MAX_CONCURRENT_REQUESTS)

            async def in_slot(request: TranslationRequest) -> list[TranslationResult]:
                async with slots:
                    return await translator.translate(request)

            results = await together([in_slot(request) for request in self.requests])
        chars = sum(len(result.text) for each in results for result in each)
        return await in_thread_if_long(chars, lambda: self.call.render(results))

    def stream(self, translator: Translator) -> Stream | None:
        """The first request's translations as the API's events."""
        events = self.call.events
        return None if events is None else Stream(self._events(translator, events), events.failed)

    async def _events(self, translator: Translator, events: Events) -> AsyncGenerator[bytes]:
        async with aclosing(translator.stream(self.requests[0])) as deltas:
            async for delta in deltas:
                yield events.delta(delta)
        yield events.end()


class Endpoints:
    """Answers the requests for the endpoints of all APIs, and those for unknown paths.

    It also records by which router each came.

    Args:
        answering: Answers those that need the engine.
    """

    def __init__(self, answering: Answering, site: Site, glossaries: GlossaryTerms) -> None:
        self._answering, self._site = answering, site
        self._glossaries = glossaries
        self._lifecycle = answering.lifecycle
        self._max_file_bytes = max(answering.max_body_bytes, MAX_FILE_BYTES)
        self._for_files = replace(answering, max_body_bytes=self._max_file_bytes)
        self._documents = DocumentStore(self._lifecycle.unfetched)
        self._background = BackgroundDocuments(answering, self._documents)
        self._uploads = asyncio.Semaphore(MAX_CONCURRENT)
        self._apart = ThreadPoolExecutor(MAX_APART, thread_name_prefix="file")

    def routes(self, defect: Defect) -> list[BaseRoute]:
        """The routes of all paths: those that translate first, templates last, longest first."""
        exact = [path for path in PATHS if path.exact is not None]
        exact.sort(key=lambda path: all(each.kind is not Kind.TRANSLATE for each in path.candidates))
        return [PodRoute(path, partial(self._answer, path), defect) for path in (*exact, *TEMPLATES)]

    async def unknown(self, exchange: Exchange) -> Answer:
        """Refuse a request for a path that no route has.

        Raises:
            UnknownPathError: Always.
        """
        self._record_router(exchange.request)
        raise unknown_path(exchange.request.path)

    def _record_router(self, request: Request) -> None:
        router = request.header(ROUTER)
        if router:
            self._lifecycle.routers.record(router.decode("latin-1"))
        else:
            self._lifecycle.routers.record_direct()

    async def _answer(self, path: Path, exchange: Exchange) -> Answer | None:
        """The answer; None where it was sent, or the client disconnected."""
        request = exchange.request
        self._record_router(request)
        endpoint = path.endpoint(request)
        exchange.set_endpoint(endpoint)
        match endpoint.kind:
            case Kind.RESPOND | Kind.DETECT:
                request.body = await exchange.read_body(self._answering.max_body_bytes)
                # In a thread: detecting languages, and naming them, takes milliseconds.
                return await asyncio.to_thread(self._responded, exchange)
            case Kind.GLOSSARIES | Kind.DOCUMENT:
                assert endpoint.handle is not None
                handle = endpoint.handle
                request.body = await exchange.read_body(self._answering.max_body_bytes)
                answered = await in_thread_if_long(len(request.body), lambda: handle(request))
                if endpoint.kind is Kind.GLOSSARIES:
                    return await answered(self._glossaries.store)
                return await answered(self._documents)
            case Kind.FILE:
                return await self._upload(exchange)
            case Kind.TRANSLATE:
                return await self._answering.translate(exchange, self._read)

    def _responded(self, exchange: Exchange) -> Answer:
        endpoint, request = exchange.endpoint, exchange.request
        if endpoint.respond is not None:
            ready = self._lifecycle.phase is Phase.READY
            usage = Usage(self._answering.translated[endpoint.api.name])
            site = replace(self._site, ready=ready, usage=usage)
            return endpoint.respond(request, site)
        assert endpoint.detect is not None
        call = endpoint.detect(request, self._site)
        return call.render([detect(text, call.among) for text in call.texts])

    def _read(self, exchange: Exchange) -> Work | Awaitable[Work]:
        """The work of a request; raises `CallerError`."""
        assert exchange.endpoint.reading is not None
        call = exchange.endpoint.reading.read(exchange.request, self._site)
        if isinstance(call, Chat):
            return ChatWork(call)
        assert isinstance(call, Translate)
        return self._with_terms(call, exchange) if call.glossary_ids else TranslationWork(call.requests, call)

    async def _with_terms(self, call: Translate, exchange: Exchange) -> Work:
        header = exchange.request.text_header(GLOSSARIES_HEADER)
        added = [await self._glossaries.added(each, call.glossary_ids, header) for each in call.requests]
        return TranslationWork(tuple(added), call)

    async def _upload(self, exchange: Exchange) -> Answer | None:
        if self._uploads.locked() or self._background.full:
            raise CapacityError(f"{MAX_CONCURRENT} files are being translated")

        async def work() -> Work:
            call, file = await self._file(exchange)
            document = new_document(exchange.endpoint.api.name, call, exchange.request)
            return FileWork(call, file, document, self._documents)

        async with self._uploads:
            if not exchange.endpoint.in_background:
                return await self._for_files.translate(exchange, lambda _: work())
            request, api = exchange.request, exchange.endpoint.api.name
            request.body = await exchange.read_body(self._max_file_bytes)
            call, file = await self._file(exchange)
            document = new_document(api, call, request)
            return call.render(await self._background.start(document, file, request))

    async def _file(self, exchange: Exchange) -> tuple[TranslateFile, ReadFile]:
        """The call, and the file with the terms of its glossaries; raises `CallerError`."""
        request, endpoint = exchange.request, exchange.endpoint

        def read() -> TranslateFile:
            if request.is_multipart:
                request.upload = read_form(request.header(b"content-type"), request.body, keep_file=True)
                request.body = b""
            assert endpoint.reading is not None
            call = endpoint.reading.read(request, self._site)
            assert isinstance(call, TranslateFile)
            return call

        call = await asyncio.to_thread(read)
        # The thread of all other work does not wait for a process.
        executor = self._apart if is_read_apart(call.name) else None
        file = await asyncio.get_running_loop().run_in_executor(executor, read_file, call, self._site.offer)
        if file.request is None or not call.glossary_ids:
            return call, file
        header = request.text_header(GLOSSARIES_HEADER)
        terms = await self._glossaries.added(file.request, call.glossary_ids, header)
        return call, replace(file, request=terms)
