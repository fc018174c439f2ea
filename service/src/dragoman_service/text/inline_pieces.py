"""The pieces of text with inline tags; a placeholder that tags interrupt is one piece, with these tags in it."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate

from dragoman_service.text.markup import Chunk
from dragoman_service.text.pieces import Piece, Role, markup_pieces
from dragoman_service.text.placeholders import SIGNS, placeholders

INTERRUPTED = frozenset({"mustache", "brace"})
"""Kinds of placeholders that have an end of their own: only these are looked for across tags."""


def inline_pieces(run: Sequence[Chunk], *, html: bool) -> list[Piece]:
    """The pieces of text and inline tags that no boundary interrupts. Time grows linearly with them."""
    pieces: list[Piece] = []
    pairs = Counter(chunk.pair for chunk in run)
    for part in _parts(run):
        if len(part) > 1 and all(pairs[chunk.pair] == 2 for chunk in part if chunk.pair):
            pieces += _placeholder(part)
            continue
        for chunk in part:
            if chunk.kind == "text":
                pieces += markup_pieces(chunk.raw, html=html)
            else:
                _add_tag(pieces, chunk)
    return pieces


def interrupted(texts: Sequence[str]) -> list[tuple[int, int]]:
    """The placeholders that begin in one text and end in another: their offsets in all of them, joined."""
    if len(texts) < 2 or not any(map(SIGNS.search, texts)):
        return []
    ends = list(accumulate(map(len, texts)))
    return [
        (found.start, found.end)
        for found in placeholders("".join(texts))
        if found.kind in INTERRUPTED and ends[bisect_right(ends, found.start)] < found.end
    ]


def _parts(run: Sequence[Chunk]) -> Iterator[list[Chunk]]:
    """The chunks, those of an interrupted placeholder together."""
    spans = iter(interrupted([chunk.raw for chunk in run if chunk.kind == "text"]))
    start, end = next(spans, (-1, -1))
    position = 0
    inside: list[Chunk] = []
    for chunk in run:
        if chunk.kind != "text":
            if inside:
                inside.append(chunk)
            else:
                yield [chunk]
            continue
        at, after = 0, len(chunk.raw)
        while at < after and start < position + after and end > 0:
            first, last = max(start - position, 0), min(end - position, after)
            if first > at:
                yield [Chunk(chunk.raw[at:first], "text")]
            inside.append(Chunk(chunk.raw[first:last], "text"))
            at = last
            if end > position + after:
                break
            yield inside
            inside = []
            start, end = next(spans, (-1, -1))
        if at < after:
            yield [Chunk(chunk.raw[at:], "text")]
        position += after


def _placeholder(part: Sequence[Chunk]) -> Iterator[Piece]:
    """A placeholder with the elements in it; tags of others move behind it, where the source has nothing."""
    pairs = Counter(chunk.pair for chunk in part)
    moved = [chunk for chunk in part if chunk.pair and pairs[chunk.pair] == 1]
    shown = "".join(chunk.raw for chunk in part if not chunk.pair or pairs[chunk.pair] == 2)
    yield Piece(shown, "".join(chunk.raw for chunk in part), Role.ALONE, "mustache")
    for chunk in moved:
        yield Piece(chunk.raw, "", Role(chunk.kind), "tag", chunk.pair)


def _add_tag(run: list[Piece], chunk: Chunk) -> None:
    """Append a tag to `run`; an empty pair becomes a single tag."""
    if chunk.pair and run and run[-1].pair == chunk.pair:
        opened = run.pop()
        run.append(Piece(opened.shown + chunk.raw, opened.raw + chunk.raw, Role.ALONE, "tag"))
    else:
        run.append(Piece(chunk.raw, chunk.raw, Role(chunk.kind), "tag", chunk.pair))
