"""Translations of a request's translation memory, which are taken instead of generating them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dragoman_protocols.memories import segment_key
from dragoman_protocols.translation import Format, TranslationRequest
from dragoman_service.core.stages import (
    Evaluation,
    Outcome,
    PreparedText,
    SegmentResult,
    SegmentTask,
)
from dragoman_service.engine.protocol import Finish
from dragoman_service.prompts.family import NO_OPTIONS
from dragoman_service.text.restoring import restore, verify
from dragoman_service.text.segmented_text import Segment, SegmentedText


@dataclass(frozen=True)
class Memory:
    """A translation memory.

    Args:
        translations: By the `segment_key` of what they translate.
    """

    translations: Mapping[str, str]

    def result(self, segment: Segment) -> SegmentResult | None:
        """The translation of a segment; None if the memory has none.

        A segment of plain text is compared as it stands, placeholders included; one of markup only where it has no
        tags.
        """
        is_plain = segment.format is Format.PLAIN
        found = self._of(segment.source if is_plain else segment.text)
        if found is None:
            return None
        if not is_plain:
            if _has_tags(segment) or verify(segment, found):
                return None
            found = restore(segment, found)
        evaluation = Evaluation(found, (), (), (), Finish.STOP, 0, (), is_usable=True)
        return SegmentResult(found, (), (), Outcome(evaluation), from_memory=True)

    def has_some(self, text: PreparedText) -> bool:
        """Whether the memory has a segment of a text."""
        return any(self.result(task.segment) is not None for task in text.tasks)

    def applied(self, request: TranslationRequest, texts: Sequence[PreparedText]) -> list[PreparedText]:
        """The texts of a request, those as one segment that the memory has as a whole: it may be one of paragraphs."""
        is_plain = request.format is Format.PLAIN
        wholes = (_plain(request.texts[text.index]) if is_plain else _markup(text.document) for text in texts)
        return [self._unsplit(text, whole) for text, whole in zip(texts, wholes, strict=True)]

    def _unsplit(self, text: PreparedText, whole: SegmentedText | None) -> PreparedText:
        pair = text.source.pair
        if whole is None or pair is None:
            return text
        (segment,) = whole.segments
        if self.result(segment) is None:
            return text
        return replace(text, document=whole, tasks=(SegmentTask(segment, pair, NO_OPTIONS),))

    def _of(self, text: str) -> str | None:
        # Lines are kept: what is on several is no segment of a memory.
        return self.translations.get(segment_key(text)) if len(text.splitlines()) == 1 else None


def _plain(text: str) -> SegmentedText:
    """A plain text as one segment."""
    inner = text.strip()
    start = text.find(inner)
    return SegmentedText((Segment(inner, inner),), (text[:start], text[start + len(inner) :]))


def _markup(document: SegmentedText) -> SegmentedText | None:
    """Sentences of markup as one segment; None where there are tags in or between them."""
    segments, between = document.segments, document.between
    inner = between[1:-1]
    if not segments or any(map(str.strip, inner)) or any(map(_has_tags, segments)):
        return None
    text, source = segments[0].text, segments[0].source
    if len(segments) > 1:
        text += "".join(blank + each.text for blank, each in zip(inner, segments[1:], strict=True))
        source += "".join(blank + each.source for blank, each in zip(inner, segments[1:], strict=True))
    return SegmentedText((Segment(text, source, (), segments[0].format),), (between[0], between[-1]))


def _has_tags(segment: Segment) -> bool:
    return any(piece.role for piece in segment.pieces)
