"""Runs of text that no boundary interrupts, cut into segments whose tags nest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from dragoman_protocols.translation import Format
from dragoman_service.text import markers
from dragoman_service.text.markers import Role
from dragoman_service.text.pieces import Piece, trimmed
from dragoman_service.text.preparation import Preparation, Segment
from dragoman_service.text.segments import has_letters, split


def segments_of(run: Sequence[Piece], how: Preparation) -> Iterable[Segment | str]:
    """The segments of text that no boundary interrupts, and the raw source between."""
    for bounded in _between_boundaries(run):
        before, kept, after = trimmed(bounded)
        yield _raw(before)
        for fitting in _fitting(kept, how):
            for group in _between_boundaries(fitting):
                head, inner, tail = trimmed(group)
                yield _raw(head)
                yield _segment(inner, how)
                yield _raw(tail)
        yield _raw(after)


def _raw(pieces: Iterable[Piece]) -> str:
    return "".join(piece.raw for piece in pieces)


def _between_boundaries(run: Sequence[Piece]) -> Iterable[Sequence[Piece]]:
    """`run` cut at tags whose partner is not in it: each such tag is a group of its own."""
    partners = Counter(piece.pair for piece in run)
    group: list[Piece] = []
    for piece in run:
        if not piece.pair or partners[piece.pair] == 2:
            group.append(piece)
            continue
        if group:
            yield group
        yield [replace(piece, role=Role.ALONE, pair=0)]
        group = []
    if group:
        yield group


def _fitting(group: Sequence[Piece], how: Preparation) -> Iterable[Sequence[Piece]]:
    if not group:
        return
    shown = _shown(group)
    segments = split(
        "".join(shown),
        how.budget_tokens,
        how.count_tokens,
        lang=how.lang,
        by_line=how.by_line and how.format is Format.PLAIN,
        by_sentence=how.by_sentence,
        atom=markers.PATTERN,
        translatable=bool,
    )
    if len(segments.texts) <= 1:
        yield group
        return
    ends = _ends(segments.texts, segments.separators)
    yield from _at(group, [len(text) for text in shown], ends)


def _ends(texts: Sequence[str], separators: Sequence[str]) -> list[int]:
    """Offsets at which one group ends and the next begins: before and behind every text."""
    ends: list[int] = []
    position = len(separators[0])
    for text, separator in zip(texts, separators[1:], strict=True):
        ends += (position, position + len(text))
        position += len(text) + len(separator)
    return ends


def _at(group: Sequence[Piece], lengths: Sequence[int], ends: Sequence[int]) -> Iterable[Sequence[Piece]]:
    """`group` cut at offsets of what it shows; only text pieces are cut within."""
    cuts = iter([*ends, sum(lengths)])
    cut = next(cuts)
    position = 0
    current: list[Piece] = []
    for piece, length in zip(group, lengths, strict=True):
        start, end, taken = position, position + length, 0
        while cut < end:
            if piece.role is None and cut > start + taken:
                current.append(piece.part(taken, cut - start))
                taken = cut - start
            if current:
                yield current
            current = []
            cut = next(cuts)
        current.append(piece.part(taken) if taken else piece)
        position = end
    if current:
        yield current


def _shown(group: Sequence[Piece]) -> list[str]:
    """What the model sees of each piece; markers are numbered from 1."""
    numbers: dict[int, int] = {}
    shown: list[str] = []
    count = 0
    for piece in group:
        if piece.role is None:
            shown.append(piece.shown)
            continue
        if piece.pair in numbers:
            number = numbers[piece.pair]
        else:
            count += 1
            number = count
            if piece.pair:
                numbers[piece.pair] = number
        shown.append(markers.written(piece.role, number))
    return shown


def _segment(group: Sequence[Piece], how: Preparation) -> Segment | str:
    """The segment of a group, or its source where there is nothing to translate."""
    source = _raw(group)
    if not any(piece.role is None and has_letters(piece.shown) for piece in group):
        return source
    text = "".join(_shown(group))
    expected = [piece.role for piece in group if piece.role is not None]
    if [marker.role for marker in markers.read(text)] != expected:
        return source  # something in the source reads as a marker: better untouched than mistaken
    return Segment(text, source, tuple(group), how.format)
