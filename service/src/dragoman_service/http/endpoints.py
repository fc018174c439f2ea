"""Serves the endpoints of `dragoman_protocols`: what a request asks for becomes work for the core."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from starlette.requests import Request as Received
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman_protocols.api import JSON_TYPE, Answer, Call, Detect, Endpoint, Kind, Request, Results, Site
from dragoman_protocols.detection import detect
from dragoman_protocols.errors import MethodNotAllowedError, RequestError
from dragoman_protocols.routes import api_of, recognise, with_body
from dragoman_service.engine.protocol import Phase
from dragoman_service.http import work
from dragoman_service.http.answering import Answering


class Endpoints:
    """ASGI middleware that answers requests for the endpoints of all APIs.

    Args:
        app: Answers all other requests.
        answering: What all endpoints share.
        site: What the pod has to offer.
    """

    def __init__(self, app: ASGIApp, answering: Answering, site: Site) -> None:
        self._app, self._answering, self._site = app, answering, site

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

    def read(self, _: Received, __: bytes) -> work.Call:
        """What the core has to do; raises `CallerError`."""
        call = self.call()
        assert not isinstance(call, Detect)

        def render(results: Results) -> Response:
            return response_of(call.render(results))

        return work.Call(call.requests, render, call.events, call.characters)

    def refuse(self, error: RequestError) -> Response:
        """An error in the API's shape."""
        return response_of(self.endpoint.api.error(error, self.request))


def response_of(answer: Answer) -> Response:
    """An answer as Starlette sends it."""
    headers = {"Content-Type": JSON_TYPE, **dict(answer.headers)}
    if answer.close:
        headers["Connection"] = "close"
    return Response(answer.body, answer.status, headers)
