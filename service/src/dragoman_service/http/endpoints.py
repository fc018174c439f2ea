"""Serves the endpoints of `dragoman_protocols`: requests become work for the core."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial

from starlette.routing import BaseRoute

from dragoman_contract.routing import GLOSSARIES_HEADER, REPLICA_HEADER, ROUTER_HEADER
from dragoman_http.exchange import Exchange
from dragoman_protocols.calls import Events, Results, Translate, TranslateFile
from dragoman_protocols.chat import Chat
from dragoman_protocols.detection import detect
from dragoman_protocols.endpoints import EndpointKind
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
from dragoman_service.files.parsing import FileParser
from dragoman_service.http.chat import ChatWork
from dragoman_service.http.documents import new_document
from dragoman_service.http.files import FileWork, request_for
from dragoman_service.http.glossaries import GlossaryTerms
from dragoman_service.http.pipeline import Created, Pipeline, in_thread_if_long
from dragoman_service.http.routes import Defect, PodRoute
from dragoman_service.http.work import Stream, Work

ROUTER = ROUTER_HEADER.lower().encode()

MAX_CONCURRENT_REQUESTS = 8
"""Of one call: each may have many texts in the engine at once."""


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
        pipeline: Does what needs the engine.
    """

    def __init__(self, pipeline: Pipeline, site: Site, glossaries: GlossaryTerms) -> None:
        self._pipeline, self._site = pipeline, site
        self._glossaries = glossaries
        self._lifecycle = pipeline.lifecycle
        self._parser = FileParser()

    def routes(self, defect: Defect) -> list[BaseRoute]:
        """The routes of all paths: those that translate first, templates last, longest first."""
        exact = [path for path in PATHS if path.exact is not None]
        exact.sort(key=lambda path: all(each.kind is not EndpointKind.TRANSLATE for each in path.candidates))
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
            case EndpointKind.RESPOND | EndpointKind.DETECT:
                request.body = await exchange.read_body(self._pipeline.max_body_bytes)
                # In a thread: detecting languages, and naming them, takes milliseconds.
                return await asyncio.to_thread(self._responded, exchange)
            case EndpointKind.GLOSSARIES | EndpointKind.DOCUMENT:
                assert endpoint.handle is not None
                handle = endpoint.handle
                request.body = await exchange.read_body(self._pipeline.max_body_bytes)
                answered = await in_thread_if_long(len(request.body), lambda: handle(request))
                if endpoint.kind is EndpointKind.GLOSSARIES:
                    return await answered(self._glossaries.store)
                return await answered(self._pipeline.documents)
            case EndpointKind.FILE:
                return await self._pipeline.upload(exchange, partial(self._read_file, exchange))
            case EndpointKind.TRANSLATE:
                return await self._pipeline.answer(exchange, partial(self._read, exchange))

    def _responded(self, exchange: Exchange) -> Answer:
        endpoint, request = exchange.endpoint, exchange.request
        if endpoint.respond is not None:
            ready = self._lifecycle.phase is Phase.READY
            usage = Usage(self._pipeline.translated[endpoint.api.name])
            site = replace(self._site, ready=ready, usage=usage)
            return endpoint.respond(request, site)
        assert endpoint.detect is not None
        call = endpoint.detect(request, self._site)
        return call.render([detect(text) for text in call.texts])

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

    async def _read_file(self, exchange: Exchange, created: Created) -> FileWork:
        """The work of a form with a file; raises `CallerError`."""
        request, endpoint = exchange.request, exchange.endpoint

        def read_call() -> TranslateFile:
            if request.is_multipart:
                request.upload = read_form(request.header(b"content-type"), request.body, keep_file=True)
                request.body = b""
            assert endpoint.reading is not None
            call = endpoint.reading.read(request, self._site)
            assert isinstance(call, TranslateFile)
            return call

        call = await asyncio.to_thread(read_call)
        document = new_document(endpoint.api.name, call, request.text_header(REPLICA_HEADER))
        created((call, document))
        parsed = await self._parser.parse(call.name, call.content, call.request.target_lang)
        wanted = await asyncio.to_thread(request_for, call, parsed, self._site.offer.entries)
        if wanted is not None:
            header = request.text_header(GLOSSARIES_HEADER)
            wanted = await self._glossaries.added(wanted, call.glossary_ids, header)
        return FileWork(call, document, parsed, wanted, self._parser, self._pipeline.documents)
