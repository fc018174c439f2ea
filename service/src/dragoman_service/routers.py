"""What routers say to a pod beside their callers' requests: who they are, and that nothing more will come."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Request, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman_contract.routing import DRAINED_PATH, ROUTER_HEADER
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


def router_routes(lifecycle: Lifecycle) -> APIRouter:
    """`/drained`, in any phase; in no OpenAPI document, for it is not for callers.

    Args:
        lifecycle: Told who confirmed.
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

    return routes
