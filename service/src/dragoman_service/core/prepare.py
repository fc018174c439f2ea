"""From a request's texts to what the engine is asked: languages, segments, terms, context."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache

import regex

from dragoman_contract.languages import Languages
from dragoman_protocols.glossaries.matching import Glossary, Term
from dragoman_protocols.languages import Pair, language, pair
from dragoman_protocols.translation import Split, TranslationRequest
from dragoman_service.core.budgets import TERMS_RATIO, expansion_ratio, segment_budget
from dragoman_service.core.generate import Asked
from dragoman_service.core.sources import Source, source_of
from dragoman_service.core.texts import Text
from dragoman_service.core.wanted import wanted
from dragoman_service.engine.protocol import Engine
from dragoman_service.prompts.family import PromptFamily
from dragoman_service.prompts.wishes import Wishes
from dragoman_service.text.document import Document, prepare
from dragoman_service.text.markers import MARKER
from dragoman_service.text.preparation import Preparation, Segment

SMALL_MODEL_TOKENS = 1024
"""A model that holds no more was trained on single sentences."""

CONTEXT_CHARS = 400
"""How much of what stands before a segment its prompt shows."""

TERM_TOKENS = 8
"""What a line of a glossary takes beside the term and its translation."""

NO_SPLIT_TOKENS = 1 << 40

SAME_PARAGRAPH = regex.compile(r"[^\S\n\r\v\f\x1c-\x1e\x85\u2028\u2029]*")
"""What may lie between two segments of which the second goes on where the first ended."""


class Budgets:
    """Tokens of a segment by pair and wishes, counted once each.

    Args:
        engine: Whose tokens count; loaded before the first question.
        family: Of the model.
    """

    def __init__(self, engine: Engine, family: PromptFamily) -> None:
        self._engine = engine
        self._family = family
        self.of = lru_cache(maxsize=512)(self._of)

    def _of(self, pair: Pair, wishes: Wishes, with_terms: bool) -> int:
        overhead_tokens = self._engine.count_tokens(self._family.prompt("", pair, wishes).instruction)
        return segment_budget(
            self._engine.max_model_len,
            self._family.decoding.max_prompt_tokens,
            overhead_tokens,
            expansion_ratio(pair.source, pair.target),
            self._family.segment_tokens,
            with_terms=with_terms,
        )


class Preparer:
    """Prepares the texts of one request; `text` may be called in a thread.

    Args:
        asked: The request.
        engine: Whose tokens count.
        family: Of the model.
        budgets: Of both.
        languages: Pairs that are served.
        split: What ends a segment where the request does not say; None is as the model wants it.
        deployed: The deployment's glossary for a pair, None if it has none.
    """

    def __init__(
        self,
        asked: TranslationRequest,
        engine: Engine,
        family: PromptFamily,
        budgets: Budgets,
        languages: tuple[Languages, ...],
        split: Split | None,
        deployed: Callable[[Pair], Glossary | None],
    ) -> None:
        self._asked = asked
        self._engine = engine
        self._family = family
        self._budgets = budgets
        self._languages = languages
        self._split = asked.split or split
        self._deployed = deployed

    def text(self, index: int) -> Text:
        """One text as segments with all that their prompts say.

        Raises:
            CallerError: Its language is not served or cannot be told, or the request's wishes cannot be
                fulfilled.
        """
        text, asked = self._asked.texts[index], self._asked
        source = self._source(text)
        if source.pair is None:
            return Text(index, source, Document((), (text,)), ())
        found = wanted(asked, source.pair, self._family)
        glossaries = self._glossaries(source.pair) if found.takes_terms else ()
        document = prepare(text, self._how(source.pair, found.wishes, bool(glossaries)))
        contexts = self._contexts(document, source.pair, found.wishes.context)
        segments = []
        for segment, context in zip(document.segments, contexts, strict=True):
            terms = self._terms(segment, glossaries)
            wishes = found.wishes
            if terms or context != wishes.context:
                pairs = tuple((term.source, term.target) for term in terms)
                wishes = replace(wishes, terms=pairs, context=context)
            segments.append(Asked(segment, source.pair, wishes, terms, asked.alternatives))
        return Text(index, source, document, tuple(segments), found.warnings)

    @cached_property
    def _own(self) -> Glossary | None:
        return Glossary(self._asked.terms) if self._asked.terms else None

    def _source(self, text: str) -> Source:
        asked = self._asked
        if asked.source_lang is None:
            return source_of(text, language(asked.target_lang), self._languages)
        found = pair(asked.source_lang, asked.target_lang, self._languages)
        return Source(found.source.tag, None, found)

    def _how(self, pair: Pair, wishes: Wishes, with_terms: bool) -> Preparation:
        split = self._split or self._usual_split()
        budget_tokens = NO_SPLIT_TOKENS if split is Split.NONE else self._budgets.of(pair, wishes, with_terms)
        asked = self._asked
        return Preparation(
            budget_tokens,
            self._engine.count_tokens,
            asked.format,
            pair.source.tag,
            by_line=split in (Split.LINES, Split.SENTENCES),
            by_sentence=split in (Split.SENTENCES, Split.NO_LINES),
            ignore_tags=asked.ignore_tags,
            splitting_tags=asked.splitting_tags,
            non_splitting_tags=asked.non_splitting_tags,
        )

    def _usual_split(self) -> Split:
        small = self._engine.max_model_len <= SMALL_MODEL_TOKENS
        return Split.SENTENCES if small or self._family.by_sentence else Split.LINES

    def _glossaries(self, pair: Pair) -> tuple[Glossary, ...]:
        """The request's before the deployment's."""
        return tuple(found for found in (self._own, self._deployed(pair)) if found is not None)

    def _terms(self, segment: Segment, glossaries: Sequence[Glossary]) -> tuple[Term, ...]:
        """The terms that a segment has, as many as its prompt has room for; of two with one source the first."""
        room_tokens = int(self._engine.max_model_len * TERMS_RATIO)
        terms: dict[str, Term] = {}
        for glossary in glossaries:
            for term in glossary.applying(segment.text):
                if room_tokens <= TERM_TOKENS:
                    return tuple(terms.values())
                key = term.source.casefold()
                tokens = self._engine.count_tokens(f"{term.source} {term.target}") + TERM_TOKENS
                if key not in terms and tokens <= room_tokens:
                    terms[key] = term
                    room_tokens -= tokens
        return tuple(terms.values())

    def _contexts(self, document: Document, pair: Pair, given: str) -> Iterator[str]:
        """What is shown before each segment: what the caller gave, else what the paragraph began with."""
        carries = not given and self._family.carries_context(pair)
        before: Segment | None = None
        for segment, between in zip(document.segments, document.between, strict=False):
            goes_on = carries and before is not None and SAME_PARAGRAPH.fullmatch(between)
            yield _end_of(before) if goes_on and before is not None else given
            before = segment


def _end_of(segment: Segment) -> str:
    """The last words of a segment, without markers."""
    text = " ".join(MARKER.sub(" ", segment.text).split())
    if len(text) <= CONTEXT_CHARS:
        return text
    return text[-CONTEXT_CHARS:].partition(" ")[2] or text[-CONTEXT_CHARS:]
