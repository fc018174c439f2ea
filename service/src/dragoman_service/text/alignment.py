"""Finds which part of a translation belongs to a part of the source.

It compares equal words, then a translation of the part alone; between known positions it interpolates by length.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import regex

from dragoman_service.text.untagged import Untagged

_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
_LETTER = rf"(?!{_UNSPACED})[\p{{L}}\p{{M}}\p{{N}}]"
WORDS = regex.compile(rf"{_LETTER}(?:(?:['’\-](?=[\p{{L}}\p{{N}}]))?+{_LETTER})*+|\S\p{{M}}*+")
"""Words; characters in scripts that write no blanks between words, and of all that is no word."""
CHARACTERS = regex.compile(r"\S\p{M}*+")

MAX_TOKENS = 40
"""Of a part that is searched for; a longer one is placed by what is around it."""

MIN_MATCH = 0.5
"""How much of a part's own translation must be in a place of the whole one."""

SELF_EVIDENT_CHARS = 4
"""A shorter word of the source may be another one of the target language, such as "die" or "a"."""

Range = tuple[int, int]
"""Tokens, from and up to."""
Known = tuple[int, int]
"""A boundary between tokens of the source, and the same one in the translation; n is before token n."""


@dataclass(frozen=True)
class Token:
    """A word, character or placeholder, from character `start` to `end`."""

    text: str
    start: int
    end: int

    @property
    def is_word(self) -> bool:
        """Whether it is more than punctuation."""
        return self.text[0].isalnum() or len(self.text) > 1


class TokenizedText:
    """A text as tokens."""

    def __init__(self, tokens: Iterable[Token]) -> None:
        self.all = tuple(tokens)
        self.words = [token.text.casefold() for token in self.all]
        self.starts = [token.start for token in self.all]
        self.ends = [token.end for token in self.all]
        self.lengths = [0, *accumulate(len(token.text) for token in self.all)]
        """Characters before each token, and of all."""

    def __len__(self) -> int:
        return len(self.all)

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """The positions of each word."""
        places: dict[str, list[int]] = {}
        for index, word in enumerate(self.words):
            places.setdefault(word, []).append(index)
        return places


def tokens_of(text: Untagged, pattern: regex.Pattern[str] = WORDS) -> TokenizedText:
    """The tokens of a text; a placeholder is one, and a tag ends one."""
    cuts = sorted({tag.start for tag in text.tags})
    tokens: list[Token] = []

    def add(start: int, end: int) -> None:
        bounds = [start, *cuts[bisect_right(cuts, start) : bisect_left(cuts, end)], end]
        for first, after in pairwise(bounds):
            tokens.extend(Token(each[0], *each.span()) for each in pattern.finditer(text.text, first, after))

    position = 0
    for place in text.placeholders:
        add(position, place.start)
        if place.end > place.start:
            tokens.append(Token(text.text[place.start : place.end], place.start, place.end))
        position = place.end
    add(position, len(text.text))
    return TokenizedText(tokens)


def trimmed(source: TokenizedText, part: Range, target: TokenizedText, found: Range) -> Range:
    """A range of the translation without punctuation at its ends that the source part does not have."""
    first, after = found
    if source.all[part[0]].is_word:
        while after - first > 1 and not target.all[first].is_word:
            first += 1
    if source.all[part[1] - 1].is_word:
        while after - first > 1 and not target.all[after - 1].is_word:
            after -= 1
    return first, after


def same_words(source: TokenizedText, part: Range, target: TokenizedText, within: Range) -> Range | None:
    """The range of the translation with the same words as the part, nearest to the expected position."""
    words = source.words[part[0] : part[1]]
    size = len(words)
    if size == 1 and not is_evident(words[0]):
        return None
    starts = [
        start
        for start in target.places.get(words[0], ())
        if within[0] <= start <= within[1] - size and target.words[start : start + size] == words
    ]
    expected = part[0] / len(source) * len(target)
    start = min(starts, key=lambda each: abs(each - expected), default=None)
    return None if start is None else (start, start + size)


