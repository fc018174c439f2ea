"""Terms that have one right translation: which of them a text has, and whether a translation kept to them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import regex

UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}]")
"""Letters of scripts in which a word may stand within any run of letters."""

SUFFIXING = regex.compile(r"\p{Hangul}")
"""Letters of scripts in which particles follow a word without a space."""

IN_WORD = regex.compile(r"[\p{L}\p{M}\p{N}_]")

GAP = regex.compile(r"\W++")
REST_OF_WORD = regex.compile(r"\w*+")

MAX_TERM_CHARS = 1024
"""Of a term that a caller sends. Source: DeepL's own limit, in bytes."""

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
        start: Character offset of its first character.
        end: Character offset behind its last.
    """

    term: Term
    start: int
    end: int


class _Index:
    """Terms by what they are found by, so that each place of a text costs one search however many terms there are.

    Args:
        terms: By what stands in the text in their place; made once, in time linear in their characters.
    """

    def __init__(self, terms: Mapping[str, Term]) -> None:
        self._terms = terms
        self._sorted = sorted(terms)
        self.firsts: dict[str, tuple[int, int, int]] = {}
        """First character: where its terms begin and end in `_sorted`, and the length of the longest."""
        self._prefixes: dict[str, tuple[str, ...]] = {}
        """Of each term that begins with others: those, the shortest first."""
        self._shorter: dict[str, str] = {}
        """Of each such term: the longest of those that end with a word."""
        stack: list[str] = []
        for at, term in enumerate(self._sorted):
            begin, _, longest = self.firsts.get(term[0], (at, at, 0))
            self.firsts[term[0]] = begin, at + 1, max(longest, len(term))
            while stack and not term.startswith(stack[-1]):
                stack.pop()
            if stack:
                self._prefixes[term] = tuple(stack)
                longest_prefix = stack[-1]
                ends = _ends(term, len(longest_prefix))
                shorter = longest_prefix if ends else self._shorter.get(longest_prefix)
                if shorter is not None:
                    self._shorter[term] = shorter
            stack.append(term)

    def longest(self, text: str, start: int) -> Term | None:
        """The longest term at a place where a word begins; it ends where a word does."""
        span = self.firsts.get(text[start])
        if span is None:
            return None
        begin, end, most_chars = span
        at = bisect_right(self._sorted, text[start : start + most_chars], begin, end) - 1
        if at < begin:
            return None
        # What the text has here, if anything, is this term or one that it begins with: they sort before the text, and
        # what lies between such a term and the text begins with it.
        found = self._sorted[at]
        if not text.startswith(found, start):
            prefixes = self._prefixes.get(found, ())
            # The text has all of them up to some length, and none that is longer.
            count = bisect_left(prefixes, True, key=lambda each: not text.startswith(each, start))
            if not count:
                return None
            found = prefixes[count - 1]
        if not _ends(text, start + len(found)):
            # A shorter one ends within this one, which is where it was seen already whether a word ends there.
            return self._terms.get(self._shorter.get(found, ""))
        return self._terms[found]


@dataclass(frozen=True)
class Glossary:
    """The terms of one pair of languages; built once, searched for every segment.

    Building one takes 3 s for a million terms, so it is done in a thread where they may be many; a search takes time
    linear in the text, for any terms.

    Args:
        terms: Of two with the same source, the first holds.
    """

    terms: tuple[Term, ...]
    _ranks: dict[Term, int] = field(init=False, repr=False, compare=False)
    _folded: _Index = field(init=False, repr=False, compare=False)
    _written: _Index = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ranks: dict[Term, int] = {}
        folded: dict[str, Term] = {}
        written: dict[str, Term] = {}
        for term in self.terms:
            if term.source.strip():
                ranks.setdefault(term, len(ranks))
                if term.case_sensitive:
                    written.setdefault(term.source, term)
                else:
                    folded.setdefault(_folded(term.source), term)
        object.__setattr__(self, "_ranks", ranks)
        object.__setattr__(self, "_folded", _Index(folded))
        object.__setattr__(self, "_written", _Index(written))

    def matches(self, text: str) -> Iterator[Match]:
        """The terms of a text in order, none within another, the longest first at each place.

        Args:
            text: A segment as the model sees it, in the source language.
        """
        folded = _folded(text)
        position = 0
        for start, (low, written) in enumerate(zip(folded, text, strict=True)):
            if start < position or not (low in self._folded.firsts or written in self._written.firsts):
                continue
            term = self._at(text, folded, start)
            if term is not None:
                position = start + len(term.source)
                yield Match(term, start, position)

    def applying(self, text: str) -> tuple[Term, ...]:
        """The terms that a text has, each once, in the order of their first place."""
        return tuple(dict.fromkeys(match.term for match in self.matches(text)))

    def _at(self, text: str, folded: str, start: int) -> Term | None:
        if start and _joined(text[start - 1], text[start]):
            return None
        found = [self._folded.longest(folded, start), self._written.longest(text, start)]
        return min(
            (term for term in found if term is not None),
            key=lambda term: (-len(term.source), self._ranks[term]),
            default=None,
        )


def missing(terms: Iterable[Term], translation: str) -> tuple[Term, ...]:
    """The terms whose target a translation does not have, in any case and with any endings.

    Args:
        terms: Those that apply to the segment, as `Glossary.applying` has them.
        translation: Of that segment.
    """
    folded = _folded(translation)
    return tuple(term for term in terms if not _contained(_stems(_folded(term.target)), folded))


def _stems(target: str) -> list[str]:
    """Of its words; the signs before a word, and words of signs alone, are not looked for but before the first."""
    first, *others = target.split() or [""]
    return [_stem(first), *filter(None, (_stem(GAP.sub("", word, count=1)) for word in others))]


def _contained(stems: Sequence[str], folded: str) -> bool:
    """Whether `stems` stand one after the other, each in a word of its own."""
    first, *others = stems
    position = folded.find(first)
    while position >= 0:
        end = _word_end(folded, position + len(first))
        if not others or _follow(others, folded, end):
            return True
        position = folded.find(first, end)
    return False


def _follow(stems: Iterable[str], folded: str, position: int) -> bool:
    for stem in stems:
        gap = GAP.match(folded, position)
        if gap is None or not folded.startswith(stem, gap.end()):
            return False
        position = _word_end(folded, gap.end() + len(stem))
    return True


def _word_end(text: str, position: int) -> int:
    found = REST_OF_WORD.match(text, position)
    return position if found is None else int(found.end())


def _stem(word: str) -> str:
    if UNSPACED.search(word) or len(word) <= STEM_CHARS:
        return word
    return word[: max(STEM_CHARS, len(word) * 3 // 4)]


def _ends(text: str, end: int) -> bool:
    """Whether a word ends before `end`, as its script has words."""
    return (
        end >= len(text)
        or not _joined(text[end - 1], text[end])
        or SUFFIXING.match(text[end - 1]) is not None
    )


def _joined(left: str, right: str) -> bool:
    """Whether two neighbours belong to one word."""
    return _is_spaced(left) and _is_spaced(right)


@lru_cache(maxsize=8192)
def _is_spaced(character: str) -> bool:
    """Whether it is part of a word of a script that has spaces between words."""
    return IN_WORD.match(character) is not None and not UNSPACED.match(character)


def _folded(text: str) -> str:
    """`text` in lower case, each character still in its place."""
    low = text.lower()
    # In other texts a character's lower case depends on its neighbours, or is two.
    if len(low) == len(text) and "\N{GREEK CAPITAL LETTER SIGMA}" not in text:
        return low
    return "".join(low if len(low := character.lower()) == 1 else character for character in text)
