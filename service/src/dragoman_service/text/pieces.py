"""Parts of a segment: text, and markers that replace what must not be translated."""

from __future__ import annotations

import html as html_entities
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain

import regex

from dragoman_service.text.placeholders import placeholders


class Role(StrEnum):
    """The role of a marker: a single one replaces something, a pair wraps text."""

    ALONE = "alone"
    OPEN = "open"
    CLOSE = "close"


@dataclass(frozen=True)
class Marker:
    """A marker in a text.

    Args:
        number: From 1; both ends of a pair share it.
        start: Character offset of its first character.
        end: Character offset behind its last.
    """

    role: Role
    number: int
    start: int
    end: int


MARKER_FORMS = {Role.ALONE: "<x{n}/>", Role.OPEN: "<x{n}>", Role.CLOSE: "</x{n}>"}
"""Models that saw markup copy tags well."""

MARKER_PATTERN = (
    r"<\s{0,2}(?P<close>/)?\s{0,2}[xX]\s?(?P<number>[0-9٠-٩۰-۹०-९০-৯０-９]{1,6})\s{0,2}(?P<alone>/)?\s{0,2}>"
)
"""What is read as a marker in a model's answer, a little more than is written."""

MARKER = regex.compile(MARKER_PATTERN)

MARKER_START = "<"

RESERVED = frozenset("<>")
"""Characters that markers begin and end with."""


def marker_text(role: Role, number: int) -> str:
    """The text of a marker."""
    return MARKER_FORMS[role].format(n=number)


def markers_in(text: str) -> Iterator[Marker]:
    """The markers in a text, in order."""
    for found in MARKER.finditer(text):
        yield Marker(_role_of(found), int(found["number"]), found.start(), found.end())


def _role_of(found: regex.Match[str]) -> Role:
    if found["close"] is not None:
        return Role.CLOSE
    return Role.OPEN if found["alone"] is None else Role.ALONE


BREAKS = regex.compile(r" *+[\t\n\f\r][ \t\n\f\r]*+")
"""What HTML shows as one blank."""

ENTITY = regex.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z_:][\w.:\-]{0,63}+);")

SIGN = regex.compile(rf"{ENTITY.pattern}|[{regex.escape(''.join(sorted(RESERVED)))}]")
"""What cannot stand in a segment as it is: entities, and what markers are made of."""

XML_ENTITIES = frozenset({"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"})

SHOWN_ASCII = frozenset("&\"'")
"""ASCII characters that an entity may show as; the others could make up a marker or a blank."""


@dataclass(frozen=True)
class Piece:
    """A part of a segment.

    Args:
        shown: What the model sees of a text; of a marker, what it stands for in a translation, mostly `raw`.
        raw: As the source has it.
        role: None for text.
        kind: `text`, `tag`, or the kind of a placeholder.
        pair: The same on both tags of a pair; 0 on all else.
    """

    shown: str
    raw: str
    role: Role | None = None
    kind: str = "text"
    pair: int = 0

    @property
    def is_moved(self) -> bool:
        """Whether it is a tag that stands elsewhere in the source, or a placeholder from which one was moved."""
        return self.role is not None and self.raw != self.shown

    def part(self, start: int, end: int | None = None) -> Piece:
        """The characters from `start` to `end`; only unescaped text has parts."""
        return replace(self, shown=self.shown[start:end], raw=self.raw[start:end])

    def cut(self, length: int) -> tuple[Piece, Piece]:
        """Text in two, the first of `length` characters."""
        return self.part(0, length), self.part(length)


def plain_pieces(text: str) -> list[Piece]:
    """The pieces of plain text; text that looks like a marker becomes one, so that it is not mistaken for ours."""
    pieces: list[Piece] = []
    for piece in _placeholder_pieces(text):
        pieces += [piece] if piece.role else _around(piece.raw, MARKER, "marker")
    return pieces


