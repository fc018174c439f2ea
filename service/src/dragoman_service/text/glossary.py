"""Terms that have one right translation: which of them a text has, and whether a translation kept to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import regex

UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}]")
"""Letters of scripts in which a word may stand within any run of letters."""

SUFFIXING = regex.compile(r"\p{Hangul}")
"""Letters of scripts in which particles follow a word without a space."""

IN_WORD = regex.compile(r"[\p{L}\p{M}\p{N}_]")

STEM_CHARS = 4
"""Of a longer word so many letters and three quarters of it have to be there: the rest is inflection."""


@dataclass(frozen=True)
class Term:
    """One entry.

    Args:
        source: As it stands in the source language, not blank.
        target: Its translation; the same as `source` for names that stay.
        case_sensitive: Whether the source is only matched as it is written: `IT` is not `it`.
    """

    source: str
    target: str
    case_sensitive: bool = False


@dataclass(frozen=True)
class Match:
    """A term in a text.

    Args:
        term: Which.
        start: Character offset of its first character.
        end: Character offset behind its last.
    """

    term: Term
    start: int
    end: int


@dataclass(frozen=True)
class Glossary:
    """The terms of one pair of languages; made once, asked for every segment.

    Args:
        terms: Of two with the same source, the first holds.
    """

    terms: tuple[Term, ...]
    _by_source: dict[str, list[Term]] = field(init=False, repr=False, compare=False)
    _lengths: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_source: dict[str, list[Term]] = {}
        for term in self.terms:
            if term.source.strip():
                by_source.setdefault(_folded(term.source), []).append(term)
        object.__setattr__(self, "_by_source", by_source)
        object.__setattr__(
            self, "_lengths", tuple(sorted({len(source) for source in by_source}, reverse=True))
        )

    def matches(self, text: str) -> Iterator[Match]:
        """The terms of a text in order, none within another, the longest first at each place.

        Args:
            text: A segment as the model sees it, in the source language.
        """
        folded = _folded(text)
        position = 0
        while position < len(text):
            term = self._at(text, folded, position)
            if term is None:
                position += 1
                continue
            yield Match(term, position, position + len(term.source))
            position += len(term.source)

    def applying(self, text: str) -> tuple[Term, ...]:
        """The terms that a text has, each once, in the order of their first place."""
        return tuple(dict.fromkeys(match.term for match in self.matches(text)))

    def _at(self, text: str, folded: str, start: int) -> Term | None:
        for length in self._lengths:
            end = start + length
            for term in self._by_source.get(folded[start:end], ()):
                exact = not term.case_sensitive or text.startswith(term.source, start)
                if exact and _bounded(text, start, end):
                    return term
        return None


def missing(terms: Iterable[Term], translation: str) -> tuple[Term, ...]:
    """The terms whose target a translation does not have, in any case and with any endings.

    Args:
        terms: Those that apply to the segment, as `Glossary.applying` has them.
        translation: Of that segment.
    """
    folded = _folded(translation)
    return tuple(term for term in terms if not _contained(_folded(term.target).split(), folded))


def _contained(words: Sequence[str], folded: str) -> bool:
    """Whether the stems of `words` stand one after the other, each in a word of its own."""
    stems = [regex.escape(_stem(word)) + r"\w*" for word in words]
    return not stems or regex.search(r"\W+".join(stems), folded) is not None


def _stem(word: str) -> str:
    if UNSPACED.search(word) or len(word) <= STEM_CHARS:
        return word
    return word[: max(STEM_CHARS, len(word) * 3 // 4)]


def _bounded(text: str, start: int, end: int) -> bool:
    """Whether `text[start:end]` is not part of a longer word, as its script has words."""
    before = start > 0 and _joined(text[start - 1], text[start])
    after = end < len(text) and _joined(text[end - 1], text[end]) and not SUFFIXING.match(text[end - 1])
    return not before and not after


def _joined(left: str, right: str) -> bool:
    """Whether two neighbours belong to one word."""
    return all(IN_WORD.match(each) and not UNSPACED.match(each) for each in (left, right))


def _folded(text: str) -> str:
    """`text` in lower case, each character still in its place."""
    return "".join(low if len(low := character.lower()) == 1 else character for character in text)
