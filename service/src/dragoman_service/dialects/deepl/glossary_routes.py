"""The routes of DeepL's glossaries, v2 and v3, over any store. Entries are read in threads: they may be many."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Awaitable, Callable

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from dragoman_service.dialects.deepl import glossaries, schemas
from dragoman_service.dialects.deepl.errors import MediaTypeError
from dragoman_service.dialects.deepl.fields import Fields
from dragoman_service.glossaries.entries import to_tsv
from dragoman_service.glossaries.store import GlossaryStore

Reply = Callable[[Request, Fields], Awaitable[Response]]
Inform = Callable[[Request, Reply], Awaitable[Response]]
"""Reads a request's fields, has the reply made, and words what it raises."""


def glossary_routes(inform: Inform, store: GlossaryStore) -> APIRouter:
    """The routes of both versions.

    Args:
        inform: See `Inform`.
        store: Where glossaries are.
    """
    router = APIRouter()
    router.include_router(_v2(inform, store))
    router.include_router(_v3(inform, store))
    return router


def _v2(inform: Inform, store: GlossaryStore) -> APIRouter:
    router = APIRouter(prefix="/v2/glossaries")

    @router.post("", status_code=201, openapi_extra=schemas.GLOSSARY)
    async def create(request: Request) -> Response:
        """Make a glossary of one pair of languages."""

        async def reply(_: Request, fields: Fields) -> Response:
            made = await to_thread(glossaries.read_monolingual, fields)
            await store.add(made)
            return JSONResponse(glossaries.monolingual_json(made), 201)

        return await inform(request, reply)

    @router.get("")
    async def list_all(request: Request) -> Response:
        """List the glossaries of one pair of languages."""

        async def reply(*_: object) -> Response:
            found = glossaries.monolingual(await store.all())
            return JSONResponse({"glossaries": [glossaries.monolingual_json(each) for each in found]})

        return await inform(request, reply)

    @router.get("/{glossary_id}")
    async def describe(request: Request, glossary_id: str) -> Response:
        """Describe a glossary."""

        async def reply(*_: object) -> Response:
            return JSONResponse(glossaries.monolingual_json(await store.get(glossary_id)))

        return await inform(request, reply)

    @router.get("/{glossary_id}/entries", response_class=Response)
    async def entries(request: Request, glossary_id: str) -> Response:
        """Hand out a glossary's entries as tab-separated text."""

        async def reply(request: Request, _: Fields) -> Response:
            accepted = request.headers.get("accept", "*/*")
            if not any(kind in accepted for kind in (glossaries.TSV, "text/*", "*/*")):
                raise MediaTypeError("No supported media type specified in Accept header")
            dictionary = glossaries.only_dictionary(await store.get(glossary_id))
            return Response(to_tsv(dictionary.entries), media_type=glossaries.TSV)

        return await inform(request, reply)

    @router.delete("/{glossary_id}", status_code=204, response_class=Response)
    async def delete(request: Request, glossary_id: str) -> Response:
        """Forget a glossary."""
        return await inform(request, _removal(store, glossary_id))

    return router


def _v3(inform: Inform, store: GlossaryStore) -> APIRouter:
    router = APIRouter(prefix="/v3/glossaries")

    @router.post("", status_code=201, openapi_extra=schemas.GLOSSARY_V3)
    async def create(request: Request) -> Response:
        """Make a glossary with dictionaries for several pairs of languages."""

        async def reply(_: Request, fields: Fields) -> Response:
            made = await to_thread(glossaries.read_multilingual, fields)
            await store.add(made)
            return JSONResponse(glossaries.multilingual_json(made), 201)

        return await inform(request, reply)

    @router.get("")
    async def list_all(request: Request) -> Response:
        """List all glossaries."""

        async def reply(*_: object) -> Response:
            found = await store.all()
            return JSONResponse({"glossaries": [glossaries.multilingual_json(each) for each in found]})

        return await inform(request, reply)

    @router.get("/{glossary_id}")
    async def describe(request: Request, glossary_id: str) -> Response:
        """Describe a glossary."""

        async def reply(*_: object) -> Response:
            return JSONResponse(glossaries.multilingual_json(await store.get(glossary_id)))

        return await inform(request, reply)

    @router.patch("/{glossary_id}", openapi_extra=schemas.GLOSSARY_CHANGE)
    async def change(request: Request, glossary_id: str) -> Response:
        """Rename a glossary, or add entries to one of its dictionaries."""

        async def reply(_: Request, fields: Fields) -> Response:
            changed = await store.change(glossary_id, await to_thread(glossaries.read_change, fields))
            return JSONResponse(glossaries.multilingual_json(changed))

        return await inform(request, reply)

    @router.delete("/{glossary_id}", status_code=204, response_class=Response)
    async def delete(request: Request, glossary_id: str) -> Response:
        """Forget a glossary."""
        return await inform(request, _removal(store, glossary_id))

    @router.get("/{glossary_id}/entries", openapi_extra=schemas.PAIR)
    async def entries(request: Request, glossary_id: str) -> Response:
        """Hand out the entries of a glossary's dictionary."""

        async def reply(_: Request, fields: Fields) -> Response:
            pair = glossaries.read_pair(fields)
            found = (await store.get(glossary_id)).dictionary(*pair)
            return JSONResponse(glossaries.entries_json(found))

        return await inform(request, reply)

    @router.put("/{glossary_id}/dictionaries", openapi_extra=schemas.DICTIONARY)
    async def replace(request: Request, glossary_id: str) -> Response:
        """Put a dictionary in the place of that of its pair, or beside the others."""

        async def reply(_: Request, fields: Fields) -> Response:
            new = await to_thread(glossaries.read_dictionary, fields)
            await store.change(glossary_id, lambda glossary: glossary.with_dictionary(new))
            return JSONResponse(glossaries.dictionary_json(new))

        return await inform(request, reply)

    @router.delete(
        "/{glossary_id}/dictionaries", status_code=204, response_class=Response, openapi_extra=schemas.PAIR
    )
    async def delete_dictionary(request: Request, glossary_id: str) -> Response:
        """Forget a glossary's dictionary."""

        async def reply(_: Request, fields: Fields) -> Response:
            pair = glossaries.read_pair(fields)
            await store.change(glossary_id, lambda glossary: glossary.without_dictionary(*pair))
            return Response(status_code=204)

        return await inform(request, reply)

    return router


def _removal(store: GlossaryStore, glossary_id: str) -> Reply:
    async def reply(*_: object) -> Response:
        await store.remove(glossary_id)
        return Response(status_code=204)

    return reply
