"""From a request's texts to tasks for the engine: options, languages, segments, terms, context."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from itertools import chain, repeat

import regex

from dragoman_contract.languages import Languages
from dragoman_protocols.errors import EmptyTextError, UnsupportedOptionError
from dragoman_protocols.glossaries.matching import Glossary, Term
from dragoman_protocols.languages import UNKNOWN, Language, Pair, language, sources
from dragoman_protocols.offer import offer_of
from dragoman_protocols.served import pair_of
from dragoman_protocols.source_choice import NO_LETTERS, choose_source, hint_of, sample_of
from dragoman_protocols.translation import Formality, Format, OnFinding, Split, TranslationRequest, Warned
from dragoman_service.core.budgets import TERMS_RATIO, expansion_ratio, segment_budget
from dragoman_service.core.glossary_file import GlossaryFile
from dragoman_service.core.stages import PreparedText, SegmentTask, SourceLanguage
from dragoman_service.engine.protocol import Engine, TokenCounter
from dragoman_service.prompts.family import NO_OPTIONS, Option, PromptFamily, PromptOptions, Tone
from dragoman_service.text.pieces import MARKER
from dragoman_service.text.segmented_text import Preparation, Segment, SegmentedText, prepare

INLINE_CHARS = 2000
"""Longer requests do not run on the event loop: this many take about 2 ms."""

MARKUP_RATIO = 4
"""Cost of a character of HTML or XML, relative to plain text."""

TEXT_CHARS = 100
"""Fixed cost of a text, in characters."""

CACHED = 512
"""Pairs, and budgets of segments, that are computed once."""

SMALL_MODEL_TOKENS = 1024
"""A model that holds no more was trained on single sentences."""

CONTEXT_CHARS = 400
"""Maximum length of the preceding text that a segment's prompt shows."""

TERM_TOKENS = 8
"""Tokens of a glossary line beside the term and its translation."""

NO_SPLIT_TOKENS = 1 << 40

SAME_PARAGRAPH = regex.compile(r"[^\S\n\r\v\f\x1c-\x1e\x85\u2028\u2029]*")
"""What may separate two segments of one paragraph."""

TONES = {
    Formality.MORE: Tone.FORMAL,
    Formality.PREFER_MORE: Tone.FORMAL,
    Formality.LESS: Tone.INFORMAL,
    Formality.PREFER_LESS: Tone.INFORMAL,
}

ANY_TERM = (("term", "term"),)


@dataclass(frozen=True)
class ResolvedOptions:
    """A request's options as its prompts state them.

    Args:
        options: Without terms, which differ from segment to segment.
        supports_terms: Whether the family supports terms.
        warnings: One for each option that is ignored.
    """

    options: PromptOptions = NO_OPTIONS
    supports_terms: bool = True
    warnings: tuple[Warned, ...] = ()


def resolve_options(request: TranslationRequest, pair: Pair, family: PromptFamily) -> ResolvedOptions:
    """Those of a request's options that the family supports.

    Raises:
        UnsupportedOptionError: An option is not supported, and `ignore_unsupported` is not set.
    """
    tone = TONES.get(request.formality)
    context = request.context.strip()
    instructions = tuple(filter(str.strip, request.instructions))
    has_terms = bool(request.terms) or any(request.terms_by_source.values())
    if not (has_terms or context or tone or instructions):
        return _NO_OPTIONS[not family.unsupported(pair, PromptOptions(terms=ANY_TERM))]
    options = PromptOptions(ANY_TERM if has_terms else (), context, tone, instructions)
    preferred = request.formality in (Formality.PREFER_MORE, Formality.PREFER_LESS)
    if preferred and family.unsupported(pair, PromptOptions(tone=tone)):
        options = replace(options, tone=None)
    unsupported = family.unsupported(pair, options)
    message = f"models of family {family.name} do not support"
    if unsupported and not request.ignore_unsupported:
        raise UnsupportedOptionError(f"{message} {' or '.join(unsupported)}: remove it")
    if unsupported:
        options = _without(options, unsupported)
    return ResolvedOptions(
        replace(options, terms=()),
        not family.unsupported(pair, replace(options, terms=ANY_TERM)),
        tuple(Warned("option_ignored", f"{message} {option}") for option in unsupported),
    )


def _without(options: PromptOptions, unsupported: tuple[Option, ...]) -> PromptOptions:
    return PromptOptions(
        () if Option.GLOSSARY in unsupported else options.terms,
        "" if Option.CONTEXT in unsupported else options.context,
        None if Option.FORMALITY in unsupported else options.tone,
        () if Option.INSTRUCTIONS in unsupported else options.instructions,
    )


