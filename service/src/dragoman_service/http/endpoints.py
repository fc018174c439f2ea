"""Serves the endpoints of `dragoman_protocols`: what a request asks for becomes work for the core."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
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
from dragoman_service.engine.protocol import Phase
from dragoman_service.http import work
from dragoman_service.http.answering import Answering
from dragoman_service.http.chat import ChatWork
from dragoman_service.http.files import Files, FileWork, file_work
from dragoman_service.http.work import response_of

MAX_CONCURRENT_FILES = 8
"""Bounds the memory that files take while they are read and written."""


class Endpoints:
    """ASGI middleware that answers requests for the endpoints of all APIs.

    Args:
        app: Answers all other requests.
        answering: What all endpoints share.
        site: What the pod has to offer.
    """

    def __init__(self, app: ASGIApp, answering: Answering, site: Site) -> None:
        self._app, self._answering, self._site = app, answering, site
        self._files = Files(answering.lifecycle.unfetched)
        self._uploads = asyncio.Semaphore(MAX_CONCURRENT_FILES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope["method"], scope["path"], scope["query_string"], scope["headers"])
        try:
            endpoint = recognise(request)
        except MethodNotAllowedError as error:
            api = api_of(request)
            assert api is not None
            await response_of(api.error(error, request))(scope, receive, send)
            return
        if endpoint is None:
            await self._app(scope, receive, send)
            return
        response = await self._answer(Received(scope, receive), request, endpoint)
        await response(scope, receive, send)

    async def _answer(self, received: Received, request: Request, endpoint: Endpoint) -> Response:
        match endpoint.kind:
            case Kind.RESPOND | Kind.DETECT:
                informing = _Served(endpoint, request, self._site)

                async def reply(body: bytes) -> Response:
                    request.body = body
                    # In a thread: detecting languages, and naming them, takes milliseconds.
                    return await asyncio.to_thread(self._informed, informing)

                return await self._answering.inform(received, informing, reply)
            case Kind.TRANSLATE:

                def choose(_: Received, body: bytes) -> _Served:
                    request.body = body
                    return _Served(with_body(endpoint, request), request, self._site)

                return await self._answering.translate(received, choose, endpoint.max_body_bytes)
            case Kind.FILE:
                uploaded = _Uploaded(endpoint, request, self._site, self._files)
                if self._uploads.locked():
                    return uploaded.refuse(
                        CapacityError(f"{MAX_CONCURRENT_FILES} files are being translated")
                    )
                most_bytes = max(self._answering.max_body_bytes, MOST_FILE_BYTES)
                async with self._uploads:
                    return await self._answering.answer(received, uploaded, most_bytes)
            case Kind.DOCUMENT:
                fetching = _Served(endpoint, request, self._site)
                assert endpoint.handle is not None
                handle = endpoint.handle

                async def fetch(body: bytes) -> Response:
                    request.body = body
                    return response_of(await handle(request)(self._files))

                return await self._answering.inform(received, fetching, fetch)
            case kind:
                raise NotImplementedError(kind)

    def _informed(self, served: _Served) -> Response:
        endpoint, request = served.endpoint, served.request
        if endpoint.respond is not None:
            ready = self._answering.lifecycle.phase is Phase.READY
            return response_of(endpoint.respond(request, replace(self._site, ready=ready)))
        call = served.call()
        assert isinstance(call, Detect)
        return response_of(call.render([detect(text, call.among) for text in call.texts]))


class _Served:
    """One request at one endpoint, as `Answering` takes it."""

    def __init__(self, endpoint: Endpoint, request: Request, site: Site) -> None:
        self.endpoint, self.request, self._site = endpoint, request, site

    @property
    def name(self) -> str:
        """Of the API."""
        return self.endpoint.api.name

    def call(self) -> Call:
        """What the request asks for; raises `CallerError`."""
        assert self.endpoint.read is not None
        return self.endpoint.read(self.request, self._site)

    def read(self, _: Received, __: bytes) -> work.Work | Awaitable[work.Work]:
        """What the core has to do; raises `CallerError`."""
        call = self.call()
        if isinstance(call, Chat):
            return ChatWork(call)
        assert isinstance(call, Translate)

        def render(results: Results) -> Response:
            return response_of(call.render(results))

        return work.Call(call.requests, render, call.events, call.characters)

    def refuse(self, error: RequestError) -> Response:
        """An error in the API's shape."""
        return response_of(self.endpoint.api.error(error, self.request))


class _Uploaded(_Served):
    """A form with a file."""

    def __init__(self, endpoint: Endpoint, request: Request, site: Site, files: Files) -> None:
        super().__init__(endpoint, request, site)
        self._files = files

    async def read(self, received: Received, body: bytes) -> work.Work:
        """The file is read in a thread; raises `CallerError`."""
        return await asyncio.to_thread(self._work, received, body)

    def _work(self, received: Received, body: bytes) -> FileWork:
        request = self.request
        if request.is_multipart:
            request.upload = read_form(request.header(b"content-type"), body, keep_file=True)
        else:
            request.body = body
        call = self.call()
        assert isinstance(call, TranslateFile)
        return file_work(call, received, self._site.offer, self._files)
