"""Glossaries that routers keep, and which store has them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from dragoman_contract.glossaries import Packed
from dragoman_protocols.errors import GlossariesUnavailableError, GlossaryStoreError, InvalidFieldError
from dragoman_protocols.glossaries.directory import DirectoryStore
from dragoman_protocols.glossaries.store import GlossaryStore, MemoryStore
from dragoman_protocols.glossaries.values import StoredGlossary
from dragoman_router.errors import SettingsError
from dragoman_router.settings import Settings

if TYPE_CHECKING:
    from dragoman_router.state.opening import SharedState

log = logging.getLogger(__name__)


class PackedStore(GlossaryStore, Protocol):
    """A store that also hands glossaries out as pods get them."""

    async def packed(self, glossary_id: str) -> Packed:
        """One glossary, packed; raises as `get` does."""
        ...


class NoStore(MemoryStore):
    """Keeps nothing: several routers without shared state would each know other glossaries."""

    async def add(self, glossary: StoredGlossary) -> None:  # noqa: ARG002 - the store's signature
        """Refuse a glossary."""
        raise InvalidFieldError("glossaries need state that routers share (--state-url)")


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


class KeptGlossaries:
    """The glossaries that translations name.

    Args:
        store: Where they are; requests at the paths of glossaries are answered from it.
    """

    def __init__(self, store: PackedStore) -> None:
        self.store = store

    async def named(self, glossary_ids: Sequence[str]) -> tuple[Packed, ...]:
        """Glossaries as they are now, which is after every change that was answered.

        Raises:
            InvalidFieldError: One is no id.
            UnknownGlossaryError: One does not exist.
            GlossariesUnavailableError: They cannot be read.
        """
        try:
            return tuple([await self.store.packed(each) for each in dict.fromkeys(glossary_ids)])
        except GlossaryStoreError as error:
            log.warning("a glossary could not be read: %s", error)
            raise GlossariesUnavailableError(f"the glossary could not be read: {error}") from None
