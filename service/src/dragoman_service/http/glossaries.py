"""Callers' glossaries: those that a pod stores, those that routers attach, and their terms in requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cachetools import LRUCache

from dragoman_protocols.errors import (
    GlossaryMissingError,
    GlossaryStoreError,
    InvalidFieldError,
    UnknownDictionaryError,
)
from dragoman_protocols.glossaries.matching import Term
from dragoman_protocols.glossaries.packed import MAX_DOCUMENT_BYTES, revisions, unpack
from dragoman_protocols.glossaries.store import GlossaryStore, MemoryStore, canonical_id
from dragoman_protocols.glossaries.styles import Style
from dragoman_protocols.glossaries.values import Dictionary, StoredGlossary, read, terms
from dragoman_protocols.languages import language
from dragoman_protocols.translation import Format, TranslationRequest
from dragoman_service.errors import SettingsError
from dragoman_service.text.markup import unescaped
from dragoman_system.glossary_directory import DirectoryStore

log = logging.getLogger(__name__)

MAX_ATTACHED_BYTES = 5 * MAX_DOCUMENT_BYTES
"""Of their documents; as values they take up to ten times as much. One request names up to five, which all have to be
there at once; most have some kilobytes."""


def open_store(directory: Path | None, cache_dir: Path | None) -> GlossaryStore:
    """A store in a directory, else in one below the cache directory, else in memory, which is logged.

    Raises:
        SettingsError: `directory` cannot be used.
    """
    if directory is not None:
        try:
            return DirectoryStore(directory)
        except GlossaryStoreError as error:
            raise SettingsError(f"--glossary-dir: {error}") from error
    reason = "no --glossary-dir and no --cache-dir is set"
    if cache_dir is not None:
        try:
            return DirectoryStore(cache_dir / "glossaries")
        except GlossaryStoreError as error:
            reason = str(error)
    log.info("glossaries are kept in memory and end with this pod: %s", reason)
    return MemoryStore()


class AttachedGlossaries:
    """Glossaries that routers attached, by revision; the least recently used are dropped.

    Used from the event loop alone.

    Args:
        max_bytes: Maximum of all documents together; at least that of one.
    """

    def __init__(self, max_bytes: int = MAX_ATTACHED_BYTES) -> None:
        self._attached: LRUCache[str, tuple[StoredGlossary, int]] = LRUCache(
            max_bytes, getsizeof=lambda entry: entry[1]
        )

    async def put(self, revision: str, content: bytes) -> None:
        """Add one, as `dragoman_protocols.glossaries.packed` packs it.

        Raises:
            ValueError: It is no glossary, or not of this revision.
        """
        if self._attached.get(revision) is None:
            attached = await asyncio.to_thread(_read, revision, content)
            # Another router may have been faster, and its value is in use.
            self._attached.setdefault(revision, attached)

    def get(self, revision: str) -> StoredGlossary:
        """One of them.

        Raises:
            GlossaryMissingError: It is not, or no longer, attached.
        """
        found = self._attached.get(revision)
        if found is None:
            raise GlossaryMissingError("this replica does not have the glossary yet; ask again")
        return found[0]


def _dictionaries(
    glossaries: Sequence[StoredGlossary], request: TranslationRequest
) -> dict[str, list[Dictionary]]:
    """The dictionaries into a request's target, by the primary subtags of their sources."""
    target = language(request.target_lang).code
    if request.source_lang is not None:
        source = language(request.source_lang).code
        return {source: [glossary.dictionary(source, target) for glossary in glossaries]}
    found: dict[str, list[Dictionary]] = {}
    for dictionary in (each for glossary in glossaries for each in glossary.dictionaries):
        if dictionary.target_lang == target:
            found.setdefault(dictionary.source_lang, []).append(dictionary)
    if not found:
        raise UnknownDictionaryError(f"No dictionary found for target language {target} in glossary")
    return found


def _in_style(request: TranslationRequest, styles: Sequence[Style]) -> TranslationRequest:
    """The request with the instructions of style rules.

    Raises:
        InvalidFieldError: They are for another target language.
    """
    target = language(request.target_lang).code
    source = None if request.source_lang is None else language(request.source_lang).code
    for style in styles:
        if style.language != target:
            raise InvalidFieldError(
                f"the style rules are for {style.language}, the target language is {target}"
            )
    prompts = [prompt for style in styles for prompt in style.prompts(source)]
    return replace(request, instructions=(*request.instructions, *prompts)) if prompts else request


def _read(revision: str, content: bytes) -> tuple[StoredGlossary, int]:
    document = unpack(content, revision)
    return read(document), len(document)


@dataclass(frozen=True)
class GlossaryTerms:
    """Finds the terms that occur in texts.

    Args:
        store: The glossaries that were created at this pod.
        attached: Those that routers attached.
    """

    store: GlossaryStore
    attached: AttachedGlossaries = field(default_factory=AttachedGlossaries)

    async def added(
        self, request: TranslationRequest, glossary_ids: tuple[str, ...], header: str | None
    ) -> TranslationRequest:
        """The request with the terms of its glossaries, whose pairs have no variants, and the instructions of styles.

        Where the source is detected, it gets the terms of all sources that one of the glossaries has.

        Args:
            request: Its own terms come before those of glossaries.
            glossary_ids: The first one's terms come before the others'.
            header: `GLOSSARIES_HEADER`: the revisions of those that a router attached.

        Raises:
            GlossaryMissingError: One has to be attached first.
            UnknownGlossaryError: There is no such glossary.
            InvalidFieldError: One has no dictionary for the pair; of a detected source, none has one for the target.
            GlossaryStoreError: One cannot be read.
        """
        if not glossary_ids:
            return request
        attached = revisions(header)
        named = [await self._glossary(each, attached) for each in glossary_ids]
        request = _in_style(request, [each.style for each in named if each.style is not None])
        found = [each for each in named if each.style is None]
        if not found:
            return request
        try:
            dictionaries = _dictionaries(found, request)
        except UnknownDictionaryError as error:
            raise InvalidFieldError(f"Bad request. Reason: {error}") from None

        def found_terms() -> dict[str, tuple[Term, ...]]:
            is_plain = request.format is Format.PLAIN
            texts = request.texts if is_plain else [*map(unescaped, request.texts)]
            return {source: terms(each, texts) for source, each in dictionaries.items()}

        by_source = await asyncio.to_thread(found_terms)
        if request.source_lang is None:
            return replace(request, terms_by_source=by_source)
        return replace(request, terms=(*request.terms, *next(iter(by_source.values()))))

    async def _glossary(self, glossary_id: str, attached: Mapping[str, str]) -> StoredGlossary:
        revision = attached.get(canonical_id(glossary_id))
        return await self.store.get(glossary_id) if revision is None else self.attached.get(revision)
