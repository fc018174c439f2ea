"""Adds the terms of callers' glossaries to requests."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dragoman_contract.glossaries import revisions
from dragoman_contract.routing import GLOSSARIES_HEADER
from dragoman_protocols.errors import InvalidFieldError, UnknownDictionaryError
from dragoman_protocols.glossaries.matching import Term
from dragoman_protocols.glossaries.store import GlossaryStore, canonical_id
from dragoman_protocols.glossaries.values import StoredGlossary, terms
from dragoman_protocols.languages import language
from dragoman_protocols.translation import Format, TranslationRequest
from dragoman_service.http.held_glossaries import HeldGlossaries
from dragoman_service.text.entities import unescaped


@dataclass(frozen=True)
class GlossaryTerms:
    """Finds the terms that occur in texts.

    Args:
        store: The glossaries that were created at this pod.
        held: Those that routers attached.
    """

    store: GlossaryStore
    held: HeldGlossaries = field(default_factory=HeldGlossaries)

    async def added(
        self, request: TranslationRequest, glossary_ids: tuple[str, ...], headers: Mapping[str, str]
    ) -> TranslationRequest:
        """The request with the terms of its glossaries; their pairs have no variants.

        Args:
            request: With a source language where there are glossaries.
            glossary_ids: The first one's terms come before the others'.
            headers: With the revisions of those that a router attached.

        Raises:
            GlossaryMissingError: One has to be attached first.
            UnknownGlossaryError: There is no such glossary.
            InvalidFieldError: One has no dictionary for the pair.
            GlossaryStoreError: One cannot be read.
        """
        if request.source_lang is None or not glossary_ids:
            return request
        pair = language(request.source_lang).code, language(request.target_lang).code
        attached = revisions(headers.get(GLOSSARIES_HEADER))
        found = [await self._glossary(each, attached) for each in glossary_ids]
        try:
            dictionaries = [glossary.dictionary(*pair) for glossary in found]
        except UnknownDictionaryError as error:
            raise InvalidFieldError(f"Bad request. Reason: {error}") from None

        is_plain = request.format is Format.PLAIN

        def found_terms() -> tuple[Term, ...]:
            return terms(dictionaries, request.texts if is_plain else [*map(unescaped, request.texts)])

        return replace(request, terms=await asyncio.to_thread(found_terms))

    async def _glossary(self, glossary_id: str, attached: Mapping[str, str]) -> StoredGlossary:
        revision = attached.get(canonical_id(glossary_id))
        return await self.store.get(glossary_id) if revision is None else self.held.get(revision)
