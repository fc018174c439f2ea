"""Lines of a PDF's pages to paragraphs, by their places and sizes; pure, and linear in the number of lines.

A PDF has glyphs at places and no paragraphs. The lines come in the order in which the file draws them, which is the
order of reading in what word processors and typesetters write, columns included.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

SAME_HEIGHT = 0.12
"""Heights of lines of one paragraph differ by less than this share."""
MAX_LEADING = 1.7
"""Distance of the baselines of a paragraph's lines, in heights: one and a half lines, and a little."""
MAX_OFF_CENTRE = 0.4
LEADING_CHANGE = 1.2
MAX_INDENT = 4.0
"""Of a first line, in heights."""
SHORT_LINE = 0.8
"""A line that ends a sentence and takes less than this share of the paragraph's width ends the paragraph."""
FULL_LINE = 0.5
"""A line that ends so near to the column's edge, in heights, is not its paragraph's last."""
HEADING = 1.15
"""A line this many times as high as most of the text is a heading."""
REPEATED_PAGES = 2
"""A first or last line of so many pages, numbers aside, is a running header or footer."""
MAX_LEVELS = 3
MAX_RUNNING_CHARS = 200

MIN_BLANK, MAX_BLANK = 0.12, 0.6
"""Between a superscript and the next word, in heights of a line."""

BULLET = re.compile(r"[•‣▪▫◦●○■□–—➢✓]\s*|(?:\d{1,3}|[a-zA-Z])[.)]\s+")
SENTENCE_END = re.compile(r"[.!?:;…。！？।۔؟][\"'”’»)\]]*$")
HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]$")
WITHOUT_SPACES = (
    "CJK",
    "HIRAGANA",
    "KATAKANA",
    "THAI",
    "LAO",
    "KHMER",
    "MYANMAR",
    "IDEOGRAPHIC",
    "FULLWIDTH",
)
"""Beginnings of the names of characters between which a line break is no space."""


class Line(NamedTuple):
    """A line of text; lengths in points from the page's lower left corner.

    Args:
        height: Of its font.
        is_cell: Whether a wide gap divides it from text beside it, as in a table.
    """

    text: str
    left: float
    right: float
    bottom: float
    height: float
    is_bold: bool = False
    is_cell: bool = False


class Block(NamedTuple):
    """A paragraph of the translated document.

    Args:
        level: Of a heading, from 1; 0 for a paragraph.
        breaks_page: Whether it is the first of its page.
    """

    text: str
    level: int = 0
    is_bold: bool = False
    breaks_page: bool = False


@dataclass
class _Paragraph:
    lines: list[Line]
    starts_page: bool
    is_margin: bool = False
    column_start: int = 0

    @property
    def last(self) -> Line:
        return self.lines[-1]

    def goes_on_with(self, line: Line) -> bool:
        """Whether a line of the same page belongs to it."""
        lines, start = self.lines, self.column_start
        number = len(lines) - start
        first, last = lines[start], lines[-1]
        height = max(last.height, 1.0)
        leading = last.bottom - line.bottom
        if not _is_alike(last, line) or not 0.3 * height < leading <= MAX_LEADING * height:
            return False
        if BULLET.match(line.text) or line.is_cell or last.is_cell:
            return False
        if number > 1 and leading > LEADING_CHANGE * max(lines[-2].bottom - last.bottom, height):
            return False
        left = lines[start + min(1, number - 1)].left
        shift = line.left - left
        is_centred = abs(line.left + line.right - last.left - last.right) < MAX_OFF_CENTRE * height
        if abs(shift) > 0.5 * height and not is_centred:
            # The first line may begin further to the right, or, behind a bullet, further to the left.
            is_hanging = BULLET.match(first.text) is not None
            if number > 1 or abs(shift) > MAX_INDENT * height or (shift > 0 and not is_hanging):
                return False
        above = lines[max(start, len(lines) - 3) :]
        width = max(line.right, *(each.right for each in above)) - min(line.left, left)
        is_short = last.right - last.left < SHORT_LINE * width
        return not (is_short and SENTENCE_END.search(last.text))

    def go_over_to(self, line: Line) -> None:
        """Add the first line of the next column or page."""
        self.column_start = len(self.lines)
        self.lines.append(line)

    def goes_over_to(self, line: Line) -> bool:
        """Whether a line at the top of the next column or page belongs to it."""
        if not _is_alike(self.last, line) or self.last.is_cell or line.is_cell or BULLET.match(line.text):
            return False
        others = self.lines[max(self.column_start, len(self.lines) - 4) : -1]
        if others and self.last.right > max(each.right for each in others) - FULL_LINE * self.last.height:
            return True
        return SENTENCE_END.search(self.last.text) is None and line.text[:1].islower()

    @property
    def text(self) -> str:
        """Its lines as one, with the hyphens of line breaks removed."""
        parts: list[str] = []
        for line in self.lines:
            if parts:
                parts[-1:] = _joined(parts[-1], line.text)
            parts.append(line.text)
        return "".join(parts)


