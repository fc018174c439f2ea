"""Translations of a request's translation memory, which are taken instead of generating them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dragoman_contract.memories import segment_key
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
from dragoman_service.text.document import Document, Segment
from dragoman_service.text.restoring import restore, verify


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
            if any(piece.role for piece in segment.pieces) or verify(segment, found):
                return None
            found = restore(segment, found)
        evaluation = Evaluation(found, (), (), (), Finish.STOP, 0, (), is_usable=True)
        return SegmentResult(found, (), (), Outcome(evaluation), from_memory=True)

    def has_some(self, text: PreparedText) -> bool:
        """Whether the memory has a segment of a text."""
        return any(self.result(task.segment) is not None for task in text.tasks)

    def applied(self, request: TranslationRequest, texts: Sequence[PreparedText]) -> list[PreparedText]:
        """The texts of a request, those as one segment that the memory has as a whole: it may be one of paragraphs."""
        if request.format is not Format.PLAIN:
            return [*texts]
        return [self._unsplit(text, request.texts[text.index]) for text in texts]

    def _unsplit(self, text: PreparedText, source: str) -> PreparedText:
        pair, inner = text.source.pair, source.strip()
        if pair is None or self._of(inner) is None:
            return text
        start = source.find(inner)
        segment = Segment(inner, inner)
        document = Document((segment,), (source[:start], source[start + len(inner) :]))
        return replace(text, document=document, tasks=(SegmentTask(segment, pair, NO_OPTIONS),))

    def _of(self, text: str) -> str | None:
        # Lines are kept: what is on several is no segment of a memory.
        return self.translations.get(segment_key(text)) if len(text.splitlines()) == 1 else None
