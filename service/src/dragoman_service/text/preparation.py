"""What is asked of `document.prepare`, and the segments it makes."""

from __future__ import annotations

from dataclasses import dataclass, field

from dragoman_protocols.translation import Format
from dragoman_service.text.pieces import Piece
from dragoman_service.text.segments import CountTokens


@dataclass(frozen=True)
class Preparation:
    """How texts are made into segments.

    Args:
        budget_tokens: What one segment may have, at least 1.
        count_tokens: Tokens of a text as the model counts them.
        format: How the text is written.
        lang: BCP-47 tag of the text.
        by_line: Whether line breaks end segments of plain text; in markup they never do.
        by_sentence: Whether each sentence is a segment of its own.
        protect_placeholders: Whether `{name}`, `%s`, URLs and the like become markers.
        style: How markers are written.
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
    protect_placeholders: bool = True
    ignore_tags: frozenset[str] = frozenset()
    splitting_tags: frozenset[str] = frozenset()
    non_splitting_tags: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Segment:
    """What one generation translates.

    Args:
        text: What the model sees.
        source: The part of the source that it stands for.
        pieces: The source as text and markers, numbered as in `text`.
        format: Of the source.
    """

    text: str
    source: str
    pieces: tuple[Piece, ...] = field(repr=False)
    format: Format = Format.PLAIN
