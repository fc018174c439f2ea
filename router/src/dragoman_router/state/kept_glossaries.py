"""Glossaries that routers keep, and which store has them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from dragoman_protocols.errors import GlossariesUnavailableError, GlossaryStoreError, InvalidFieldError
from dragoman_protocols.glossaries.packed import Packed
from dragoman_protocols.glossaries.store import Change, GlossaryStore, MemoryStore, unknown
from dragoman_protocols.glossaries.values import Outline, StoredGlossary
from dragoman_router.errors import SettingsError
from dragoman_router.settings import Settings
from dragoman_system.glossary_directory import DirectoryStore

if TYPE_CHECKING:
    from dragoman_router.state.opening import SharedState

log = logging.getLogger(__name__)


class PackedStore(GlossaryStore, Protocol):
    """A store that knows owners, and also hands glossaries out as pods get them."""

    async def owner(self, glossary_id: str) -> str | None:
        """Who alone sees a glossary; None: all callers. Needs no document that can be read.

        Raises:
            UnknownGlossaryError: There is none of this id.
            GlossaryStoreError: It could not be read.
        """
        ...

    async def packed(self, glossary_id: str) -> Packed:
        """One glossary, packed; raises as `get` does."""
        ...


class NoStore(MemoryStore):
    """Keeps nothing: several routers without shared state would each know other glossaries."""

    async def add(self, glossary: StoredGlossary) -> None:  # noqa: ARG002 - the store's signature
        """Refuse a glossary."""
        raise InvalidFieldError("glossaries are not kept here: the routers share no state")


def store_of(settings: Settings, shared: SharedState | None) -> PackedStore:
    """The store that the settings name.

    Raises:
        SettingsError: The directory cannot be used.
    """
    if not settings.keep_glossaries:
        return NoStore()
    if shared is not None:
        return shared.glossaries
    if settings.glossary_dir is None:
        return MemoryStore()
    try:
        return DirectoryStore(settings.glossary_dir)
    except GlossaryStoreError as error:
        raise SettingsError(f"--glossary-dir: {error}") from error


class OwnGlossaries:
    """A `GlossaryStore` as one caller sees it: its own glossaries and those without an owner.

    Args:
        store: Has those of all callers.
        caller: Name of a key, or of a token's caller; owner of what is added.
    """

    def __init__(self, store: PackedStore, caller: str) -> None:
        self._store, self._caller = store, caller

    async def add(self, glossary: StoredGlossary) -> None:
        """See `GlossaryStore.add`."""
        await self._store.add(replace(glossary, owner=self._caller))

    async def get(self, glossary_id: str) -> StoredGlossary:
        """See `GlossaryStore.get`."""
        found = await self._store.get(glossary_id)
        require_visible(found.owner, self._caller)
        return found

    async def all(self) -> Sequence[Outline]:
        """See `GlossaryStore.all`."""
        return [each for each in await self._store.all() if is_visible(each.owner, self._caller)]

    async def change(self, glossary_id: str, change: Change) -> StoredGlossary:
        """See `GlossaryStore.change`."""

        def changed(found: StoredGlossary) -> StoredGlossary:
            require_visible(found.owner, self._caller)
            return change(found)

        return await self._store.change(glossary_id, changed)

    async def remove(self, glossary_id: str) -> None:
        """See `GlossaryStore.remove`; of a damaged glossary, too, while its owner can be read."""
        # No change of a glossary changes its owner.
        require_visible(await self._store.owner(glossary_id), self._caller)
        await self._store.remove(glossary_id)


def is_visible(owner: str | None, caller: str | None) -> bool:
    """Whether a caller sees a glossary; None: it has no owner, callers have no names."""
    return owner is None or caller is None or owner == caller


def require_visible(owner: str | None, caller: str | None) -> None:
    """Raise what stores raise of an id that they do not have, unless the caller sees the glossary."""
    if not is_visible(owner, caller):
        raise unknown()


class KeptGlossaries:
    """The glossaries that translations name.

    Args:
        store: Where they are.
        common: Whether callers see those of each other.
    """

    def __init__(self, store: PackedStore, common: bool = False) -> None:
        self._store, self._common = store, common

    def of(self, caller: str | None) -> GlossaryStore:
        """The store from which a caller's requests at the paths of glossaries are answered; None: it has no name."""
        return self._store if caller is None or self._common else OwnGlossaries(self._store, caller)

    async def named(self, glossary_ids: Sequence[str], caller: str | None) -> tuple[Packed, ...]:
        """Glossaries as they are now, which is after every change that was answered.

        Raises:
            InvalidFieldError: One is no id.
            UnknownGlossaryError: One does not exist, or is another caller's.
            GlossariesUnavailableError: They cannot be read.
        """
        try:
            found = tuple([await self._store.packed(each) for each in dict.fromkeys(glossary_ids)])
            for each in found:
                require_visible(each.owner, None if self._common else caller)
            return found
        except GlossaryStoreError as error:
            log.warning("a glossary could not be read: %s", error)
            raise GlossariesUnavailableError(f"the glossary could not be read: {error}") from None
