"""Where glossaries live, as those who use them see it; and the store that forgets."""

from __future__ import annotations

import asyncio
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from dragoman_protocols.errors import InvalidFieldError, StoreFullError, UnknownGlossaryError
from dragoman_protocols.glossaries.packed import Packed, pack
from dragoman_protocols.glossaries.values import Outline, StoredGlossary, written

MAX_GLOSSARIES = 1000
"""What DeepL keeps for one account."""

PACKED = 16
"""Glossaries that are kept packed, each up to a megabyte: packing one takes up to 50 ms."""

Change = Callable[[StoredGlossary], StoredGlossary]
"""Makes the next state of a glossary of its present one; keeps its id. May run more than once, where a store
finds that another change was written first."""


class GlossaryStore(Protocol):
    """Keeps glossaries; every method may be called side by side."""

    async def add(self, glossary: StoredGlossary) -> None:
        """Keep a new glossary.

        Raises:
            InvalidGlossaryError: It exceeds a bound.
            StoreFullError: There are too many.
            GlossaryStoreError: It could not be kept.
        """
        ...

    async def get(self, glossary_id: str) -> StoredGlossary:
        """One glossary.

        Raises:
            UnknownGlossaryError: There is none of this id.
            GlossaryStoreError: It could not be read.
        """
        ...

    async def all(self) -> Sequence[Outline]:
        """Every glossary without its entries, the oldest first.

        Raises:
            GlossaryStoreError: They could not be read.
        """
        ...

    async def change(self, glossary_id: str, change: Change) -> StoredGlossary:
        """Replace a glossary by what `change` makes of it; nothing happens where that raises.

        Raises:
            UnknownGlossaryError: There is none of this id.
            InvalidGlossaryError: It would exceed a bound.
            GlossaryStoreError: It could not be kept.
        """
        ...

    async def remove(self, glossary_id: str) -> None:
        """Forget a glossary.

        Raises:
            UnknownGlossaryError: There is none of this id.
            GlossaryStoreError: It could not be removed.
        """
        ...


class LocalStore(ABC):
    """A store of this process, which packs glossaries for routers."""

    def __init__(self) -> None:
        self._packed: dict[str, tuple[StoredGlossary, Packed]] = {}

    @abstractmethod
    async def get(self, glossary_id: str) -> StoredGlossary:
        """See `GlossaryStore.get`; the same value until the glossary changes."""

    async def owner(self, glossary_id: str) -> str | None:
        """Who alone sees a glossary; None: all callers. Raises as `get` does."""
        return (await self.get(glossary_id)).owner

    async def packed(self, glossary_id: str) -> Packed:
        """One glossary as routers send it to pods; raises as `get` does."""
        glossary = await self.get(glossary_id)
        known = self._packed.get(glossary.glossary_id)
        if known is None or known[0] is not glossary:
            packed = await asyncio.to_thread(packed_for_pods, glossary)
            if len(self._packed) >= PACKED:
                self._packed.clear()
            known = self._packed[glossary.glossary_id] = glossary, packed
        return known[1]


class MemoryStore(LocalStore):
    """Keeps glossaries until the process ends."""

    def __init__(self) -> None:
        super().__init__()
        self._glossaries: dict[str, StoredGlossary] = {}

    async def add(self, glossary: StoredGlossary) -> None:
        """See `GlossaryStore.add`."""
        if len(self._glossaries) >= MAX_GLOSSARIES:
            raise full()
        self._glossaries[glossary.glossary_id] = glossary.checked()

    async def get(self, glossary_id: str) -> StoredGlossary:
        """See `GlossaryStore.get`."""
        found = self._glossaries.get(canonical_id(glossary_id))
        if found is None:
            raise unknown()
        return found

    async def all(self) -> Sequence[Outline]:
        """See `GlossaryStore.all`."""
        return in_order(glossary.outline for glossary in self._glossaries.values())

    async def change(self, glossary_id: str, change: Change) -> StoredGlossary:
        """See `GlossaryStore.change`."""
        changed = change(await self.get(glossary_id)).checked()
        self._glossaries[changed.glossary_id] = changed
        return changed

    async def remove(self, glossary_id: str) -> None:
        """See `GlossaryStore.remove`."""
        if self._glossaries.pop(canonical_id(glossary_id), None) is None:
            raise unknown()


def canonical_id(glossary_id: str) -> str:
    """An id as stores know it: a UUID in lower case, so that it is a safe file or object name too.

    Raises:
        InvalidFieldError: It is no UUID.
    """
    try:
        return str(uuid.UUID(glossary_id))
    except ValueError:
        raise InvalidFieldError("Missing or invalid argument: glossary_id") from None


def packed_for_pods(glossary: StoredGlossary) -> Packed:
    """A glossary as routers send it to pods, which do not learn who owns it. Takes 50 ms for a large one."""
    packed = pack(glossary.glossary_id, written(replace(glossary, owner=None)))
    return replace(packed, owner=glossary.owner)


def in_order(outlines: Iterable[Outline]) -> list[Outline]:
    """As stores list them: the oldest first."""
    return sorted(outlines, key=lambda outline: outline.created)


def unknown() -> UnknownGlossaryError:
    """What every store says of an id it does not have."""
    return UnknownGlossaryError("Glossary not found")


def full() -> StoreFullError:
    """What every store says when it has as many glossaries as it keeps."""
    return StoreFullError(f"there are {MAX_GLOSSARIES} glossaries, as many as are kept; delete one first")
