"""Cuts long texts into segments that fit the model; joined, they are the text, byte for byte.

Lines first, then sentences, then clauses, words and characters, each only where the larger unit is over
the budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import regex
import sentencex  # type: ignore[import-untyped]

LINE = regex.compile(r"[^\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+|[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")
CLAUSE = regex.compile(r"[^,;:،؛、，；：—–]*+(?:[,;:،؛、，；：—–]++\s*+)?+")
WORD = regex.compile(r"\S++\s*+|\s++")
GRAPHEME = regex.compile(r"\X")
LETTER = regex.compile(r"\p{L}")

CountTokens = Callable[[str], int]
"""Tokens of a text. Cutting must not make fewer of them, as holds for tokenizers in all but rare cases:
`count(a + b) <= count(a) + count(b)`. ASCII text has at most a token for each character, and one more."""


@dataclass(frozen=True)
class Segments:
    """The segments of a text, and the separators between them.

    Args:
        texts: Segments in order; none is blank, none begins or ends with white space.
        separators: What stands before, between and after them; one more than `texts`.
    """

    texts: tuple[str, ...]
    separators: tuple[str, ...]


def has_letters(text: str) -> bool:
    """Whether there is text to translate, more than numbers, signs and white space."""
    return LETTER.search(text) is not None


def split(
    text: str,
    budget_tokens: int,
    count_tokens: CountTokens,
    *,
    lang: str = "en",
    by_line: bool = True,
    by_sentence: bool = False,
    atom: str | None = None,
) -> Segments:
    """Cut a text into segments of at most `budget_tokens`.

    Args:
        text: Any text, up to megabytes.
        budget_tokens: Maximum of a segment, at least 1. Only a single character can exceed it.
        count_tokens: See `CountTokens`.
        lang: BCP-47 tag of the text, for its sentences.
        by_line: Whether a line break always ends a segment.
        by_sentence: Whether each sentence is a segment of its own; otherwise as many as fit go together,
            so that the model sees the context.
        atom: Pattern of what is never cut, such as markers; it contains no white space. With one, pieces without
            letters are segments, too.

    Returns:
        Segments that, joined with their separators, are `text`.
    """
    character = regex.compile(rf"{atom}|\X") if atom else GRAPHEME
    lines: Iterable[str] = LINE.findall(text) if by_line else (text,)
    cut = _Cut(max(1, budget_tokens), count_tokens, lang, character)
    pieces = [piece for line in lines for piece in cut.line(line, by_sentence)]
    return _arranged(pieces, bool if atom else has_letters)


@dataclass(frozen=True)
class _Cut:
    """How `split` cuts pieces."""

    budget_tokens: int
    count_tokens: CountTokens
    lang: str
    character: regex.Pattern[str]

    def line(self, line: str, by_sentence: bool) -> Iterator[str]:
        if not line.strip():
            yield line
        elif by_sentence:
            for sentence in sentences(line, self.lang):
                yield from self._finer(sentence, 1)
        else:
            yield from self._finer(line, 0)

    def _finer(self, piece: str, level: int) -> Iterator[str]:
        """`piece` itself if it fits, else its parts by finer cuts."""
        if self._fits(piece.strip()):
            yield piece
        elif level == 0:
            yield from self._packed(sentences(piece, self.lang), 1)
        elif level == 1:
            yield from self._packed([part for part in CLAUSE.findall(piece) if part], 2)
        elif level == 2:
            yield from self._halves(WORD.findall(piece))
        else:
            yield from self._halves(self._characters(piece))

    def _fits(self, text: str) -> bool:
        if len(text) < self.budget_tokens and text.isascii():
            return True  # Most segments: the engine tokenizes them when it gets them.
        return self.count_tokens(text) <= self.budget_tokens

    def _packed(self, parts: Sequence[str], level: int) -> Iterator[str]:
        """Join parts up to the budget; a part over the budget is cut at `level`."""
        pack: list[str] = []
        room = self.budget_tokens
        for part in parts:
            tokens = self.count_tokens(part)
            if tokens > room and pack:
                yield "".join(pack)
                pack, room = [], self.budget_tokens
            if tokens > self.budget_tokens:
                yield from self._finer(part, level)
            else:
                pack.append(part)
                room -= tokens
        if pack:
            yield "".join(pack)

    def _halves(self, units: Sequence[str]) -> Iterator[str]:
        """Halved until it fits: far fewer counts than packing words one by one."""
        piece = "".join(units)
        if self._fits(piece.strip()):
            yield piece
        elif len(units) > 1:
            middle = len(units) // 2
            yield from self._halves(units[:middle])
            yield from self._halves(units[middle:])
        else:
            characters = self._characters(piece)
            if len(characters) > 1:
                yield from self._halves(characters)
            else:
                yield piece

    def _characters(self, piece: str) -> list[str]:
        return [found[0] for found in self.character.finditer(piece)]


def _arranged(pieces: Iterable[str], translatable: Callable[[str], bool]) -> Segments:
    texts: list[str] = []
    separators: list[list[str]] = [[]]
    for piece in pieces:
        text = piece.strip()
        if not text or not translatable(text):
            separators[-1].append(piece)
            continue
        start = piece.index(text)
        separators[-1].append(piece[:start])
        texts.append(text)
        separators.append([piece[start + len(text) :]])
    return Segments(tuple(texts), tuple("".join(between) for between in separators))


WINDOW_CHARS = 2000
"""sentencex 1.0 takes time quadratic in what it is given where sentences end without a space (Chinese:
6 s for 100,000 characters); windows of this length bound that at 0.2 s."""

SENTENCE_END = regex.compile(r"[^.!?…。！？।॥؟۔።]*+(?:[.!?…。！？।॥؟۔።]++[\"'”’»」』)\]]*+\s*+|\Z)")
"""For text that sentencex refuses or would not give back whole."""


def sentences(text: str, lang: str = "en") -> list[str]:
    """The sentences of a text, joined equal to it, in linear time; an unknown language has English rules.

    Returns:
        Sentences with the blanks that follow them. A sentence longer than two windows may be cut within.
    """
    return list(_windowed(text, lang.split("-")[0].lower()))


def _windowed(text: str, lang: str) -> Iterator[str]:
    start = 0
    while len(text) - start > WINDOW_CHARS:
        found = _library(text[start : start + WINDOW_CHARS], lang)
        whole = found[:-1] if len(found) > 1 else found  # the last may go on in the next window
        yield from whole
        start += sum(map(len, whole))
    if start < len(text):
        yield from _library(text[start:], lang)


def _library(text: str, lang: str) -> list[str]:
    try:
        found: list[str] = list(sentencex.segment(lang, text))
    except UnicodeEncodeError:  # a lone surrogate, which JSON can carry
        found = []
    if "".join(found) != text:
        found = SENTENCE_END.findall(text)
    return [sentence for sentence in found if sentence]
