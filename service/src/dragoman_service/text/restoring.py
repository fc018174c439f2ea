"""Checks the markers in a model's output, and restores the markup of the source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, pairwise

import regex

from dragoman_protocols.translation import Format
from dragoman_service.text.line_positions import BLANK, with_line_breaks
from dragoman_service.text.pieces import Marker, Piece, Role, marker_text, markers_in
from dragoman_service.text.placeholders import UNNUMBERED
from dragoman_service.text.segmented_text import Segment

NOT_IN_XML = regex.compile(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")
"""Source: https://www.w3.org/TR/xml/#charsets"""

ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


class Fault(StrEnum):
    """The kinds of errors in the markers of an output."""

    LOST = "lost"
    DUPLICATED = "duplicated"
    INVENTED = "invented"
    REORDERED = "reordered"
    EMPTIED = "emptied"


@dataclass(frozen=True)
class MarkerProblem:
    """An error in the markers.

    Args:
        marker: The marker as the model should have written it, or as it wrote an invented one.
    """

    fault: Fault
    marker: str


class BrokenMarkersError(ValueError):
    """An output whose markers cannot be restored; call `verify` before."""


def verify(segment: Segment, answer: str) -> tuple[MarkerProblem, ...]:
    """The errors in the markers of an output; empty if it can be restored.

    Placeholders may move, but those that are filled by their order keep it. Tags keep the element they
    are in, so that elements nest as in the source; a pair that had text keeps some.
    """
    return _problems(segment, list(markers_in(segment.text)), list(markers_in(answer)), answer)


def _problems(
    segment: Segment, expected: Sequence[Marker], found: Sequence[Marker], answer: str
) -> tuple[MarkerProblem, ...]:
    """See `verify`; the markers of the segment's text and those of the output."""
    keys = {(marker.role, marker.number) for marker in expected}
    times: dict[tuple[Role, int], int] = {}
    for marker in found:
        times[marker.role, marker.number] = times.get((marker.role, marker.number), 0) + 1
    problems = [
        _problem(Fault.LOST if key not in times else Fault.DUPLICATED, *key)
        for key in sorted(keys)
        if times.get(key, 0) != 1
    ]
    problems += [_problem(Fault.INVENTED, *key) for key in sorted(times.keys() - keys)]
    return tuple(problems or _misplaced(segment, expected, found, answer))


def restore(segment: Segment, answer: str) -> str:
    """The output with the markup of the source: markers replaced, text escaped.

    Raises:
        BrokenMarkersError: `verify` finds problems.
    """
    if answer == segment.text:
        return segment.source
    expected, found = list(markers_in(segment.text)), list(markers_in(answer))
    if problems := _problems(segment, expected, found, answer):
        raise BrokenMarkersError(", ".join(f"{problem.fault} {problem.marker}" for problem in problems))
    raws = _raws(segment, expected)
    written = {
        piece.shown: piece.raw for piece in segment.pieces if piece.kind == "entity" and not piece.role
    }
    texts: list[str] = []
    position = 0
    for marker in found:
        texts.append(_escaped(answer[position : marker.start], segment.format, written))
        position = marker.end
    texts.append(_escaped(answer[position:], segment.format, written))
    blanks = _blanks(segment)
    texts = with_line_breaks(texts, blanks) if blanks else texts
    markers = [raws[marker.role, marker.number].shown for marker in found]
    return "".join(chain.from_iterable(zip(texts, [*markers, ""], strict=True)))


def _blanks(segment: Segment) -> list[str]:
    """Those of the segment's text as the source has them, if any is a line break of markup."""
    if all(piece.kind != "blank" for piece in segment.pieces):
        return []
    blanks: list[str] = []
    for piece in segment.pieces:
        if piece.kind == "blank":
            blanks.append(piece.raw)
        elif piece.role is None:
            blanks += BLANK.findall(piece.shown)
    return blanks


def _raws(segment: Segment, expected: Sequence[Marker]) -> dict[tuple[Role, int], Piece]:
    """The pieces that the markers of the segment's text stand for."""
    pieces = [piece for piece in segment.pieces if piece.role]
    return {(marker.role, marker.number): piece for marker, piece in zip(expected, pieces, strict=True)}


def _escaped(text: str, form: Format, written: dict[str, str]) -> str:
    """`text` as the format writes it; characters that the source wrote as entities stay entities."""
    if form is Format.PLAIN:
        return text
    clean = NOT_IN_XML.sub("", text)
    return "".join(written.get(character) or ESCAPES.get(character, character) for character in clean)


def _problem(fault: Fault, role: Role, number: int) -> MarkerProblem:
    return MarkerProblem(fault, marker_text(role, number))


def _misplaced(
    segment: Segment, expected: Sequence[Marker], found: Sequence[Marker], answer: str
) -> list[MarkerProblem]:
    """Faults of order, given that each marker is there once."""
    raws = _raws(segment, expected)
    parents = _parents(expected, raws)
    after = _parents(found, raws)
    if after is None or parents is None:
        return [_problem(Fault.REORDERED, found[0].role, found[0].number)]
    moved = [key for key, parent in parents.items() if after[key] != parent]
    problems = [_problem(Fault.REORDERED, *key) for key in moved]
    if _positional(expected, raws) != _positional(found, raws):
        first = _positional(expected, raws)[0]
        problems.append(_problem(Fault.REORDERED, Role.ALONE, first))
    emptied = _blank_pairs(found, answer) - _blank_pairs(expected, segment.text)
    problems += [_problem(Fault.EMPTIED, Role.OPEN, number) for number in sorted(emptied)]
    return problems


def _parents(
    markers: Iterable[Marker], raws: dict[tuple[Role, int], Piece]
) -> dict[tuple[Role, int], int] | None:
    """The enclosing pair of each tag, 0 if none; None if pairs overlap."""
    stack = [0]
    parents: dict[tuple[Role, int], int] = {}
    for marker in markers:
        if marker.role is Role.CLOSE:
            if stack.pop() != marker.number:
                return None
        elif raws[marker.role, marker.number].kind == "tag":
            parents[marker.role, marker.number] = stack[-1]
        if marker.role is Role.OPEN:
            stack.append(marker.number)
    return parents if stack == [0] else None


def _positional(markers: Iterable[Marker], raws: dict[tuple[Role, int], Piece]) -> list[int]:
    return [
        marker.number
        for marker in markers
        if marker.role is Role.ALONE and UNNUMBERED.match(raws[marker.role, marker.number].raw)
    ]


def _blank_pairs(markers: Sequence[Marker], text: str) -> set[int]:
    """Pairs with nothing between their two tags."""
    return {
        first.number
        for first, second in pairwise(markers)
        if first.role is Role.OPEN
        and second.role is Role.CLOSE
        and not text[first.end : second.start].strip()
    }
