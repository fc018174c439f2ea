"""Routes of the pod's application: one class for all paths."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from dragoman_http.bodies import ClientGoneError
from dragoman_http.exchange import Exchange
from dragoman_protocols.errors import MethodNotAllowedError, RequestError
from dragoman_protocols.messages import Answer, Request
from dragoman_protocols.routes import Path

Handler = Callable[[Exchange], Awaitable[Answer | None]]
"""Answers a request; None where it sent the answer itself, or the client disconnected."""
Defect = Callable[[], RequestError]
"""Logs and counts the exception that is being handled; the error that a client gets."""


class PodRoute(BaseRoute):
    """One path, in all methods: an ASGI endpoint that answers its errors in the format of the nearest API.

    Args:
        path: A slash at the end of a request's path does not matter.
    """

    def __init__(self, path: Path, handler: Handler, defect: Defect) -> None:
        self.path, self._handler, self._defect = path, handler, defect

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether a request has the path; its method is the handler's matter."""
        variables = self.path.variables(scope["path"].rstrip("/")) if scope["type"] == "http" else None
        return (Match.NONE, {}) if variables is None else (Match.FULL, {"path_params": variables})

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await serve(self._handler, self._defect, scope, receive, send)


async def serve(handler: Handler, defect: Defect, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one request; its errors are in the format of its API, or of the nearest one."""
    request = Request(scope["method"], scope["path"], scope["query_string"], scope["headers"])
    request.scheme, request.variables = scope.get("scheme", "http"), scope.get("path_params", {})
    exchange = Exchange(request, scope, receive, send)
    try:
        answer = await handler(exchange)
    except RequestError as error:
        answer = exchange.refused(error)
    except ClientGoneError:
        return
    except Exception:
        refusal = defect()
        if exchange.started:
            raise
        answer = exchange.refused(refusal)
    if answer is not None:
        await exchange.answer(answer)


def only_with(method: str, handler: Handler) -> Handler:
    """A handler for one method; with GET there is HEAD."""

    async def answer(exchange: Exchange) -> Answer | None:
        given = exchange.request.method
        if given != method and (given, method) != ("HEAD", "GET"):
            path = exchange.request.path[:100]
            raise MethodNotAllowedError(f"nothing here at {path!r} with {given}: use {method}", [method])
        return await handler(exchange)

    return answer
