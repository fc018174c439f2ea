"""Files as work: their texts are translated, and put back."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, replace

from dragoman_contract.languages import Languages
from dragoman_protocols.calls import EQUAL, TranslateFile
from dragoman_protocols.documents import Document, State
from dragoman_protocols.errors import InvalidFieldError
from dragoman_protocols.languages import Pair, language, sources
from dragoman_protocols.messages import Answer
from dragoman_protocols.source_choice import choose_source, sample_of
from dragoman_protocols.translation import TranslationRequest, not_blank, put_back
from dragoman_service.core.costs import Cost, cost_of, demands_of
from dragoman_service.core.translator import Translator
from dragoman_service.files.parsing import FileParser, ParsedFile
from dragoman_service.http.documents import DocumentStore
from dragoman_service.http.work import BackgroundWork
from dragoman_service.text.segments import has_letters

PARTS_LEFT, NOTHING_TO_TRANSLATE = "parts_left", "nothing_to_translate"
"""Findings about a file: parts of it that stay as they are, and no text at all."""


@dataclass
class FileWork(BackgroundWork):
    """A file.

    Args:
        call: The call that it was read from.
        document: Reports its state.
        parsed: Its texts.
        request: What the core has to do; None where all texts are blank.
        store: Gets the result.
    """

    call: TranslateFile
    document: Document
    parsed: ParsedFile
    request: TranslationRequest | None
    parser: FileParser
    store: DocumentStore

    def __post_init__(self) -> None:
        # Markup is not charged.
        self.characters = sum(map(len, self.parsed.words))
        self.text_count = 0 if self.request is None else len(self.request.texts)
        self.document.characters, self.progress = self.characters, self.document.advance
        if self.request is not None:
            self.document.source_lang = self.request.source_lang

    @property
    def cost(self) -> Cost:
        """Of the texts without markup."""
        if self.request is None:
            return cost_of(())
        return cost_of(demands_of(replace(self.request, texts=self.parsed.words)))

    def check(self, translator: Translator) -> Pair | None:
        """The pair.

        Raises:
            CallerError: It is not served.
        """
        return translator.check(self.request) if self.request else None

    async def answer(self, translator: Translator) -> Answer:
        """Translate the file, and answer its document, which charges for it."""
        if self.call.deliver is not None:
            return self.call.deliver(self.document, await self._translated(translator))
        await self.translate(translator)
        return self.call.render(self.document)

    async def translate(self, translator: Translator) -> None:
        """Translate the file, and keep it."""
        content = await self._translated(translator)
        self.store.done(self.document, content)

    async def _translated(self, translator: Translator) -> bytes:
        """The translated file; the document has its findings."""
        document, call = self.document, self.call
        document.state, document.started_s = State.TRANSLATING, time.monotonic()
        if self.request is not None and self.request.source_lang == call.refused_source is not None:
            raise InvalidFieldError(EQUAL)
        results = [] if self.request is None else await translator.translate(self.request)
        texts = [result.text for result in put_back(self.parsed.texts, results, None)]
        content = await self.parser.rebuild(
            self.parsed, call.name, call.content, call.request.target_lang, texts
        )
        findings = Counter(warned.code for result in results for warned in result.warnings)
        if remembered := sum(result.from_memory for result in results):
            findings["from_memory"] = remembered
        if self.parsed.left:
            findings[PARTS_LEFT] = len(self.parsed.left)
        if not any(map(has_letters, self.parsed.words)):
            findings[NOTHING_TO_TRANSLATE] = 1
        document.findings = dict(sorted(findings.items()))
        return content


def request_for(
    call: TranslateFile, parsed: ParsedFile, served: tuple[Languages, ...]
) -> TranslationRequest | None:
    """What the core has to do with a file; None where all texts are blank. Detects its language.

    Raises:
        CallerError: The target language is unknown; or the language of the file is not served or could not be told.
    """
    texts = not_blank(parsed.texts)
    request = replace(
        call.request,
        texts=texts,
        format=parsed.format,
        ignore_tags=parsed.ignore_tags,
        splitting_tags=parsed.splitting_tags,
        non_splitting_tags=parsed.non_splitting_tags,
    )
    if not texts:
        return None
    if request.source_lang is None:
        request = replace(request, source_lang=_detected(parsed.words, call, served))
    return request


def _detected(words: tuple[str, ...], call: TranslateFile, served: tuple[Languages, ...]) -> str | None:
    """One language for the file; None if it is not clear: the core then detects it text by text."""
    target = language(call.request.target_lang)
    found = choose_source(sample_of(words), sources(target, served), (target.tag,))
    if found.is_target:
        return found.tag if found.tag == call.refused_source else None
    return found.tag if found.is_likely and found.confidence else None
