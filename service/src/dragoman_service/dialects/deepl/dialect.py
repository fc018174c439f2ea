"""`/v2/translate`: DeepL's requests and answers around the core."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import unescape
from typing import Any

from fastapi import Request, Response
from fastapi.responses import JSONResponse

from dragoman_contract.languages import Languages
from dragoman_service.dialects.blanks import put_back
from dragoman_service.dialects.deepl import errors
from dragoman_service.dialects.deepl.asked import Asked, read_asked
from dragoman_service.dialects.deepl.codes import source_code
from dragoman_service.dialects.deepl.fields import fields_of
from dragoman_service.dialects.deepl.usage import Usage
from dragoman_service.errors import InvalidFieldError, ServiceError, UnknownDictionaryError
from dragoman_service.glossaries.store import GlossaryStore
from dragoman_service.glossaries.values import terms
from dragoman_service.languages import language
from dragoman_service.text.preparation import Format
from dragoman_service.translation import TranslationRequest, TranslationResult
from dragoman_service.work import Call, Results


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
        store: Where glossaries are.
        usage: What was translated.
        max_texts: Most texts in one request.
    """

    served: tuple[Languages, ...]
    store: GlossaryStore
    usage: Usage
    max_texts: int
    name: str = "deepl"

    async def read(self, request: Request, body: bytes) -> Call:
        """See `asked.read_asked`; the terms of its glossaries are looked up, and the quota is."""
        asked = read_asked(fields_of(request, body), self.served, self.max_texts)
        self.usage.check(asked.characters)
        wanted = await self.with_terms(asked)
        return Call(() if wanted is None else (wanted,), lambda results: self._answered(asked, results))

    async def with_terms(self, asked: Asked) -> TranslationRequest | None:
        """What the core is asked for, with the terms that its glossaries have; their pairs know no variants.

        Raises:
            UnknownGlossaryError: One is not there.
            InvalidFieldError: One has no dictionary for the pair.
            GlossaryStoreError: One cannot be read.
        """
        if asked.request is None or asked.request.source_lang is None or not asked.glossary_ids:
            return asked.request
        pair = language(asked.request.source_lang).code, language(asked.request.target_lang).code
        found = [await self.store.get(glossary_id) for glossary_id in asked.glossary_ids]
        try:
            dictionaries = [glossary.dictionary(*pair) for glossary in found]
        except UnknownDictionaryError as error:
            raise InvalidFieldError(f"Bad request. Reason: {error}") from None
        seen = [*map(unescape, asked.texts)] if asked.request.format is not Format.PLAIN else asked.texts
        return replace(asked.request, terms=await asyncio.to_thread(terms, dictionaries, seen))

    def refuse(self, error: ServiceError) -> Response:
        """See `errors.refuse`."""
        return errors.refuse(error)

    def _answered(self, asked: Asked, results: Results) -> Response:
        self.usage.add(asked.characters)
        return JSONResponse({"translations": list(translations(asked, results[0] if results else ()))})
