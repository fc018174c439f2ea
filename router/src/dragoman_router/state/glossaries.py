"""Callers' glossaries in Redis, where every router sees them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from cachetools import LRUCache
from pydantic import TypeAdapter

from dragoman_protocols.errors import GlossaryStoreError, InvalidGlossaryError, StoreFullError
from dragoman_protocols.glossaries.packed import MAX_PACKED_BYTES, Packed, revision_of, unpack
from dragoman_protocols.glossaries.store import (
    MAX_GLOSSARIES,
    Change,
    canonical_id,
    full,
    in_order,
    packed_for_pods,
    unknown,
)
from dragoman_protocols.glossaries.values import Outline, StoredGlossary, owner_in, read
from dragoman_router.errors import StateError, StateRefusedError
from dragoman_router.state.redis import StateClient
from dragoman_router.state.scripts import KEEP_GLOSSARY

log = logging.getLogger(__name__)

CHANGE_ATTEMPTS = 20
"""Of a change while others change the same glossary; each attempt lets one of them through."""
MAX_PAUSE_S = 0.05
MAX_KNOWN_BYTES = 8 * 1024 * 1024
"""Compressed, of the glossaries that translations name: read again only after they have changed."""
FULL = ("OOM", "MISCONF", "command not allowed when used memory")
"""How Redis refuses a write for lack of memory, or because it could not save."""

_OUTLINE = TypeAdapter(Outline)


class UnreachableError(GlossaryStoreError):
    """Redis did not answer."""


class RedisGlossaries:
    """A `GlossaryStore`: each glossary is a hash, and one more hash has the outlines of all, for lists.

    Every read is answered by the server, so that a change at one router applies to the next request at any other.
    """

    def __init__(self, client: StateClient) -> None:
        self._client, self._redis = client, client.redis
        self._outlines = f"{client.prefix}glossaries"
        self._keep_script = client.redis.register_script(KEEP_GLOSSARY)
        self._known: LRUCache[str, Packed] = LRUCache(MAX_KNOWN_BYTES, lambda packed: len(packed.content))
        self._chance = Random()

    async def add(self, glossary: StoredGlossary) -> None:
        """See `GlossaryStore.add`."""
        if await self._keep(glossary.checked(), "") == b"full":
            raise full()

    async def get(self, glossary_id: str) -> StoredGlossary:
        """See `GlossaryStore.get`."""
        return (await self._get(canonical_id(glossary_id)))[0]

    async def all(self) -> Sequence[Outline]:
        """See `GlossaryStore.all`; an outline that is not understood is ignored and logged."""
        found = []
        for glossary_id, text in (
            await self._call("list", lambda: self._redis.hgetall(self._outlines))
        ).items():
            try:
                found.append(_OUTLINE.validate_json(text))
            except ValueError:
                log.warning("ignored: the outline of glossary %s is not understood", glossary_id.decode())
        return in_order(found)

    async def change(self, glossary_id: str, change: Change) -> StoredGlossary:
        """See `GlossaryStore.change`."""
        glossary_id = canonical_id(glossary_id)
        for _ in range(CHANGE_ATTEMPTS):
            found, revision = await self._get(glossary_id)
            changed = change(found).checked()
            match await self._keep(changed, revision):
                case b"kept":
                    return changed
                case b"missing":
                    raise unknown()
            await asyncio.sleep(self._chance.uniform(0, MAX_PAUSE_S))
        raise GlossaryStoreError("the glossary is changed by others at the same time; retry")

    async def remove(self, glossary_id: str) -> None:
        """See `GlossaryStore.remove`."""
        glossary_id = canonical_id(glossary_id)

        async def remove() -> list[int]:
            # No transaction: a server without memory refuses to queue commands, those that free memory too.
            async with self._redis.pipeline(transaction=False) as commands:
                commands.delete(self._key(glossary_id))
                commands.hdel(self._outlines, glossary_id)
                return await commands.execute()

        self._known.pop(glossary_id, None)
        if not any(await self._call("remove", remove)):
            raise unknown()

    async def owner(self, glossary_id: str) -> str | None:
        """Who alone sees a glossary; None: all callers. Of one whose hash is gone, the owner in its outline.

        Raises:
            UnknownGlossaryError: There is none of this id.
            GlossaryStoreError: It could not be read.
        """
        glossary_id = canonical_id(glossary_id)

        async def read() -> tuple[int, bytes | None, bytes | None]:
            async with self._redis.pipeline(transaction=False) as commands:
                commands.exists(self._key(glossary_id))
                commands.hget(self._key(glossary_id), "owner")
                commands.hget(self._outlines, glossary_id)
                exists, owner, outline = await commands.execute()
            return exists, owner, outline

        exists, owner, outline = await self._call("owner", read)
        if exists:
            return None if owner is None else owner.decode()
        if outline is None:
            raise unknown()
        try:
            return owner_in(outline)
        except ValueError as error:
            raise _spoilt(glossary_id) from error

    async def packed(self, glossary_id: str) -> Packed:
        """One glossary as pods get it, as it is now.

        While Redis does not answer, the revision that this router used last is used.

        Raises:
            UnknownGlossaryError: There is none of this id.
            GlossaryStoreError: It could not be read, and is not known.
        """
        glossary_id = canonical_id(glossary_id)
        known = self._known.get(glossary_id)
        key = self._key(glossary_id)
        try:
            revision = await self._call("revision", lambda: self._redis.hget(key, "revision"))
            if revision is not None and known is not None and revision.decode() == known.revision:
                return known
            content, owner = (None, None) if revision is None else await self._document(glossary_id)
        except UnreachableError as error:
            if known is None:
                raise
            log.warning("a glossary is used as this router last knew it: %s", error)
            return known
        if content is None:
            self._known.pop(glossary_id, None)
            raise unknown()
        packed = await asyncio.to_thread(_packed, glossary_id, content, owner)
        self._known[glossary_id] = packed
        return packed

    async def _get(self, glossary_id: str) -> tuple[StoredGlossary, str]:
        """A glossary and its revision."""
        content, owner = await self._document(glossary_id)
        if content is None:
            raise unknown()
        found, revision = await asyncio.to_thread(_parsed, glossary_id, content)
        return replace(found, owner=owner), revision

    async def _document(self, glossary_id: str) -> tuple[bytes | None, str | None]:
        """A glossary's document and its owner; None: there is none."""
        key = self._key(glossary_id)
        content, owner = await self._call("document", lambda: self._redis.hmget(key, "document", "owner"))
        return content, None if owner is None else owner.decode()

    async def _keep(self, glossary: StoredGlossary, revision: str) -> bytes:
        """Write a glossary if it is the one of a revision; empty: a new one."""
        packed = await asyncio.to_thread(packed_for_pods, glossary)
        if len(packed.content) > MAX_PACKED_BYTES:
            raise InvalidGlossaryError(
                f"entries: {len(packed.content)} bytes when compressed; at most {MAX_PACKED_BYTES} are kept"
            )
        outline = _OUTLINE.dump_json(glossary.outline, exclude_none=True)
        keys = [self._key(glossary.glossary_id), self._outlines]
        arguments: list[Any] = [
            glossary.glossary_id,
            revision,
            packed.revision,
            outline,
            packed.content,
            MAX_GLOSSARIES,
            glossary.owner or "",
        ]
        outcome: bytes = await self._call("keep", lambda: self._keep_script(keys, arguments))
        return outcome

    def _key(self, glossary_id: str) -> str:
        return f"{self._client.prefix}glossary:{glossary_id}"

    async def _call(self, operation: str, command: Callable[[], Awaitable[Any]]) -> Any:
        """See `StateClient.call`; raises what stores raise."""
        try:
            return await self._client.call(f"glossary_{operation}", command)
        except StateRefusedError as error:
            if any(reason in str(error) for reason in FULL):
                raise StoreFullError("the memory for glossaries is used up; delete one first") from error
            raise GlossaryStoreError("Redis refused the command; the router's log has more") from error
        except StateError as error:
            raise UnreachableError("Redis does not answer") from error


def _packed(glossary_id: str, content: bytes, owner: str | None) -> Packed:
    try:
        return Packed(glossary_id, revision_of(unpack(content)), content, owner)
    except ValueError as error:
        raise _spoilt(glossary_id) from error


def _parsed(glossary_id: str, content: bytes) -> tuple[StoredGlossary, str]:
    try:
        document = unpack(content)
        return read(document), revision_of(document)
    except ValueError as error:
        raise _spoilt(glossary_id) from error


def _spoilt(glossary_id: str) -> GlossaryStoreError:
    return GlossaryStoreError(f"the entry of glossary {glossary_id} is no glossary; restore or remove it")
