"""What routers say to a pod beside their callers' requests: what is in glossaries, and that nothing more will come."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Request, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman_contract.glossaries import MOST_PACKED_BYTES
from dragoman_contract.routing import DRAINED_PATH, HELD_GLOSSARIES_PATH, ROUTER_HEADER
from dragoman_service.errors import BodyTooLargeError
from dragoman_service.exchange import ClientGoneError, read_body
from dragoman_service.glossaries.held import HeldGlossaries
from dragoman_service.lifecycle import Lifecycle

_ROUTER = ROUTER_HEADER.lower().encode()


class RouterWatch:
    """Tells the lifecycle which router each request came by.

    Args:
        app: What answers.
        lifecycle: Whose routers they are.
    """

    def __init__(self, app: ASGIApp, lifecycle: Lifecycle) -> None:
        self._app = app
        self._lifecycle = lifecycle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Note the router, and have the request answered."""
        if scope["type"] == "http" and scope["path"] != DRAINED_PATH:
            for name, value in scope["headers"]:
                if name == _ROUTER and value:
                    self._lifecycle.routers.heard(value.decode("latin-1"))
        await self._app(scope, receive, send)


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
