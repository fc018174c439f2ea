"""Serves the endpoints of `dragoman_protocols`: requests become work for the core."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from starlette.requests import Request as Received
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman_contract.files import MOST_FILE_BYTES
from dragoman_protocols.api import (
    Call,
    Detect,
    Endpoint,
    Kind,
    Request,
    Results,
    Site,
    Translate,
    TranslateFile,
)
from dragoman_protocols.chat import Chat
from dragoman_protocols.detection import detect
from dragoman_protocols.errors import CapacityError, MethodNotAllowedError, RequestError
from dragoman_protocols.multipart import read_form
from dragoman_protocols.routes import api_of, recognise, with_body
from dragoman_protocols.translation import TranslationRequest
from dragoman_service.engine.protocol import Phase
from dragoman_service.http import work
from dragoman_service.http.answering import Answering
from dragoman_service.http.chat import ChatWork
from dragoman_service.http.documents import MAX_CONCURRENT, Documents
from dragoman_service.http.files import Files, FileWork
from dragoman_service.http.glossary_terms import GlossaryTerms
from dragoman_service.http.quota import Quota
from dragoman_service.http.uploads import ReadFile, read_file
from dragoman_service.http.work import response_of


class Endpoints:
    """ASGI middleware that answers requests for the endpoints of all APIs.

    Args:
        app: Answers all other requests.
        answering: What all endpoints share.
        site: What the pod has to offer.
        glossaries: Callers' glossaries.
        quota: The pod's own.
    """

    def __init__(
        self, app: ASGIApp, answering: Answering, site: Site, glossaries: GlossaryTerms, quota: Quota
    ) -> None:
        self._app, self._answering, self._site = app, answering, site
        self._glossaries, self._quota = glossaries, quota
        self._for_files = replace(answering, max_body_bytes=max(answering.max_body_bytes, MOST_FILE_BYTES))
        self._files = Files(answering.lifecycle.unfetched)
        self._documents = Documents(answering, quota)
        self._uploads = asyncio.Semaphore(MAX_CONCURRENT)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope["method"], scope["path"], scope["query_string"], scope["headers"])
        try:
            endpoint = recognise(request)
        except MethodNotAllowedError as error:
            await response_of(api_of(request).error(error, request))(scope, receive, send)
            return
        if endpoint is None:
            await self._app(scope, receive, send)
            return
        response = await self._answer(Received(scope, receive), request, endpoint)
        await response(scope, receive, send)

    async def _answer(self, received: Received, request: Request, endpoint: Endpoint) -> Response:
        served = self._served(endpoint, request)
        match endpoint.kind:
            case Kind.RESPOND | Kind.DETECT:

                async def inform(body: bytes) -> Response:
                    request.body = body
                    # In a thread: detecting languages, and naming them, takes milliseconds.
                    return await asyncio.to_thread(self._informed, served)

                return await self._answering.inform(received, served, inform)
            case Kind.GLOSSARIES | Kind.DOCUMENT:
                assert endpoint.handle is not None
                handle, store = endpoint.handle, self._store(endpoint)

                async def act(body: bytes) -> Response:
                    request.body = body
                    answered = await work.in_thread_if_long(len(body), lambda: handle(request))
                    return response_of(await answered(store))

                return await self._answering.inform(received, served, act)
            case Kind.FILE:
                return await self._upload(received, served)
            case Kind.TRANSLATE:

                def choose(_: Received, body: bytes) -> _Served:
                    request.body = body
                    return self._served(with_body(endpoint, request), request)

                limit = endpoint.body_limit(self._answering.max_body_bytes)
                return await self._answering.translate(received, choose, limit)

    def _served(self, endpoint: Endpoint, request: Request) -> _Served:
        return _Served(endpoint, request, self._site, self._glossaries, self._quota)

    def _store(self, endpoint: Endpoint) -> object:
        if endpoint.kind is Kind.GLOSSARIES:
            return self._glossaries.store
        return self._documents if endpoint.in_background else self._files

    def _informed(self, served: _Served) -> Response:
        endpoint, request = served.endpoint, served.request
        if endpoint.respond is not None:
            ready = self._answering.lifecycle.phase is Phase.READY
            site = replace(self._site, ready=ready, usage=self._quota.usage)
            return response_of(endpoint.respond(request, site))
        call = served.call()
        assert isinstance(call, Detect)
        return response_of(call.render([detect(text, call.among) for text in call.texts]))

    async def _upload(self, received: Received, served: _Served) -> Response:
        if self._uploads.locked() or self._documents.full:
            return served.refuse(CapacityError(f"{MAX_CONCURRENT} files are being translated"))
        uploaded = _Uploaded(served, received, self._files)

        async def begin(body: bytes) -> Response:
            call, file = await uploaded.file(body)
            document = await self._documents.begin(served.name, call.name, file, received.headers)
            return response_of(call.render(document))

        async with self._uploads:
            if served.endpoint.in_background:
                return await self._for_files.inform(received, served, begin)
            return await self._for_files.answer(received, uploaded)


class _Served:
    """One request at one endpoint, as `Answering` takes it."""

    def __init__(
        self, endpoint: Endpoint, request: Request, site: Site, glossaries: GlossaryTerms, quota: Quota
    ) -> None:
        self.endpoint, self.request, self.site = endpoint, request, site
        self.glossaries, self._quota = glossaries, quota

    @property
    def name(self) -> str:
        """Of the API."""
        return self.endpoint.api.name

    def call(self) -> Call:
        """The call that the request is read into; raises `CallerError`."""
        assert self.endpoint.read is not None
        return self.endpoint.read(self.request, self.site)

    def read(self, received: Received, _: bytes) -> work.Work | Awaitable[work.Work]:
        """What the core has to do; awaited where it needs glossaries. Raises `CallerError`."""
        call = self.call()
        if isinstance(call, Chat):
            return ChatWork(call)
        assert isinstance(call, Translate)
        return self._with_terms(call, received) if call.glossary_ids else self._work(call, call.requests)

    async def _with_terms(self, call: Translate, received: Received) -> work.Work:
        added = [
            await self.glossaries.added(each, call.glossary_ids, received.headers) for each in call.requests
        ]
        return self._work(call, tuple(added))

    def _work(self, call: Translate, requests: tuple[TranslationRequest, ...]) -> work.Work:
        def render(results: Results) -> Response:
            if call.uses_quota:
                self._quota.add(call.characters)
            return response_of(call.render(results))

        def reserve() -> AbstractContextManager[None]:
            return self._quota.reserve(call.characters) if call.uses_quota else nullcontext()

        return work.Call(requests, render, call.events, call.characters, reserve)

    def refuse(self, error: RequestError) -> Response:
        """An error in the API's shape."""
        return response_of(self.endpoint.api.error(error, self.request))


class _Uploaded:
    """A form with a file, as `Answering` takes it."""

    def __init__(self, served: _Served, received: Received, files: Files) -> None:
        self._served, self._received, self._files = served, received, files
        self.name, self.refuse = served.name, served.refuse

    async def read(self, received: Received, body: bytes) -> work.Work:
        """The file is read in a thread; raises `CallerError`."""
        call, file = await self.file(body)
        return FileWork(call, file, received, self._files)

    async def file(self, body: bytes) -> tuple[TranslateFile, ReadFile]:
        """The call, and the file with the terms of its glossaries; raises `CallerError`."""
        served = self._served

        def read() -> tuple[TranslateFile, ReadFile]:
            request = served.request
            if request.is_multipart:
                request.upload = read_form(request.header(b"content-type"), body, keep_file=True)
            else:
                request.body = body
            call = served.call()
            assert isinstance(call, TranslateFile)
            return call, read_file(call, served.site.offer)

        call, file = await asyncio.to_thread(read)
        if file.request is None or not call.glossary_ids:
            return call, file
        terms = await served.glossaries.added(file.request, call.glossary_ids, self._received.headers)
        return call, replace(file, request=terms)
