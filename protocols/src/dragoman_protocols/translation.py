"""Requests and results of translations, as values that are the same for all APIs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from dragoman_protocols.glossaries.matching import Term


class Format(StrEnum):
    """How a text is written."""

    PLAIN = "plain"
    HTML = "html"
    XML = "xml"


class Formality(StrEnum):
    """The tone of a translation, where the target language has one."""

    DEFAULT = "default"
    MORE = "more"
    LESS = "less"
    PREFER_MORE = "prefer_more"
    """As `MORE`, but silently dropped where it cannot be had."""
    PREFER_LESS = "prefer_less"


class Split(StrEnum):
    """What may end a segment of plain text."""

    LINES = "lines"
    """Line breaks, and sentences where a line is too long for the model: the layout stays as it is."""
    SENTENCES = "sentences"
    """Each sentence by itself, as small models want it."""
    NO_LINES = "no-lines"
    """Sentences; a line break is white space within one."""
    NONE = "none"
    """Nothing: a text that does not fit the model as a whole is refused."""


class OnFinding(StrEnum):
    """What a finding of a guard leads to, after the retry."""

    FLAG = "flag"
    FAIL = "fail"


@dataclass(frozen=True)
class TranslationRequest:
    """Texts of one pair of languages, and the options of their translation.

    Args:
        texts: At least one; answered in this order.
        target_lang: BCP-47 tag of the translations.
        source_lang: BCP-47 tag of the texts; None detects it, text by text.
        split: What may end a segment of plain text; None leaves it to the deployment's setting.
        terms: The caller's glossary; wins over the deployment's.
        terms_by_source: The same where the source is detected, by its primary subtag; empty: there are no such terms.
        memory: Translations that are taken instead of generating them, by the `segment_key` of what they translate.
        context: Text that helps to understand and is not translated.
        instructions: Instructions to the model, in words.
        alternatives: Further translations of each text, 0 to 9.
        ignore_tags: Elements that are not translated.
        splitting_tags: Elements that always end a segment.
        non_splitting_tags: Elements that never end one.
        ignore_unsupported: Whether an option that the model's family does not support is dropped with a warning
            rather than refused.
        timeout_s: Time limit in seconds; at most, and by default, the deployment's own.
        one_source: Whether a language that is detected is that of all texts together.
    """

    texts: tuple[str, ...]
    target_lang: str
    source_lang: str | None = None
    format: Format = Format.PLAIN
    split: Split | None = None
    terms: tuple[Term, ...] = ()
    terms_by_source: Mapping[str, tuple[Term, ...]] = field(default_factory=dict, hash=False)
    memory: Mapping[str, str] = field(default_factory=dict, hash=False)
    formality: Formality = Formality.DEFAULT
    context: str = ""
    instructions: tuple[str, ...] = ()
    alternatives: int = 0
    ignore_tags: frozenset[str] = frozenset()
    splitting_tags: frozenset[str] = frozenset()
    non_splitting_tags: frozenset[str] = frozenset()
    ignore_unsupported: bool = False
    on_finding: OnFinding = OnFinding.FLAG
    timeout_s: float | None = None
    one_source: bool = False


@dataclass(frozen=True)
class Warned:
    """Something a caller should know about a translation that was given all the same.

    Args:
        code: Stable name: a guard's, `glossary` for terms that are not there, `tags_aligned` for a segment
            whose tags were put back by alignment, `source_kept` for one whose source text was kept,
            `option_ignored` for an option that is not supported, `source_uncertain` for a language that is a guess,
            `target_language` for a text that was returned unchanged as it is in that language.
        detail: In words that repeat nothing of the texts.
        segment: Index of the segment it is about, or None for the whole.
    """

    code: str
    detail: str
    segment: int | None = None


@dataclass(frozen=True)
class TranslationResult:
    """One text's translation.

    Args:
        text: The translation, in the format of the source.
        source_lang: BCP-47 tag of the source, as given or as detected; `und` for a text without letters.
        confidence: Of the detection, 0 to 1; None where the source language was given.
        alternatives: Further translations, as many as requested or as there are different ones.
        warnings: What a caller should know.
        segments: How many segments it was made of.
        prompt_tokens: Tokens that the engine read for it.
        output_tokens: Tokens that the engine wrote for it.
        from_memory: How many of its segments are the translation memory's.
    """

    text: str
    source_lang: str
    confidence: float | None = None
    alternatives: tuple[str, ...] = ()
    warnings: tuple[Warned, ...] = ()
    segments: int = 1
    prompt_tokens: int = 0
    output_tokens: int = 0
    from_memory: int = 0


@dataclass(frozen=True)
class Delta:
    """A piece of a streamed translation.

    Args:
        index: Of the text, as in the request.
        text: What follows what came before of this text.
        result: Set on a text's last delta: the whole, with what is known of it.
    """

    index: int
    text: str
    result: TranslationResult | None = None


UNDETERMINED = "und"


def not_blank(texts: Iterable[str]) -> tuple[str, ...]:
    """Those that are translated."""
    return tuple(text for text in texts if text.strip())


def put_back(
    texts: Sequence[str], results: Iterable[TranslationResult], source_lang: str | None
) -> list[TranslationResult]:
    """The results, and between them the blank texts as they were.

    Args:
        texts: All.
        results: Of those of them that are not blank, in the same order.
        source_lang: Of the request; None: detected.
    """
    coming = iter(results)
    return [
        next(coming) if text.strip() else TranslationResult(text, source_lang or UNDETERMINED, segments=0)
        for text in texts
    ]