def markup_pieces(raw: str, *, html: bool) -> list[Piece]:
    """The pieces of text between tags: entities, by name too in HTML, become characters or markers."""
    pieces: list[Piece] = []
    for piece in _placeholder_pieces(raw):
        for part in [piece] if piece.role else _around(piece.raw, MARKER, "marker"):
            pieces += (
                [part]
                if part.role
                else chain.from_iterable(map(_without_breaks, _entity_pieces(part.raw, html)))
            )
    return pieces


def _without_breaks(piece: Piece) -> Iterator[Piece]:
    """A line break in markup is a blank to a reader, and so to the model."""
    if piece.kind != "text" or BREAKS.search(piece.raw) is None:
        yield piece
        return
    position = 0
    for found in BREAKS.finditer(piece.raw):
        if found.start() > position:
            yield piece.part(position, found.start())
        yield Piece(" ", found[0], None, "blank")
        position = found.end()
    if position < len(piece.raw):
        yield piece.part(position)


def trimmed(run: Sequence[Piece]) -> tuple[list[Piece], list[Piece], list[Piece]]:
    """The white space before and after the text of a run, and the run between.

    White space, tags that stand alone, and pairs that wrap the whole go outside; placeholders stay, for
    their place is the translation's choice.
    """
    first, last = 0, len(run)
    before: list[Piece] = []
    after: list[Piece] = []
    while first < last:
        head, tail = run[first], run[last - 1]
        if _outer(head):
            before.append(head)
            first += 1
        elif _outer(tail):
            after.append(tail)
            last -= 1
        elif (
            head.role is Role.OPEN
            and tail.role is Role.CLOSE
            and head.pair == tail.pair
            and not head.is_moved
            and not tail.is_moved
        ):
            before.append(head)
            after.append(tail)
            first, last = first + 1, last - 1
        else:
            break
    middle = list(run[first:last])
    if middle and (blank := len(middle[0].shown) - len(middle[0].shown.lstrip())) and middle[0].role is None:
        head, middle[0] = middle[0].cut(blank)
        before.append(head)
    if (
        middle
        and (blank := len(middle[-1].shown.rstrip())) < len(middle[-1].shown)
        and middle[-1].role is None
    ):
        middle[-1], tail = middle[-1].cut(blank)
        after.append(tail)
    return before, middle, after[::-1]


def _outer(piece: Piece) -> bool:
    if piece.role is None:
        return not piece.shown.strip()
    return piece.role is Role.ALONE and piece.kind == "tag" and not piece.is_moved


def _placeholder_pieces(text: str) -> Iterator[Piece]:
    return _cut_at(text, ((found.start, found.end, found.kind) for found in placeholders(text)))


def _around(text: str, pattern: regex.Pattern[str], kind: str) -> Iterator[Piece]:
    return _cut_at(text, ((*found.span(), kind) for found in pattern.finditer(text)))


def _cut_at(text: str, spans: Iterable[tuple[int, int, str]]) -> Iterator[Piece]:
    position = 0
    for start, end, kind in spans:
        if start > position:
            yield Piece(text[position:start], text[position:start])
        yield Piece(text[start:end], text[start:end], Role.ALONE, kind)
        position = end
    if position < len(text):
        yield Piece(text[position:], text[position:])


def _entity_pieces(raw: str, html: bool) -> Iterator[Piece]:
    for piece in _around(raw, SIGN, "entity"):
        shown = _character(piece.raw, html) if piece.role else None
        yield Piece(shown, piece.raw, None, "entity") if shown else piece


def _character(entity: str, html: bool) -> str | None:
    """The character of an entity; None if the entity has to stay."""
    if not html and not entity.startswith("&#") and entity not in XML_ENTITIES:
        return None
    shown = html_entities.unescape(entity)
    if len(shown) != 1 or (not shown.isprintable() and shown != "\u00a0"):
        return None
    return shown if not shown.isascii() or shown in SHOWN_ASCII else None
