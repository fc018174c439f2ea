"""`/v2/translate`: DeepL's requests and answers around the core."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fastapi import Request, Response
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers

from dragoman_contract.glossaries import revisions
from dragoman_contract.languages import Languages
from dragoman_contract.routing import GLOSSARIES_HEADER
from dragoman_protocols.api import Results
from dragoman_protocols.blanks import put_back
from dragoman_protocols.errors import InvalidFieldError, RequestError, UnknownDictionaryError
from dragoman_protocols.glossaries.matching import Term
from dragoman_protocols.glossaries.store import GlossaryStore, canonical_id
from dragoman_protocols.glossaries.values import StoredGlossary, terms
from dragoman_protocols.languages import language
from dragoman_protocols.translation import Format, TranslationRequest, TranslationResult
from dragoman_service.dialects.deepl import errors
from dragoman_service.dialects.deepl.asked import Asked, read_asked
from dragoman_service.dialects.deepl.codes import source_code
from dragoman_service.dialects.deepl.fields import fields_of
from dragoman_service.dialects.deepl.usage import Usage
from dragoman_service.http.held_glossaries import HeldGlossaries
from dragoman_service.http.work import Call, in_thread_if_long
from dragoman_service.text.entities import unescaped


def translations(asked: Asked, results: Sequence[TranslationResult]) -> Iterable[dict[str, Any]]:
    """The answer's items, in the order of the texts.

    Args:
        asked: Whose blank texts have no results.
        results: Of the others.
    """
    source = asked.request.source_lang if asked.request else None
    for text, result in zip(asked.texts, put_back(asked.texts, results, source), strict=True):
        item: dict[str, Any] = {
            "detected_source_language": source_code(result.source_lang),
            "text": result.text,
            # Always, though DeepL sends it on request alone: its own Python client fails without.
            "billed_characters": len(text),
        }
        if asked.model_type is not None:
            item["model_type_used"] = asked.model_type
        if asked.tag_handling_version is not None:
            item["tag_handling_version"] = asked.tag_handling_version
        yield item


@dataclass(frozen=True)
class DeepL:
    """The dialect.

    Args:
        served: The deployment's pairs; empty means every pair.
        store: Where glossaries are that were made here.
        usage: What was translated.
        max_texts: Most texts in one request.
        held: Glossaries that routers brought.
    """

    served: tuple[Languages, ...]
    store: GlossaryStore
    usage: Usage
    max_texts: int
    held: HeldGlossaries = field(default_factory=HeldGlossaries)
    name: str = "deepl"

    async def read(self, request: Request, body: bytes) -> Call:
        """See `asked.read_asked`; the terms of its glossaries are looked up."""
        asked = await in_thread_if_long(
            len(body), lambda: read_asked(fields_of(request, body), self.served, self.max_texts)
        )
        wanted = await self.with_terms(asked, request.headers)
        return Call(
            () if wanted is None else (wanted,),
            lambda results: self._answered(asked, results),
            charged=asked.characters,
            reserve=lambda: self.usage.reserve(asked.characters),
        )

    async def with_terms(self, asked: Asked, headers: Headers) -> TranslationRequest | None:
        """What the core is asked for, with the terms that its glossaries have; their pairs know no variants.

        Args:
            asked: Whose glossaries they are.
            headers: Where a router says which revisions of them.

        Raises:
            GlossaryMissingError: One has to be brought first.
            UnknownGlossaryError: One is not there.
            InvalidFieldError: One has no dictionary for the pair.
            GlossaryStoreError: One cannot be read.
        """
        if asked.request is None or asked.request.source_lang is None or not asked.glossary_ids:
            return asked.request
        pair = language(asked.request.source_lang).code, language(asked.request.target_lang).code
        kept_by_router = revisions(headers.get(GLOSSARIES_HEADER))
        found = [await self._glossary(each, kept_by_router) for each in asked.glossary_ids]
        try:
            dictionaries = [glossary.dictionary(*pair) for glossary in found]
        except UnknownDictionaryError as error:
            raise InvalidFieldError(f"Bad request. Reason: {error}") from None

        is_plain = asked.request.format is Format.PLAIN

        def found_terms() -> tuple[Term, ...]:
            seen = asked.texts if is_plain else [*map(unescaped, asked.texts)]
            return terms(dictionaries, seen)

        return replace(asked.request, terms=await asyncio.to_thread(found_terms))

    async def _glossary(self, glossary_id: str, kept_by_router: Mapping[str, str]) -> StoredGlossary:
        revision = kept_by_router.get(canonical_id(glossary_id))
        return await self.store.get(glossary_id) if revision is None else self.held.get(revision)

    def refuse(self, error: RequestError) -> Response:
        """See `errors.refuse`."""
        return errors.refuse(error)

    def _answered(self, asked: Asked, results: Results) -> Response:
        self.usage.add(asked.characters)
        return JSONResponse({"translations": list(translations(asked, results[0] if results else ()))})