def same_meaning(
    part: Range, source: TokenizedText, hint: str, target: TokenizedText, within: Range
) -> Range | None:
    """The range with most words, or inflected forms, of `hint`, the translation of the part alone."""
    wanted = [each.casefold() for each in WORDS.findall(hint)][:MAX_TOKENS]
    while wanted and source.all[part[1] - 1].is_word and not wanted[-1][0].isalnum():
        wanted.pop()
    if not wanted:
        return None
    forms = set(wanted)
    chars = sum(map(len, wanted))
    alike = {
        word: max(likeness(word, form) * len(form) for form in forms) / chars
        for word in set(target.words[within[0] : within[1]])
    }
    values = [alike[word] for word in target.words[within[0] : within[1]]]
    sums = [0.0, *accumulate(values)]
    expected = part[0] / len(source) * len(target)
    best: tuple[float, Range] | None = None
    for size in range(1, len(wanted) + 2):
        for start in range(len(values) - size + 1):
            if not (values[start] and values[start + size - 1]):
                continue
            match = sums[start + size] - sums[start] - 0.1 * abs(size - len(wanted)) / len(wanted)
            place = within[0] + start
            score = match - 0.2 * abs(place - expected) / len(target)
            if match >= MIN_MATCH and (best is None or score > best[0]):
                best = score, (place, place + size)
    return best[1] if best else None


def likeness(one: str, other: str) -> float:
    """Similarity of two words: 1 if equal, less for a common prefix or suffix, as inflected forms have."""
    if one == other:
        return 1.0 if one[0].isalnum() else 0.5
    longest, shortest = max(len(one), len(other)), min(len(one), len(other))
    if shortest < 3:
        return 0.0
    start = next((index for index in range(shortest) if one[index] != other[index]), shortest)
    end = next((index for index in range(shortest) if one[-1 - index] != other[-1 - index]), shortest)
    share = max(start, end) / longest
    return share if share >= 0.5 else 0.0


def is_evident(word: str) -> bool:
    """Whether a word that is in source and translation is the same one."""
    return len(word) >= SELF_EVIDENT_CHARS or not word.isalpha()


def common(source: TokenizedText, target: TokenizedText) -> list[Known]:
    """Boundaries of tokens that both texts have once (names, numbers, placeholders), and of their last punctuation."""
    times = Counter(source.words)
    known: list[Known] = []
    for index, word in enumerate(source.words):
        places = target.places.get(word, ())
        if times[word] == 1 and len(places) == 1 and is_evident(word):
            known += [(index, places[0]), (index + 1, places[0] + 1)]
    if len(source) and len(target) and not (source.all[-1].is_word or target.all[-1].is_word):
        known.append((len(source) - 1, len(target) - 1))
    return known


class Scale:
    """Boundaries of a part's tokens in its translation: those that are known, and others in proportion to lengths.

    Args:
        part: A part of the source.
        within: Its place in the translation.
        known: Those that do not rise on both sides are left out.
    """

    def __init__(
        self, source: TokenizedText, part: Range, target: TokenizedText, within: Range, known: Iterable[Known]
    ) -> None:
        inside = {each for each in known if part[0] < each[0] < part[1] and within[0] < each[1] < within[1]}
        rising = [(part[0], within[0])]
        for each in sorted(inside):
            if each[0] > rising[-1][0] and each[1] >= rising[-1][1]:
                rising.append(each)
        rising.append((part[1], within[1]))
        self._known = rising
        self._source, self._target, self._within = source, target, within

    def at(self, index: int) -> int:
        """The boundary before token `index` of the source."""
        return round(self._exact(index))

    def range(self, part: Range) -> Range:
        """The range of a part, at least one token."""
        start, end = self._exact(part[0]), self._exact(part[1])
        first, after = round(start), round(end)
        if after <= first:
            first = max(min(int((start + end) / 2), self._within[1] - 1), self._within[0])
            after = first + 1
        return first, after

    def _exact(self, index: int) -> float:
        place = bisect_right(self._known, index, key=lambda each: each[0])
        if place == 0 or place == len(self._known):
            return self._known[0 if place == 0 else -1][1]
        (before, first), (behind, after) = self._known[place - 1], self._known[place]
        share = _share(self._source.lengths, before, index, behind)
        lengths = self._target.lengths
        wanted = lengths[first] + share * (lengths[after] - lengths[first])
        token = min(max(bisect_right(lengths, wanted) - 1, first), after)
        if token >= after:
            return after
        return token + (wanted - lengths[token]) / (lengths[token + 1] - lengths[token])


def _share(lengths: Sequence[int], first: int, index: int, after: int) -> float:
    return (lengths[index] - lengths[first]) / ((lengths[after] - lengths[first]) or 1)


Hints = Mapping[str, str]
"""Translations of parts of a text, each made alone."""
