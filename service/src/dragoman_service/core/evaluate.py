"""Evaluates generated texts, by markers, guards and terms, and builds results from them; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dragoman_protocols.errors import (
    EmptyOutputError,
    RequestError,
    TruncatedOutputError,
    UnreliableTranslationError,
)
from dragoman_protocols.glossaries.matching import Term, missing
from dragoman_protocols.languages import Pair
from dragoman_protocols.translation import TranslationResult, Warned
from dragoman_service.core.stages import Evaluation, GeneratedText, Outcome, PreparedText, SegmentResult
from dragoman_service.engine.protocol import Decoding, Finish
from dragoman_service.text.document import Segment
from dragoman_service.text.guards import Expectation, Finding, Guard, cleaned
from dragoman_service.text.pieces import MARKER_START
from dragoman_service.text.restoring import restore, verify

NO_TEXT = frozenset({Guard.EMPTY, Guard.TRUNCATED})
"""Guards after which there is no text that could be returned as a translation."""


def output_of(segment: Segment, generated: GeneratedText) -> str:
    """The model's words as they are evaluated and returned."""
    # A source about thoughts and special tokens keeps them.
    clean = cleaned(segment.text) == segment.text.strip()
    return cleaned(generated.text) if clean else generated.text.strip()


def expectation(generated: GeneratedText, pair: Pair) -> Expectation:
    """What the guards need beside the texts."""
    return Expectation(pair.source.tag, pair.target.tag, generated.finish, markers=True)


def evaluate(
    segment: Segment,
    generated: GeneratedText,
    terms: Sequence[Term],
    output: str,
    findings: tuple[Finding, ...],
) -> Evaluation:
    """Everything wrong with a generated text. The guards, which take about a millisecond, have run before.

    Args:
        segment: The segment.
        generated: The engine's output for it.
        terms: Those that apply to the segment.
        output: See `output_of`.
        findings: Of the guards.
    """
    problems = verify(segment, output) if _may_have_markers(segment, output) else ()
    lost_terms = missing(terms, output) if terms else ()
    names = [f"marker_{problem.fault}" for problem in problems]
    names += [finding.guard.value for finding in findings]
    if lost_terms:
        names.append("glossary")
    is_usable = (
        not problems
        and generated.finish is Finish.STOP
        and not any(finding.guard in NO_TEXT for finding in findings)
    )
    return Evaluation(
        output,
        problems,
        findings,
        lost_terms,
        generated.finish,
        generated.output_tokens,
        tuple(dict.fromkeys(names)),
        is_usable,
    )


def better(first: Evaluation, second: Evaluation) -> Evaluation:
    """The better of two texts for the same segment."""
    return min(first, second, key=lambda each: (not each.is_usable, len(each.names)))


def retry_sampling(decoding: Decoding, names: Sequence[str]) -> Decoding:
    """Sampling of a retry: the same prompt sampled in the same way tends to fail in the same way.

    Args:
        decoding: Of the first text.
        names: Its `Evaluation.names`.
    """
    looped = {Guard.REPETITION, Guard.TRUNCATED, Guard.RUNAWAY} & set(names)
    penalty = max(decoding.repetition_penalty, 1.1) if looped else decoding.repetition_penalty
    if decoding.temperature > 0 and not looped:
        return replace(decoding, temperature=0.0, top_p=1.0, top_k=0, seed=None)
    return replace(
        decoding,
        temperature=0.5 if decoding.temperature == 0 else decoding.temperature + 0.2,
        top_p=0.9,
        top_k=decoding.top_k or 50,
        repetition_penalty=penalty,
        seed=1,
    )


def alternative_sampling(decoding: Decoding, number: int) -> Decoding:
    """Sampling of another translation of the same segment; repeatable.

    Args:
        decoding: Of the first.
        number: From 1.
    """
    warmer = max(decoding.temperature, 0.7) + 0.05 * number
    return replace(
        decoding, temperature=min(warmer, 1.2), top_p=0.95, top_k=decoding.top_k or 50, seed=number
    )


def segment_result(number: int, segment: Segment, outcome: Outcome, *, strict: bool) -> SegmentResult:
    """What is returned for a segment.

    Args:
        number: Index of the segment in its text.
        segment: The segment.
        outcome: Of its generations.
        strict: Whether a finding is an error.

    Raises:
        UnreliableTranslationError: A guard reported a finding on the text to return, and `strict` is set.
    """
    evaluation = outcome.evaluation
    if strict and (evaluation.findings or not evaluation.is_usable):
        raise UnreliableTranslationError(
            f"segment {number + 1} of the text has findings after the retry: {', '.join(evaluation.names)}"
        )
    if not evaluation.is_usable:
        failure = _failure(segment, evaluation)
        reason = failure or "the model did not keep its tags and placeholders"
        warning = Warned("source_kept", f"the source text was kept: {reason}", number)
        return SegmentResult(segment.source, (), (warning,), outcome, source_kept=True, failure=failure)
    warnings = [Warned(finding.guard.value, finding.detail, number) for finding in evaluation.findings]
    if evaluation.missing:
        count = len(evaluation.missing)
        warnings.append(Warned("glossary", f"{count} of the glossary's terms are not in it", number))
    alternatives = tuple(restore(segment, each) for each in outcome.alternatives if not verify(segment, each))
    text = evaluation.text
    if _may_have_markers(segment, text):
        text = restore(segment, text)
    return SegmentResult(text, alternatives, tuple(warnings), outcome)


def _may_have_markers(segment: Segment, output: str) -> bool:
    """Whether there can be anything to verify and restore: a segment without pieces is plain text as it stands."""
    return bool(segment.pieces) or MARKER_START in output


def _failure(segment: Segment, evaluation: Evaluation) -> RequestError | None:
    if evaluation.finish is not Finish.STOP:
        return TruncatedOutputError(
            f"the model wrote {evaluation.output_tokens} tokens without ending its translation of "
            f"{len(segment.text)} characters; it may be repeating itself"
        )
    if any(finding.guard is Guard.EMPTY for finding in evaluation.findings):
        return EmptyOutputError("the model's answer is empty")
    return None


def result_of(text: PreparedText, parts: Sequence[SegmentResult], alternatives: int) -> TranslationResult:
    """A text's translation from those of its segments.

    Args:
        text: The text.
        parts: One per segment.
        alternatives: Maximum number of alternatives.
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
        (*text.warnings, *(warning for part in parts for warning in part.warnings)),
        len(parts),
        sum(part.outcome.prompt_tokens for part in parts),
        sum(part.outcome.output_tokens for part in parts),
    )