_NO_OPTIONS = {supported: ResolvedOptions(supports_terms=supported) for supported in (False, True)}


def detected(
    text: str,
    target: Language,
    served: tuple[Languages, ...],
    hint: str | None = None,
    *,
    strict: bool = False,
) -> SourceLanguage:
    """The language that a text of any format is translated from, detected; see `choose_source`.

    `served` is empty where every pair is served.

    Raises:
        SourceNotServedError: It is in a language that is not served.
        SourceUnclearError: It has letters, and its language could not be told.
    """
    found = choose_source(text, sources(target, served), (target.tag,), hint, strict=strict)
    if found == NO_LETTERS:
        return SourceLanguage(found.tag, found.confidence, None)
    if found.is_target:
        detail = f"the text is in {target.english} already and was returned unchanged"
        return SourceLanguage(found.tag, found.confidence, None, (Warned("target_language", detail),))
    source = language(found.tag)
    warning = Warned(
        "source_uncertain", f"that the text is in {source.english} is a guess: name the source language"
    )
    return SourceLanguage(
        found.tag, found.confidence, Pair(source, target), () if found.is_likely else (warning,)
    )


class Preparer:
    """Prepares requests for a deployment; its methods can be called in a thread.

    Args:
        counts: Counts tokens; an engine is loaded before `texts` is called.
        languages: Pairs that are served; empty means every pair.
        split: Used if a request has none; None is the model family's preference.
        deployed: The deployment's glossary, if it has one.
    """

    def __init__(
        self,
        counts: Engine | TokenCounter,
        family: PromptFamily,
        languages: tuple[Languages, ...],
        split: Split | None,
        deployed: GlossaryFile | None,
    ) -> None:
        self._counts = counts
        self._family = family
        self._languages = languages
        self._split = split
        self._deployed = deployed
        offer = offer_of([languages])
        self._pair = lru_cache(maxsize=CACHED)(lambda source, target: pair_of(source, target, offer))
        self._budget_tokens = lru_cache(maxsize=CACHED)(self._segment_budget)

    def check(self, request: TranslationRequest) -> Pair:
        """The pair of a request; its source is `UNKNOWN` if it is to be detected.

        Raises:
            CallerError: The texts are empty, the pair is not served, or the model's family does not support
                an option.
        """
        found = self._pair(request.source_lang, request.target_lang)
        if not request.texts:
            raise EmptyTextError("the list of texts is empty")
        for index, text in enumerate(request.texts):
            if not text or text.isspace():
                which = f"text number {index + 1}" if len(request.texts) > 1 else "the text"
                raise EmptyTextError(f"{which} is empty; send text to translate")
        if found.source is not UNKNOWN:
            resolve_options(request, found, self._family)
        return found

    def is_long(self, request: TranslationRequest) -> bool:
        """Whether `texts`, and the checks of the translations, take long because of the request's size."""
        chars = sum(map(len, request.texts)) + TEXT_CHARS * len(request.texts)
        if request.format is not Format.PLAIN:
            chars *= MARKUP_RATIO
        terms = chain(request.terms, *request.terms_by_source.values())
        return chars + sum(len(term.source) for term in terms) > INLINE_CHARS

    def indexes_terms(self, request: TranslationRequest) -> bool:
        """Whether `texts` may index the deployment's terms for a pair, which can take seconds."""
        return self._deployed is not None and (
            request.source_lang is None
            or not self._deployed.is_made(self._pair(request.source_lang, request.target_lang))
        )

    def texts(self, request: TranslationRequest) -> list[PreparedText]:
        """All texts as tasks, with everything that their prompts state.

        Raises:
            CallerError: See `check`; or the language of a text is not served or not detected.
        """
        self.check(request)
        own = cache(partial(_terms_of_request, request))
        return [self._text(request, *each, own) for each in enumerate(self._sources(request))]

    def _text(
        self,
        request: TranslationRequest,
        index: int,
        source: SourceLanguage,
        own: Callable[[str], Glossary | None],
    ) -> PreparedText:
        text = request.texts[index]
        if source.pair is None:
            return PreparedText(index, source, SegmentedText((), (text,)), (), source.warnings)
        resolved = resolve_options(request, source.pair, self._family)
        from_code = source.pair.source.code
        glossaries = self._glossaries(source.pair, own(from_code)) if resolved.supports_terms else ()
        warnings = (*source.warnings, *resolved.warnings)
        if request.terms_by_source and from_code not in request.terms_by_source:
            detail = f"the glossary has no terms from {from_code} to {source.pair.target.code}"
            warnings = (*warnings, Warned("glossary", detail))
        document = prepare(text, self._how(request, source.pair, resolved.options, bool(glossaries)))
        contexts = self._contexts(document, source.pair, resolved.options.context)
        tasks = []
        for segment, context in zip(document.segments, contexts, strict=True):
            terms = self._terms(segment, glossaries)
            options = resolved.options
            if terms or context != options.context:
                pairs = tuple((term.source, term.target) for term in terms)
                options = replace(options, terms=pairs, context=context)
            tasks.append(SegmentTask(segment, source.pair, options, terms, request.alternatives))
        return PreparedText(index, source, document, tuple(tasks), warnings)

    def _sources(self, request: TranslationRequest) -> Iterator[SourceLanguage]:
        texts = request.texts
        if request.source_lang is not None:
            found = self._pair(request.source_lang, request.target_lang)
            return repeat(SourceLanguage(found.source.tag, None, None if found.kept else found), len(texts))
        target = language(request.target_lang)
        if request.one_source:
            return repeat(detected(sample_of(texts), target, self._languages), len(texts))
        hint, strict = hint_of(texts), request.on_finding is OnFinding.FAIL
        return (detected(text, target, self._languages, hint, strict=strict) for text in texts)

    def _how(
        self, request: TranslationRequest, pair: Pair, options: PromptOptions, with_terms: bool
    ) -> Preparation:
        split = request.split or self._split or self._default_split()
        budget_tokens = (
            NO_SPLIT_TOKENS if split is Split.NONE else self._budget_tokens(pair, options, with_terms)
        )
        return Preparation(
            budget_tokens,
            self._counts.count_tokens,
            request.format,
            pair.source.tag,
            by_line=split in (Split.LINES, Split.SENTENCES),
            by_sentence=split in (Split.SENTENCES, Split.NO_LINES),
            ignore_tags=request.ignore_tags,
            splitting_tags=request.splitting_tags,
            non_splitting_tags=request.non_splitting_tags,
        )

    def _default_split(self) -> Split:
        small = self._counts.max_model_len <= SMALL_MODEL_TOKENS
        return Split.SENTENCES if small or self._family.by_sentence else Split.LINES

    def _segment_budget(self, pair: Pair, options: PromptOptions, with_terms: bool) -> int:
        overhead_tokens = self._counts.count_tokens(self._family.prompt("", pair, options).instruction)
        return segment_budget(
            self._counts.max_model_len,
            self._family.decoding.max_prompt_tokens,
            overhead_tokens,
            expansion_ratio(pair.source, pair.target),
            self._family.segment_tokens,
            with_terms=with_terms,
        )

    def _glossaries(self, pair: Pair, own: Glossary | None) -> tuple[Glossary, ...]:
        """The request's before the deployment's."""
        deployed = None if self._deployed is None else self._deployed.of(pair)
        return tuple(found for found in (own, deployed) if found is not None)

    def _terms(self, segment: Segment, glossaries: Sequence[Glossary]) -> tuple[Term, ...]:
        """The terms that occur in a segment, as many as fit its prompt; of two with one source the first."""
        left_tokens = int(self._counts.max_model_len * TERMS_RATIO)
        terms: dict[str, Term] = {}
        for glossary in glossaries:
            for term in glossary.applying(segment.text):
                if left_tokens <= TERM_TOKENS:
                    return tuple(terms.values())
                key = term.source.casefold()
                tokens = self._counts.count_tokens(f"{term.source} {term.target}") + TERM_TOKENS
                if key not in terms and tokens <= left_tokens:
                    terms[key] = term
                    left_tokens -= tokens
        return tuple(terms.values())

    def _contexts(self, document: SegmentedText, pair: Pair, given: str) -> Iterator[str]:
        """The context of each segment: the request's, else the beginning of its paragraph."""
        carries = not given and self._family.carries_context(pair)
        before: Segment | None = None
        for segment, between in zip(document.segments, document.between, strict=False):
            continues = carries and before is not None and SAME_PARAGRAPH.fullmatch(between)
            yield _end_of(before) if continues and before is not None else given
            before = segment


def _terms_of_request(request: TranslationRequest, source: str) -> Glossary | None:
    """The request's terms for texts from a language, by its primary subtag."""
    terms = (*request.terms, *request.terms_by_source.get(source, ()))
    return Glossary(terms) if terms else None


def _end_of(segment: Segment) -> str:
    """The last words of a segment, without markers."""
    text = " ".join(MARKER.sub(" ", segment.text).split())
    if len(text) <= CONTEXT_CHARS:
        return text
    return text[-CONTEXT_CHARS:].partition(" ")[2] or text[-CONTEXT_CHARS:]