def blocks(pages: Iterable[Sequence[Line]]) -> list[Block]:
    """The paragraphs of a document.

    Running headers and footers are paragraphs where they are found first; later ones, and page numbers, are left out.

    Args:
        pages: Their lines, each with text.
    """
    every = [_whole(page) for page in pages]
    usual = _usual_height(line for page in every for line in page)
    running = _Running(every, HEADING * usual)
    found: list[_Paragraph] = []
    for number, page in enumerate(every):
        body, margins = running.divided(number, page)
        before = found[-1] if found and not found[-1].is_margin else None
        found += [_Paragraph([line], not place, is_margin=True) for place, line in enumerate(margins)]
        current: _Paragraph | None = None
        for line in body:
            if current is not None and current.goes_on_with(line):
                current.lines.append(line)
                continue
            previous = current or before
            jumps = current is None or line.bottom > current.last.bottom
            if previous is not None and jumps and previous.goes_over_to(line):
                current = previous
                current.go_over_to(line)
                continue
            current = _Paragraph([line], starts_page=current is None and not margins)
            found.append(current)
    return _described(found, usual)


def _whole(page: Iterable[Line]) -> list[Line]:
    """The lines of a page, each as one, also if a superscript or a subscript divides it."""
    found: list[Line] = []
    for line in page:
        before = found[-1] if found else None
        if before is None or not _is_beside(before, line):
            found.append(line)
            continue
        blank = " " if line.left - before.right > MIN_BLANK * line.height else ""
        longer = max(before, line, key=lambda each: len(each.text))
        text = f"{before.text}{blank}{line.text}"
        found[-1] = longer._replace(text=text, left=before.left, right=line.right)
    return found


def _is_beside(before: Line, line: Line) -> bool:
    """Whether a line goes on, at about the same height, where another ends."""
    if before.is_cell or line.is_cell:
        return False
    smaller, larger = sorted((before.height, line.height))
    top = min(before.bottom + before.height, line.bottom + line.height)
    overlap = top - max(before.bottom, line.bottom)
    return overlap > 0.5 * smaller and -0.2 * larger < line.left - before.right < MAX_BLANK * larger


def _usual_height(lines: Iterable[Line]) -> float:
    """That of most of the text."""
    sizes: Counter[float] = Counter()
    for line in lines:
        sizes[round(line.height)] += len(line.text)
    return max(sizes, key=lambda size: sizes[size], default=0.0)


def _described(paragraphs: Sequence[_Paragraph], usual: float) -> list[Block]:
    heights = {round(paragraph.lines[0].height) for paragraph in paragraphs}
    larger = sorted((height for height in heights if height > HEADING * usual), reverse=True)
    levels = {height: min(number, MAX_LEVELS) for number, height in enumerate(larger, 1)}
    return [
        Block(
            paragraph.text,
            levels.get(round(paragraph.lines[0].height), 0),
            all(line.is_bold for line in paragraph.lines),
            paragraph.starts_page and number > 0,
        )
        for number, paragraph in enumerate(paragraphs)
    ]


def _is_alike(one: Line, other: Line) -> bool:
    larger = max(one.height, other.height)
    return abs(one.height - other.height) <= SAME_HEIGHT * larger and one.is_bold == other.is_bold


def _joined(text: str, line: str) -> tuple[str, ...]:
    """A line, and what stands between it and the next one; a word that a hyphen divides is whole again."""
    if HYPHEN.search(text):
        # Before a capital, and before a digit, it is a hyphen of the word.
        return (text[:-1] if line[:1].islower() else text,)
    if _has_no_spaces(text[-1]) and _has_no_spaces(line[0]):
        return (text,)
    return text, " "


def _has_no_spaces(character: str) -> bool:
    return unicodedata.name(character, "").startswith(WITHOUT_SPACES)


class _Running:
    """Headers, footers and page numbers: lines at the ends of pages that repeat at the same place.

    Args:
        pages: The lines of each.
        max_height: A higher one is a title.
    """

    def __init__(self, pages: Sequence[Sequence[Line]], max_height: float) -> None:
        self._max_height = max_height
        counts = Counter(
            key
            for number, page in enumerate(pages)
            for key in {key for line in self._ends(page) for key in _keys(line, number)}
        )
        self._repeated = {key for key, count in counts.items() if count >= REPEATED_PAGES}
        self._seen: set[tuple[str, int]] = set()

    def divided(self, number: int, page: Sequence[Line]) -> tuple[list[Line], list[Line]]:
        """The lines of the text, and the headers and footers that no earlier page has."""
        ends = {id(line): _keys(line, number) & self._repeated for line in self._ends(page)}
        body = [line for line in page if not ends.get(id(line))]
        margins = []
        for line in page:
            keys = ends.get(id(line))
            if keys and not keys & self._seen and any(map(str.isalpha, line.text)):
                margins.append(line)
            self._seen |= keys or set()
        return body, margins

    def _ends(self, page: Sequence[Line]) -> list[Line]:
        """The two highest and the two lowest lines of a page."""
        ordered = sorted(page, key=lambda line: line.bottom)
        return [line for line in {*ordered[:2], *ordered[-2:]} if line.height <= self._max_height]


def _keys(line: Line, number: int) -> set[tuple[str, int]]:
    """What is equal on the pages of a running line.

    Its text, or that with its first or last number counted from the page's own: chapters are not counted by pages, so
    that "Chapter 2" is another line than "Chapter 1".
    """
    text = line.text[:MAX_RUNNING_CHARS]
    keys = {(text, round(line.bottom))}
    numbers = list(re.finditer(r"[0-9]{1,5}", text))
    for each in numbers[:1] + numbers[-1:]:
        keys.add((f"{text[: each.start()]}#{int(each[0]) - number}#{text[each.end() :]}", round(line.bottom)))
    return keys
