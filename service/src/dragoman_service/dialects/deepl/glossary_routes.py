"""The routes of DeepL's glossaries, v2 and v3, as a pod serves and documents them."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter, Request, Response

from dragoman_protocols.glossaries.store import GlossaryStore
from dragoman_service.dialects.deepl import schemas
from dragoman_service.dialects.deepl.glossary_replies import GlossaryReplies, Inform


def glossary_routes(inform: Inform, store: GlossaryStore) -> APIRouter:
    """The routes of both versions.

    Args:
        inform: See `Inform`.
        store: Where glossaries are.
    """
    router = APIRouter()
    replies = GlossaryReplies(store)
    router.include_router(_v2(inform, replies))
    router.include_router(_v3(inform, replies))
    return router


def _v2(inform: Inform, replies: GlossaryReplies) -> APIRouter:
    router = APIRouter(prefix="/v2/glossaries")

    @router.post("", status_code=201, openapi_extra=schemas.GLOSSARY)
    async def create(request: Request) -> Response:
        """Make a glossary of one pair of languages."""
        return await inform(request, replies.create_v2)

    @router.get("")
    async def list_all(request: Request) -> Response:
        """List the glossaries of one pair of languages."""
        return await inform(request, replies.list_v2)

    @router.get("/{glossary_id}")
    async def describe(request: Request, glossary_id: str) -> Response:
        """Describe a glossary."""
        return await inform(request, partial(replies.describe_v2, glossary_id))

    @router.get("/{glossary_id}/entries", response_class=Response)
    async def entries(request: Request, glossary_id: str) -> Response:
        """Hand out a glossary's entries as tab-separated text."""
        return await inform(request, partial(replies.entries_v2, glossary_id))

    @router.delete("/{glossary_id}", status_code=204, response_class=Response)
    async def delete(request: Request, glossary_id: str) -> Response:
        """Forget a glossary."""
        return await inform(request, partial(replies.delete, glossary_id))

    return router


def _v3(inform: Inform, replies: GlossaryReplies) -> APIRouter:
    router = APIRouter(prefix="/v3/glossaries")

    @router.post("", status_code=201, openapi_extra=schemas.GLOSSARY_V3)
    async def create(request: Request) -> Response:
        """Make a glossary with dictionaries for several pairs of languages."""
        return await inform(request, replies.create_v3)

    @router.get("")
    async def list_all(request: Request) -> Response:
        """List all glossaries."""
        return await inform(request, replies.list_v3)

    @router.get("/{glossary_id}")
    async def describe(request: Request, glossary_id: str) -> Response:
        """Describe a glossary."""
        return await inform(request, partial(replies.describe_v3, glossary_id))

    @router.patch("/{glossary_id}", openapi_extra=schemas.GLOSSARY_CHANGE)
    async def change(request: Request, glossary_id: str) -> Response:
        """Rename a glossary, or add entries to one of its dictionaries."""
        return await inform(request, partial(replies.change_v3, glossary_id))

    @router.delete("/{glossary_id}", status_code=204, response_class=Response)
    async def delete(request: Request, glossary_id: str) -> Response:
        """Forget a glossary."""
        return await inform(request, partial(replies.delete, glossary_id))

    @router.get("/{glossary_id}/entries", openapi_extra=schemas.PAIR)
    async def entries(request: Request, glossary_id: str) -> Response:
        """Hand out the entries of a glossary's dictionary."""
        return await inform(request, partial(replies.entries_v3, glossary_id))

    @router.put("/{glossary_id}/dictionaries", openapi_extra=schemas.DICTIONARY)
    async def replace(request: Request, glossary_id: str) -> Response:
        """Put a dictionary in the place of that of its pair, or beside the others."""
        return await inform(request, partial(replies.replace_dictionary, glossary_id))

    @router.delete(
        "/{glossary_id}/dictionaries", status_code=204, response_class=Response, openapi_extra=schemas.PAIR
    )
    async def delete_dictionary(request: Request, glossary_id: str) -> Response:
        """Forget a glossary's dictionary."""
        return await inform(request, partial(replies.delete_dictionary, glossary_id))

    return router
