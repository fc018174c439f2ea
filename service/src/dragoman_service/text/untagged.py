"""Segments and outputs without tags, for a model that does not keep them."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import regex

from dragoman_service.text.pieces import Role, markers_in
from dragoman_service.text.segmented_text import Segment

REMNANT = regex.compile(r"[<>]|(?<!\w)[xX]\s?[0-9]{1,6}(?!\w)")
"""What is left of tags that a model wrote in another form."""


@dataclass(frozen=True)
class Tag:
    """The position of a tag.

    Args:
        number: As in its marker.
        start: Character offset in the text without tags.
        apart: Whether it stands alone between two blanks; one of them is left in the text.
    """

    role: Role
    number: int
    start: int
    apart: bool = False


@dataclass(frozen=True)
class Placeholder:
    """A placeholder in a text, from `start` to `end`; `number` as in its marker."""

    number: int
    start: int
    end: int


@dataclass(frozen=True)
class Untagged:
    """A text without tags, and their positions.

    Args:
        text: Placeholders are in it as the source has them.
        tags: In order; in an answer those that the model kept.
        placeholders: In order.
    """

    text: str
    tags: tuple[Tag, ...]
    placeholders: tuple[Placeholder, ...]


def untagged(segment: Segment) -> Untagged:
    """A segment without its tags. A blank takes the place of a tag that alone separates two words."""
    markers = markers_in(segment.text)
    tags: list[Tag] = []
    placeholders: list[Placeholder] = []
    parts: list[str] = []
    length = 0
    last = ""
    alone = False
    for piece in segment.pieces:
        shown = piece.shown
        if piece.role is not None:
            marker = next(markers)
            if piece.kind == "tag":
                tags.append(Tag(marker.role, marker.number, length))
                alone = marker.role is Role.ALONE
                continue
            shown = _character(piece.raw) if piece.kind == "entity" else piece.shown
        elif alone and last.isspace() and shown[:1].isspace():
            tags[-1] = replace(tags[-1], apart=True)
            shown = shown[1:]
        if alone and last.isalnum() and shown[:1].isalnum():
            parts.append(" ")
            length += 1
        if piece.role is not None:
            placeholders.append(Placeholder(marker.number, length, length + len(shown)))
        parts.append(shown)
        length += len(shown)
        last, alone = (shown[-1:] or last), False
    return Untagged("".join(parts) if segment.pieces else segment.text, tuple(tags), tuple(placeholders))


def answer_to(source: Untagged, output: str) -> Untagged | None:
    """A model's translation of `source.text`; None if it lacks a placeholder or has tags."""
    if _has_remnants(source, output):
        return None
    places = _placeholders(source, output)
    return None if places is None else Untagged(output, (), places)


def without_markers(source: Untagged, output: str) -> Untagged | None:
    """A model's translation of a text with markers, of which it lost some; None as in `answer_to`."""
    shown = {each.number: source.text[each.start : each.end] for each in source.placeholders}
    known = {(tag.role, tag.number) for tag in source.tags}
    parts: list[str] = []
    tags: list[Tag] = []
    placeholders: list[Placeholder] = []
    length = position = 0

    def add(text: str) -> None:
        nonlocal length
        if text[:1].isspace() and (not length or parts[-1][-1:].isspace()):
            text = text.lstrip()
        if text:
            parts.append(text)
            length += len(text)

    for marker in markers_in(output):
        add(output[position : marker.start])
        position = marker.end
        if marker.role is Role.ALONE and marker.number in shown:
            start = length
            add(shown[marker.number])
            placeholders.append(Placeholder(marker.number, start, length))
        elif (marker.role, marker.number) in known:
            tags.append(Tag(marker.role, marker.number, length))
    add(output[position:])
    text = "".join(parts)
    found = Counter(each.number for each in placeholders)
    if found != Counter(shown) or _has_remnants(source, text):
        return None
    return Untagged(text, tuple(tags), tuple(placeholders))


def _character(entity: str) -> str:
    shown = html.unescape(entity)
    return shown if len(shown) == 1 else entity


def _has_remnants(source: Untagged, output: str) -> bool:
    return bool(Counter(REMNANT.findall(output)) - Counter(REMNANT.findall(source.text)))


def _placeholders(source: Untagged, output: str) -> tuple[Placeholder, ...] | None:
    """Where the source's placeholders are in an answer, equal ones in their order; None if one is missing."""
    numbers: dict[str, list[int]] = {}
    for each in source.placeholders:
        numbers.setdefault(source.text[each.start : each.end], []).append(each.number)
    found = list(_found(numbers, output))
    if Counter(text for text, _ in found) != Counter({text: len(each) for text, each in numbers.items()}):
        return None
    return tuple(Placeholder(numbers[text].pop(0), start, start + len(text)) for text, start in found)


def _found(numbers: dict[str, list[int]], output: str) -> Iterator[tuple[str, int]]:
    if numbers:
        longest_first = sorted(numbers, key=len, reverse=True)
        for match in regex.finditer("|".join(map(regex.escape, longest_first)), output):
            yield match[0], match.start()
