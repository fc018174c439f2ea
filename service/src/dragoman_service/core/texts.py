"""One text on its way through the core: into segments before, back into a whole after; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman_protocols.errors import (
    EmptyOutputError,
    ServiceError,
    TruncatedOutputError,
    UnreliableTranslationError,
)
from dragoman_protocols.translation import TranslationResult, Warned
from dragoman_service.core.generate import Asked, Outcome
from dragoman_service.core.sources import Source
from dragoman_service.engine.protocol import Finish
from dragoman_service.text.document import Document
from dragoman_service.text.guards import Guard
from dragoman_service.text.preparation import Segment
from dragoman_service.text.restoring import restore, verify


@dataclass(frozen=True)
class Text:
    """A text, prepared.

    Args:
        index: Of the request's texts.
        source: Its language.
        document: Its segments.
        asked: One a segment.
        warnings: Those that are about no segment.
    """

    index: int
    source: Source
    document: Document
    asked: tuple[Asked, ...]
    warnings: tuple[Warned, ...] = ()


@dataclass(frozen=True)
class Settled:
    """A segment, decided on.

    Args:
        text: What stands in its place, in the form of the source.
        alternatives: What else could, without repeating one another.
        warnings: On it.
        outcome: What it was decided by.
        untouched: Whether it was left as it was.
        failure: Set where the model gave no answer at all.
    """

    text: str
    alternatives: tuple[str, ...]
    warnings: tuple[Warned, ...]
    outcome: Outcome
    untouched: bool = False
    failure: ServiceError | None = None


def settled(number: int, segment: Segment, outcome: Outcome, *, strict: bool) -> Settled:
    """What becomes of a segment.

    Args:
        number: Of the segment in its text, from 0.
        segment: As it was asked for.
        outcome: What came.
        strict: Whether a doubtful translation is an error.

    Raises:
        UnreliableTranslationError: A guard fired on the answer to give, and `strict` is set.
    """
    verdict = outcome.verdict
    if strict and (verdict.findings or not verdict.is_usable):
        raise UnreliableTranslationError(
            f"segment {number + 1} of the text was doubted after a retry too: {', '.join(verdict.names)}"
        )
    if not verdict.is_usable:
        failure = _failure(segment, outcome)
        why = failure or "the model did not keep its tags and placeholders"
        said = Warned("untouched", f"left as it was: {why}", number)
        return Settled(segment.source, (), (said,), outcome, untouched=True, failure=failure)
    warnings = [Warned(found.guard.value, found.detail, number) for found in verdict.findings]
    if verdict.missing:
        count = len(verdict.missing)
        warnings.append(Warned("glossary", f"{count} of the glossary's terms are not in it", number))
    alternatives = [restore(segment, each) for each in outcome.alternatives if not verify(segment, each)]
    return Settled(restore(segment, verdict.answer), tuple(alternatives), tuple(warnings), outcome)


def _failure(segment: Segment, outcome: Outcome) -> ServiceError | None:
    verdict = outcome.verdict
    if verdict.finish is not Finish.STOP:
        return TruncatedOutputError(
            f"the model wrote {verdict.output_tokens} tokens without ending its translation of "
            f"{len(segment.text)} characters; it may be repeating itself"
        )
    if any(found.guard is Guard.EMPTY for found in verdict.findings):
        return EmptyOutputError("the model answered with nothing")
    return None


def result_of(text: Text, parts: Sequence[Settled], alternatives: int) -> TranslationResult:
    """The whole of a text from its segments.

    Args:
        text: The text.
        parts: One a segment.
        alternatives: Most to give.
    """
    whole = text.document.rejoin([part.text for part in parts])
    others = dict.fromkeys(
        text.document.rejoin(
            [part.alternatives[number] if number < len(part.alternatives) else part.text for part in parts]
        )
        for number in range(alternatives)
    )
    others.pop(whole, None)
    return TranslationResult(
        whole,
        text.source.tag,
        text.source.confidence,
        tuple(others),
        (*text.warnings, *(warned for part in parts for warned in part.warnings)),
        len(parts),
        sum(part.outcome.prompt_tokens for part in parts),
        sum(part.outcome.output_tokens for part in parts),
    )
