"""Evaluates generated texts, by markers, guards and terms, and builds results from them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
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
from dragoman_service.core.concurrency import Slice
from dragoman_service.core.stages import Evaluation, GeneratedText, Outcome, PreparedText, SegmentResult
from dragoman_service.core.worker_process import WorkerProcess, WorkerProcessError
from dragoman_service.engine.protocol import Decoding, Finish
from dragoman_service.text.chat import cleaned
from dragoman_service.text.guards import Expectation, Finding, Guard, check
from dragoman_service.text.pieces import MARKER_START
from dragoman_service.text.restoring import restore, verify
from dragoman_service.text.segmented_text import Segment

INLINE_CHARS = 2_000
"""Longer texts, source and output together, are checked in the process for long texts, or in a thread, so that short
ones do not queue behind them in the guard process or on the event loop: the guards take about 2 µs a character."""

Findings = tuple[Finding, ...]

NO_TEXT = frozenset({Guard.EMPTY, Guard.TRUNCATED})
"""Guards after which there is no text that could be returned as a translation."""


def output_of(segment: Segment, generated: GeneratedText) -> str:
    """The model's words as they are evaluated and returned."""
    # A source about thoughts and special tokens keeps them.
    clean = cleaned(segment.text) == segment.text.strip()
    return cleaned(generated.text) if clean else generated.text.strip()


def evaluate(
    segment: Segment,
    generated: GeneratedText,
    terms: Sequence[Term],
    output: str,
    findings: tuple[Finding, ...],
) -> Evaluation:
    """Everything wrong with a generated text, of which `output` is cleaned, from what the guards found in it."""
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
    """Sampling of a retry, from that of the first text and the `Evaluation.names` of it.

    The same prompt sampled in the same way tends to fail in the same way.
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
    """Sampling of another translation of the same segment, by its number from 1; repeatable."""
    warmer = max(decoding.temperature, 0.7) + 0.05 * number
    return replace(
        decoding, temperature=min(warmer, 1.2), top_p=0.95, top_k=decoding.top_k or 50, seed=number
    )


class Evaluator:
    """Evaluates generated texts so that many at once do not block the event loop.

    On the event loop, in slices: a lock takes a turn of the loop for each text, and a thread waits milliseconds
    for a busy event loop, so that with hundreds of generations in flight either is slower than an engine.

    Args:
        guards: Process for the segments of short requests; None: the event loop.
        long_texts: Process for those of long ones; None: the event loop, or a thread.
    """

    def __init__(self, guards: WorkerProcess | None = None, long_texts: WorkerProcess | None = None) -> None:
        self._guards, self._long_texts = guards, long_texts
        self._waiting: deque[tuple[asyncio.Future[Findings], str, str, Expectation]] = deque()
        self._working = False

    async def evaluation(
        self,
        segment: Segment,
        generated: GeneratedText,
        pair: Pair,
        terms: Sequence[Term],
        *,
        of_long: bool = False,
    ) -> Evaluation:
        """Everything wrong with a generated text."""
        output = output_of(segment, generated)
        expected = Expectation(pair.source.tag, pair.target.tag, generated.finish, markers=True)
        found = await self.findings(segment.text, output, expected, of_long=of_long)
        return evaluate(segment, generated, terms, output, found)

    async def findings(
        self, source: str, output: str, expected: Expectation, *, of_long: bool = False
    ) -> Findings:
        """See `guards.check`, and `evaluation`."""
        is_long = len(source) + len(output) > INLINE_CHARS
        process = self._long_texts if is_long or of_long else self._guards
        if process is not None:
            with suppress(WorkerProcessError):
                findings: Findings
                (findings,) = await process.call("check", source, output, expected)
                return findings
        if is_long:
            return await asyncio.to_thread(check, source, output, expected)
        loop = asyncio.get_running_loop()
        found: asyncio.Future[Findings] = loop.create_future()
        self._waiting.append((found, source, output, expected))
        if not self._working:
            self._working = True
            loop.call_soon(self._work, loop)
        return await found

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        slice_ = Slice()
        while self._waiting and not slice_.is_over:
            found, source, output, expected = self._waiting.popleft()
            if found.done():
                # The caller was cancelled.
                continue
            try:
                found.set_result(check(source, output, expected))
            except Exception as error:
                found.set_exception(error)
        if self._waiting:
            loop.call_soon(self._work, loop)
        else:
            self._working = False


def segment_result(number: int, segment: Segment, outcome: Outcome, *, strict: bool) -> SegmentResult:
    """What is returned for the segment with index `number` of its text.

    Raises:
        UnreliableTranslationError: A guard reported a finding on the text to return, and `strict` is set.
    """
    evaluation = outcome.evaluation
    if strict and (evaluation.findings or outcome.aligned or not evaluation.is_usable):
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
    if outcome.aligned:
        detail = "the model lost tags of the text; they are where they belong by alignment of words"
        warnings.append(Warned("tags_aligned", detail, number))
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
    """A text's translation from those of its segments, with at most `alternatives` others."""
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
        sum(part.from_memory for part in parts),
    )
