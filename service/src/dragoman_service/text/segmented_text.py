"""Cuts a text of any format into segments for the model, and joins their translations.

`prepare` replaces tags and placeholders by markers and cuts what is left into segments; `restoring.verify`
reports what a model's answer did to the markers, `restoring.restore` puts back what they stand for, and
`SegmentedText.rejoin` rebuilds the whole. Segments restored as they were sent give the source byte for byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from dragoman_protocols.translation import Format
from dragoman_service.text.inline_pieces import inline_pieces
from dragoman_service.text.markup import Chunk, MarkupRules, chunks
from dragoman_service.text.pieces import (
    MARKER_PATTERN,
    MARKER_START,
    Piece,
    Role,
    marker_text,
    markers_in,
    plain_pieces,
    trimmed,
)
from dragoman_service.text.placeholders import SIGNS
from dragoman_service.text.segments import CountTokens, has_letters, split


@dataclass(frozen=True)
class SegmentedText:
    """A text as segments, and the source between them.

    Args:
        between: Source before, between and after them; one more than `segments`.
        joints: For each of `between`, whether the segments beside it are of one paragraph: it has no tag that ends a
            segment. Empty for a text that is one segment.
    """

    segments: tuple[Segment, ...]
    between: tuple[str, ...]
    joints: tuple[bool, ...] = ()

    def rejoin(self, restored: Sequence[str]) -> str:
        """The document with each segment replaced by a translation, or by its `source`."""
        parts = [self.between[0]]
        for text, after in zip(restored, self.between[1:], strict=True):
            parts += (text, after)
        return "".join(parts)


def prepare(text: str, how: Preparation) -> SegmentedText:
    """Cut a text, well formed or not, into segments. Time grows linearly with the text."""
    if how.format is Format.PLAIN and MARKER_START not in text and SIGNS.search(text) is None:
        return _without_pieces(text, how)
    return _with_pieces(text, how)


def _without_pieces(text: str, how: Preparation) -> SegmentedText:
    """As `_with_pieces`, but faster, for plain text without placeholders."""
    inner = text.strip()
    start = text.find(inner)
    found = split(
        inner,
        how.budget_tokens,
        how.count_tokens,
        lang=how.lang,
        by_line=how.by_line,
        by_sentence=how.by_sentence,
    )
    first, *others = found.separators
    between = [text[:start] + first, *others]
    between[-1] += text[start + len(inner) :]
    segments = tuple(Segment(each, each) for each in found.texts)
    return SegmentedText(segments, tuple(between), (True,) * len(between))


def _with_pieces(text: str, how: Preparation) -> SegmentedText:
    segments: list[Segment] = []
    between: list[list[str]] = [[]]
    joints = [True]
    for part in _parts(text, how):
        if isinstance(part, Segment):
            segments.append(part)
            between.append([])
            joints.append(True)
        elif isinstance(part, Chunk):
            between[-1].append(part.raw)
            joints[-1] = False
        else:
            between[-1].append(part)
    return SegmentedText(tuple(segments), tuple("".join(raw) for raw in between), tuple(joints))


def _parts(text: str, how: Preparation) -> Iterable[Segment | Chunk | str]:
    """The segments, the tags that end them, and the raw source of the rest."""
    if how.format is Format.PLAIN:
        yield from segments_of(plain_pieces(text), how)
        return
    rules = MarkupRules(
        how.format is Format.HTML, how.ignore_tags, how.splitting_tags, how.non_splitting_tags
    )
    run: list[Chunk] = []
    for chunk in chunks(text, rules):
        if chunk.kind == "boundary":
            yield from segments_of(inline_pieces(run, html=rules.html), how)
            yield chunk
            run = []
        else:
            run.append(chunk)
    yield from segments_of(inline_pieces(run, html=rules.html), how)


@dataclass(frozen=True)
class Preparation:
    """How texts are made into segments.

    Args:
        budget_tokens: Maximum of a segment, at least 1.
        count_tokens: Tokens of a text as the model counts them.
        lang: BCP-47 tag of the text.
        by_line: Whether line breaks end segments of plain text; in markup they never do.
        by_sentence: Whether each sentence is a segment of its own.
        ignore_tags: Elements that are not translated.
        splitting_tags: Elements that always end a segment.
        non_splitting_tags: Elements that never end one.
    """

    budget_tokens: int
    count_tokens: CountTokens = len
    format: Format = Format.PLAIN
    lang: str = "en"
    by_line: bool = True
    by_sentence: bool = False
    ignore_tags: frozenset[str] = frozenset()
    splitting_tags: frozenset[str] = frozenset()
    non_splitting_tags: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Segment:
    """The text of one generation.

    Args:
        source: The part of the source that it stands for.
        pieces: The source as text and markers, numbered as in `text`; empty for plain text that stands for itself.
    """

    text: str
    source: str
    pieces: tuple[Piece, ...] = field(default=(), repr=False)
    format: Format = Format.PLAIN


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
        by_sentence=how.by_sentence and not any(piece.is_moved for piece in group),
        atom=MARKER_PATTERN,
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
    """The text of each piece for the model; markers are numbered from 1."""
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
        shown.append(marker_text(piece.role, number))
    return shown


def _segment(group: Sequence[Piece], how: Preparation) -> Segment | str:
    """The segment of a group, or its source where there is nothing to translate."""
    source = _raw(group)
    if not any(piece.role is None and has_letters(piece.shown) for piece in group):
        return source
    text = "".join(_shown(group))
    expected = [piece.role for piece in group if piece.role is not None]
    if [marker.role for marker in markers_in(text)] != expected:
        return source  # Text of the source reads as a marker: it is kept rather than mistaken.
    return Segment(text, source, tuple(group), how.format)
