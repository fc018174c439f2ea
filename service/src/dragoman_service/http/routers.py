"""What routers say to a pod beside their callers' requests: what is in glossaries, and that nothing more will come."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Request, Response
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman_contract.glossaries import MOST_PACKED_BYTES
from dragoman_contract.http import LIVE_PATH, METRICS_PATH, READY_PATH, STARTUP_PATH
from dragoman_contract.routing import DRAINED_PATH, HELD_GLOSSARIES_PATH, ROUTER_HEADER
from dragoman_protocols.errors import BodyTooLargeError
from dragoman_service.http.exchange import ClientGoneError, read_body
from dragoman_service.http.held_glossaries import HeldGlossaries
from dragoman_service.http.lifecycle import Lifecycle

_ROUTER = ROUTER_HEADER.lower().encode()


NOT_CLIENTS = frozenset({LIVE_PATH, READY_PATH, STARTUP_PATH, METRICS_PATH, DRAINED_PATH})
"""Asked by kubelets, monitoring and routers themselves."""


class RouterWatch:
    """Tells the lifecycle which router each request came by, or that it came by none.

    While the pod is about to leave, every answer closes its connection: through a Service alone a kept one would lead
    its client back here, to a refusal, for as long as it is used; its next one leads to another pod.

    Args:
        app: What answers.
        lifecycle: Whose routers they are.
    """

    def __init__(self, app: ASGIApp, lifecycle: Lifecycle) -> None:
        self._app = app
        self._lifecycle = lifecycle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Note the router, and have the request answered."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"] not in NOT_CLIENTS and not scope["path"].startswith(HELD_GLOSSARIES_PATH):
            router = next((value for name, value in scope["headers"] if name == _ROUTER and value), None)
            if router is None:
                self._lifecycle.routers.asked_directly()
            else:
                self._lifecycle.routers.heard(router.decode("latin-1"))

        async def parting(message: Message) -> None:
            if message["type"] == "http.response.start" and self._lifecycle.parting_headers:
                MutableHeaders(scope=message).update(self._lifecycle.parting_headers)
            await send(message)

        await self._app(scope, receive, parting)


def router_routes(lifecycle: Lifecycle, held: HeldGlossaries) -> APIRouter:
    """`/drained` and `/held-glossaries`, in any phase; in no OpenAPI document, for they are not for callers.

    Args:
        lifecycle: Told who confirmed.
        held: Told the glossaries.
    """
    routes = APIRouter(include_in_schema=False)

    @routes.post(DRAINED_PATH, status_code=204)
    async def drained(request: Request) -> Response:
        """A router confirms that nothing new will come from it."""
        name = request.headers.get(ROUTER_HEADER)
        if not name:
            raise HTTPException(400, f"send {ROUTER_HEADER}: it names the router that confirms")
        lifecycle.drained(name)
        return Response(status_code=204)

    @routes.put(HELD_GLOSSARIES_PATH + "{revision}", status_code=204)
    async def hold(request: Request, revision: str) -> Response:
        """A router brings a glossary. Whoever else does can do no harm: what it says is checked against its name."""
        try:
            await held.put(revision, await read_body(request, MOST_PACKED_BYTES))
        except BodyTooLargeError as error:
            raise HTTPException(413, str(error)) from None
        except ValueError as error:
            raise HTTPException(400, f"no glossary of this revision: {error}") from None
        except ClientGoneError:
            pass  # Nobody is left to answer.
        return Response(status_code=204)

    return routes
