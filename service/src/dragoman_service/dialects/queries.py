"""How many fields an address may have: the framework reads them all, and takes microseconds for each."""

from __future__ import annotations

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman_protocols.errors import InvalidFieldError

MOST_QUERY_FIELDS = 1000
"""Azure's clients name each of their target languages in one."""

_SENT = "dragoman.query_fields"


class BoundedQuery:
    """Cuts addresses off behind so many fields; `bound_fields` refuses them then, in the error format of the API.

    Args:
        app: What answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Bound the query, and have the request answered."""
        query: bytes = scope.get("query_string", b"")
        sent = query.count(b"&")
        if sent >= MOST_QUERY_FIELDS:
            kept = b"&".join(query.split(b"&", MOST_QUERY_FIELDS)[:MOST_QUERY_FIELDS])
            scope = {**scope, "query_string": kept, _SENT: sent + 1}
        await self._app(scope, receive, send)


def too_many_fields(request: Request) -> bool:
    """Whether its address had more than that."""
    return _SENT in request.scope


def bound_fields(request: Request) -> None:
    """Refuse an address that had more.

    Raises:
        InvalidFieldError: It had.
    """
    if too_many_fields(request):
        sent = request.scope[_SENT]
        raise InvalidFieldError(f"the address has {sent} parameters; send at most {MOST_QUERY_FIELDS}")
