"""Inserts tags into a translation that was made without them, or in which the model lost some.

Elements nest as in the source, and none that had text is empty.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dragoman_service.text.alignment import (
    CHARACTERS,
    MAX_TOKENS,
    Hints,
    Known,
    Range,
    Scale,
    TokenizedText,
    common,
    same_meaning,
    same_words,
    tokens_of,
    trimmed,
)
from dragoman_service.text.pieces import Role, marker_text
from dragoman_service.text.untagged import Untagged

MAX_DEPTH = 40
"""Elements within each other; a segment with more stays as it was."""

MAX_SEARCHES = 100
"""Elements of a segment that are searched for; others are placed in proportion. Bounds the time."""

MAX_SHARE = 0.6
"""Of the text that an element may have and be translated alone."""


@dataclass
class _Element:
    """A pair of tags or a tag alone.

    Args:
        number: As in its marker; 0 is the whole text.
        first: Its first token in the source.
        after: Behind its last.
        attached: Whether no blank is before it.
        apart: Whether it stands alone between two blanks.
    """

    number: int
    role: Role
    first: int
    after: int
    attached: bool = False
    apart: bool = False
    children: list[_Element] = field(default_factory=list)
    need: int = 0
    """Tokens that it has to get, at least."""

    @property
    def part(self) -> Range:
        """Its tokens in the source."""
        return self.first, self.after

    @property
    def has_text(self) -> bool:
        """Whether it is a pair with text in it."""
        return self.role is Role.OPEN and self.after > self.first


def parts(source: Untagged, answer: Untagged) -> tuple[str, ...]:
    """The texts of elements whose position needs a translation of their own; each once, in order."""
    tokens = tokens_of(source)
    root = _tree(source, tokens)
    if root is None:
        return ()
    target = tokens_of(Untagged(answer.text, (), answer.placeholders))
    writer = _Writer(source, tokens, answer, target, {})
    longest = min(MAX_TOKENS, int(MAX_SHARE * len(tokens)))
    wanted: dict[str, None] = {}
    for element in _walk(root):
        if element.has_text and element.after - element.first <= longest:
            text = writer.source_text(element)
            if (
                text not in wanted
                and any(map(str.isalpha, text))
                and not writer.found(element, (0, len(target)))
            ):
                wanted[text] = None
    return tuple(wanted)


def retagged(source: Untagged, answer: Untagged, hints: Hints) -> str | None:
    """A translation with markers for all tags and placeholders of its source.

    Args:
        source: The source without its tags.
        answer: Its translation, with the tags that the model kept, if any.
        hints: Translations of `parts`.

    Returns:
        None where the translation is too short for the elements that had text, or they nest too deep.
    """
    tokens = tokens_of(source)
    root = _tree(source, tokens)
    if root is None:
        return None
    for pattern in (None, CHARACTERS):
        text = Untagged(answer.text, (), answer.placeholders)
        target = tokens_of(text) if pattern is None else tokens_of(text, pattern)
        if root.need <= len(target):
            return _Writer(source, tokens, answer, target, hints).written(root)
    return None


def _tree(source: Untagged, tokens: TokenizedText) -> _Element | None:
    root = _Element(0, Role.OPEN, 0, len(tokens))
    stack = [root]
    for tag in source.tags:
        index = bisect_left(tokens.starts, tag.start)
        if tag.role is Role.CLOSE:
            element = stack.pop()
            if element.number != tag.number or not stack:
                return None
            element.after = index
            element.need = max(element.need, element.has_text)
            stack[-1].need += element.need
            continue
        attached = index > 0 and tokens.ends[index - 1] == tag.start
        element = _Element(tag.number, tag.role, index, index, attached, tag.apart)
        stack[-1].children.append(element)
        if tag.role is Role.OPEN:
            stack.append(element)
        if len(stack) > MAX_DEPTH:
            return None
    return root if len(stack) == 1 else None


def _walk(element: _Element) -> Iterator[_Element]:
    for child in element.children:
        yield child
        yield from _walk(child)


class _Writer:
    """Writes one translation with markers."""

    def __init__(
        self, source: Untagged, tokens: TokenizedText, answer: Untagged, target: TokenizedText, hints: Hints
    ) -> None:
        self._source, self._tokens, self._answer, self._target = source, tokens, answer, target
        self._hints = hints
        self._known = sorted(common(tokens, target))
        self._kept = {(tag.role, tag.number): tag.start for tag in answer.tags}
        self._placeholders = [place.start for place in answer.placeholders]
        self._starts = frozenset(target.starts)
        self._searches = 0

    def written(self, root: _Element) -> str:
        """The whole translation."""
        return self._write(root, (0, len(self._target)), 0, len(self._answer.text))

    def _write(self, element: _Element, within: Range, start: int, end: int) -> str:
        """The content of an element with the tokens `within`, the characters from `start` to `end`."""
        if not element.children:
            return self._text(start, end)
        pairs = [child for child in element.children if child.has_text]
        ranges = self._ranges(element, pairs, within)
        items: list[tuple[int, int, int, str]] = []
        for child, found in zip(pairs, ranges, strict=True):
            begins, ends = self._target.starts[found[0]], self._target.ends[found[1] - 1]
            items.append((begins, 1, ends, _pair(child, self._write(child, found, begins, ends))))
        known = [*self._known_in(element), *_boundaries(pairs, ranges)]
        scale = Scale(self._tokens, element.part, self._target, within, known)
        taken = sorted(ranges)
        place = start
        for child in element.children:
            if not child.has_text:
                place = max(place, self._place(child, element, scale, taken, within, (start, end)))
                blank = " " if child.apart and place in self._starts else ""
                items.append((place, 0, place, _without_text(child) + blank))
        written: list[str] = []
        for begins, _, ends, text in sorted(items, key=lambda item: item[:2]):
            written += (self._text(start, begins), text)
            start = ends
        return "".join([*written, self._text(start, end)])

    def _text(self, start: int, end: int) -> str:
        """Text of the translation, with markers for placeholders."""
        written: list[str] = []
        first = bisect_left(self._placeholders, start)
        for place in self._answer.placeholders[first : bisect_left(self._placeholders, end)]:
            written += (self._answer.text[start : place.start], marker_text(Role.ALONE, place.number))
            start = place.end
        return "".join([*written, self._answer.text[start:end]])

    def _known_in(self, element: _Element) -> list[Known]:
        return self._known[
            bisect_left(self._known, (element.first,)) : bisect_left(self._known, (element.after,))
        ]

    def _ranges(self, parent: _Element, pairs: Sequence[_Element], within: Range) -> list[Range]:
        """Disjoint ranges of tokens for these elements, each with its minimum length."""
        found = [self.found(child, within) for child in pairs]
        sure = [(child, place) for child, place in zip(pairs, found, strict=True) if place]
        known = self._known_in(parent)
        if sure:
            known += _boundaries(*zip(*sure, strict=True))
        for child, place in zip(pairs, found, strict=True):
            known += () if place else self._half_kept(child)
        scale = Scale(self._tokens, parent.part, self._target, within, known)
        requested = [
            place or trimmed(self._tokens, child.part, self._target, scale.range(child.part))
            for child, place in zip(pairs, found, strict=True)
        ]
        return _disjoint(pairs, requested, within)

    def source_text(self, element: _Element) -> str:
        """The text of an element in the source."""
        return self._source.text[self._tokens.starts[element.first] : self._tokens.ends[element.after - 1]]

    def found(self, element: _Element, within: Range) -> Range | None:
        """The range of an element, if it is known by more than interpolation."""
        kept = self._by_tags(element)
        if kept and within[0] <= kept[0] and kept[1] <= within[1]:
            return kept
        self._searches += 1
        if self._searches > MAX_SEARCHES or element.after - element.first > MAX_TOKENS:
            return None
        same = same_words(self._tokens, element.part, self._target, within)
        if same:
            return same
        hint = self._hints.get(self.source_text(element))
        return same_meaning(element.part, self._tokens, hint, self._target, within) if hint else None

    def _by_tags(self, element: _Element) -> Range | None:
        """The range between both tags, if the model kept them."""
        start = self._kept.get((Role.OPEN, element.number))
        end = self._kept.get((Role.CLOSE, element.number))
        if start is None or end is None:
            return None
        found = bisect_right(self._target.ends, start), bisect_left(self._target.starts, end)
        return found if found[0] < found[1] else None

    def _half_kept(self, element: _Element) -> Iterator[Known]:
        """The range of a pair of which the model kept one tag."""
        start = self._kept.get((Role.OPEN, element.number))
        end = self._kept.get((Role.CLOSE, element.number))
        if start is not None and end is None:
            yield element.first, bisect_right(self._target.ends, start)
        if end is not None and start is None:
            yield element.after, bisect_left(self._target.starts, end)

    def _place(
        self,
        element: _Element,
        parent: _Element,
        scale: Scale,
        taken: Sequence[Range],
        within: Range,
        ends: tuple[int, int],
    ) -> int:
        """The offset of a single tag, or of a pair without text: within its parent, outside of the ranges `taken`."""
        kept = self._kept.get((element.role, element.number))
        if kept is not None:
            index = bisect_left(self._target.starts, kept)
        elif element.first <= parent.first or element.first >= parent.after:
            return ends[element.first > parent.first]
        elif element.attached:
            index = scale.range((element.first - 1, element.first))[1]
        else:
            index = scale.at(element.first)
        index = min(max(index, within[0]), within[1])
        before = bisect_left(taken, (index,)) - 1
        if before >= 0 and index < taken[before][1]:
            index = taken[before][0] if 2 * index < sum(taken[before]) else taken[before][1]
        if index in within:
            return ends[index == within[1]]
        return self._target.ends[index - 1] if element.attached else self._target.starts[index]


def _boundaries(elements: Sequence[_Element], ranges: Sequence[Range]) -> Iterator[Known]:
    for element, (first, after) in zip(elements, ranges, strict=True):
        yield element.first, first
        yield element.after, after


def _disjoint(pairs: Sequence[_Element], requested: Sequence[Range], within: Range) -> list[Range]:
    """The requested ranges, shortened and moved so that none overlaps and each has its minimum length."""
    order = sorted(range(len(pairs)), key=lambda index: (requested[index], index))
    ranges = [within] * len(pairs)
    needed = sum(child.need for child in pairs)
    position = within[0]
    for rank, index in enumerate(order):
        need = pairs[index].need
        needed -= need
        first = min(max(requested[index][0], position), within[1] - needed - need)
        last = within[1] - needed
        if rank + 1 < len(order):
            last = min(last, max(requested[order[rank + 1]][0], first + need))
        position = min(max(requested[index][1], first + need), last)
        ranges[index] = (first, position)
    return ranges


def _pair(element: _Element, inner: str) -> str:
    return f"{marker_text(Role.OPEN, element.number)}{inner}{marker_text(Role.CLOSE, element.number)}"


def _without_text(element: _Element) -> str:
    if element.role is Role.ALONE:
        return marker_text(Role.ALONE, element.number)
    return _pair(element, "".join(map(_without_text, element.children)))
