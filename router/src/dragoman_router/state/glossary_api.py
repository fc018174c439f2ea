"""DeepL's glossary API as the engine pods have it, over the router's store.

The pods' replies under Starlette's bare routing: FastAPI, which documents the pods' routes, would take 5 MB.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router

from dragoman_contract.languages import Languages
from dragoman_protocols.errors import RequestError
from dragoman_protocols.glossaries.store import GlossaryStore
from dragoman_service.dialects.deepl import codes, errors
from dragoman_service.dialects.deepl.fields import bound_query, fields_of
from dragoman_service.dialects.deepl.glossary_replies import GlossaryReplies, Reply

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]


def glossary_app(store: GlossaryStore, served: Callable[[], tuple[Languages, ...]]) -> Router:
    """An application for `/v2/glossaries`, `/v3/glossaries` and `/v2/glossary-language-pairs`.

    Args:
        store: Where glossaries are.
        served: The pairs of all deployments together; empty means every pair.
    """
    replies = GlossaryReplies(store)

    async def pairs(*_: object) -> Response:
        return JSONResponse({"supported_languages": codes.glossary_pairs(served())})

    async def unknown(request: Request, _: object) -> Response:
        raise errors.NotServedError(f"{request.method} {request.url.path} is not served here")

    return Router(
        [
            _route("GET", "/v2/glossary-language-pairs", pairs),
            _route("POST", "/v2/glossaries", replies.create_v2),
            _route("GET", "/v2/glossaries", replies.list_v2),
            _route("GET", "/v2/glossaries/{glossary_id}", replies.describe_v2),
            _route("GET", "/v2/glossaries/{glossary_id}/entries", replies.entries_v2),
            _route("DELETE", "/v2/glossaries/{glossary_id}", replies.delete),
            _route("POST", "/v3/glossaries", replies.create_v3),
            _route("GET", "/v3/glossaries", replies.list_v3),
            _route("GET", "/v3/glossaries/{glossary_id}", replies.describe_v3),
            _route("PATCH", "/v3/glossaries/{glossary_id}", replies.change_v3),
            _route("DELETE", "/v3/glossaries/{glossary_id}", replies.delete),
            _route("GET", "/v3/glossaries/{glossary_id}/entries", replies.entries_v3),
            _route("PUT", "/v3/glossaries/{glossary_id}/dictionaries", replies.replace_dictionary),
            _route("DELETE", "/v3/glossaries/{glossary_id}/dictionaries", replies.delete_dictionary),
            *(_route(method, "/{rest:path}", unknown) for method in METHODS),
        ]
    )


def _route(method: str, path: str, reply: Callable[..., Awaitable[Response]]) -> Route:
    """A route whose reply gets the glossary's id, where its path has one."""

    async def endpoint(request: Request) -> Response:
        glossary_id = request.path_params.get("glossary_id")
        bound: Reply = reply if glossary_id is None else partial(reply, glossary_id)
        try:
            bound_query(request)
            return await bound(request, fields_of(request, await request.body()))
        except RequestError as error:
            return errors.refuse(error)

    return Route(path, endpoint, methods=[method])
