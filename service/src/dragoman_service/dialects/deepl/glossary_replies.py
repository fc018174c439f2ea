"""What is answered at the paths of DeepL's glossaries, v2 and v3, over any store.

Apart from the routes, for routers answer the same without a web framework. Entries are read in threads: they may be
many.
"""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from dragoman_protocols.glossaries.entries import to_tsv
from dragoman_protocols.glossaries.store import GlossaryStore
from dragoman_service.dialects.deepl import glossaries
from dragoman_service.dialects.deepl.errors import MediaTypeError
from dragoman_service.dialects.deepl.fields import Fields

Reply = Callable[[Request, Fields], Awaitable[Response]]
Inform = Callable[[Request, Reply], Awaitable[Response]]
"""Reads a request's fields, has the reply made, and words what it raises."""


@dataclass(frozen=True)
class GlossaryReplies:
    """The replies. All raise `RequestError` where there is something to refuse.

    Args:
        store: Where glossaries are.
    """

    store: GlossaryStore

    async def create_v2(self, _: Request, fields: Fields) -> Response:
        """Make a glossary of one pair of languages."""
        made = await to_thread(glossaries.read_monolingual, fields)
        await self.store.add(made)
        return JSONResponse(glossaries.monolingual_json(made.outline), 201)

    async def list_v2(self, *_: object) -> Response:
        """List the glossaries of one pair of languages."""
        found = glossaries.monolingual(await self.store.all())
        return JSONResponse({"glossaries": [glossaries.monolingual_json(each) for each in found]})

    async def describe_v2(self, glossary_id: str, *_: object) -> Response:
        """Describe a glossary."""
        return JSONResponse(glossaries.monolingual_json((await self.store.get(glossary_id)).outline))

    async def entries_v2(self, glossary_id: str, request: Request, _: Fields) -> Response:
        """Hand out a glossary's entries as tab-separated text."""
        accepted = request.headers.get("accept", "*/*")
        if not any(kind in accepted for kind in (glossaries.TSV, "text/*", "*/*")):
            raise MediaTypeError("No supported media type specified in Accept header")
        dictionary = glossaries.only_dictionary((await self.store.get(glossary_id)).dictionaries)
        return Response(to_tsv(dictionary.entries), media_type=glossaries.TSV)

    async def delete(self, glossary_id: str, *_: object) -> Response:
        """Forget a glossary."""
        await self.store.remove(glossary_id)
        return Response(status_code=204)

    async def create_v3(self, _: Request, fields: Fields) -> Response:
        """Make a glossary with dictionaries for several pairs of languages."""
        made = await to_thread(glossaries.read_multilingual, fields)
        await self.store.add(made)
        return JSONResponse(glossaries.multilingual_json(made.outline), 201)

    async def list_v3(self, *_: object) -> Response:
        """List all glossaries."""
        found = await self.store.all()
        return JSONResponse({"glossaries": [glossaries.multilingual_json(each) for each in found]})

    async def describe_v3(self, glossary_id: str, *_: object) -> Response:
        """Describe a glossary."""
        return JSONResponse(glossaries.multilingual_json((await self.store.get(glossary_id)).outline))

    async def change_v3(self, glossary_id: str, _: Request, fields: Fields) -> Response:
        """Rename a glossary, or add entries to one of its dictionaries."""
        changed = await self.store.change(glossary_id, await to_thread(glossaries.read_change, fields))
        return JSONResponse(glossaries.multilingual_json(changed.outline))

    async def entries_v3(self, glossary_id: str, _: Request, fields: Fields) -> Response:
        """Hand out the entries of a glossary's dictionary."""
        pair = glossaries.read_pair(fields)
        found = (await self.store.get(glossary_id)).dictionary(*pair)
        return JSONResponse(glossaries.entries_json(found))

    async def replace_dictionary(self, glossary_id: str, _: Request, fields: Fields) -> Response:
        """Put a dictionary in the place of that of its pair, or beside the others."""
        new = await to_thread(glossaries.read_dictionary, fields)
        await self.store.change(glossary_id, lambda glossary: glossary.with_dictionary(new))
        return JSONResponse(glossaries.dictionary_json(new.outline))

    async def delete_dictionary(self, glossary_id: str, _: Request, fields: Fields) -> Response:
        """Forget a glossary's dictionary."""
        pair = glossaries.read_pair(fields)
        await self.store.change(glossary_id, lambda glossary: glossary.without_dictionary(*pair))
        return Response(status_code=204)
