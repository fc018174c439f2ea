"""Segments of which the model lost tags or placeholders: translated without tags, which are put back by alignment."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from dragoman_service.core.concurrency import together
from dragoman_service.core.stages import Evaluation, GeneratedText, SegmentTask
from dragoman_service.engine.protocol import Finish
from dragoman_service.text.pieces import markers_in
from dragoman_service.text.restoring import verify
from dragoman_service.text.retagging import parts, retagged
from dragoman_service.text.segmented_text import Segment
from dragoman_service.text.untagged import Untagged, answer_to, untagged, without_markers

FINDING = "tags_aligned"
"""Finding on a segment whose tags were put back by alignment."""

MAX_REQUESTS = 2
"""Generations for one segment, beside those that lost its tags."""

INLINE_CHARS = 500
"""Tags of longer segments, source and translation together, are aligned in a thread: 1,300 with 20 tags
take 10 ms."""

Result = TypeVar("Result")

Generate = Callable[[SegmentTask], Awaitable[tuple[GeneratedText, Evaluation]]]
"""Generates and evaluates a segment."""


@dataclass(frozen=True)
class Retagged:
    """What became of a segment.

    Args:
        evaluation: Of a text with all markers; None if there is none.
        aligned: Whether tags were put back by alignment.
        texts: What was generated for it.
    """

    evaluation: Evaluation | None
    aligned: bool
    texts: tuple[GeneratedText, ...]


def is_wanted(evaluation: Evaluation) -> bool:
    """Whether a text is unusable because of its tags and placeholders."""
    return bool(evaluation.problems) and not evaluation.is_usable


async def retag(task: SegmentTask, evaluations: Sequence[Evaluation], generate: Generate) -> Retagged:
    """Translate a segment without its tags and put them back.

    One of the texts that lost tags is taken where nothing else is wrong with it; else the segment is generated without
    tags. The parts of it that had tags and are not found in the translation are generated alone.

    Args:
        task: The segment.
        evaluations: Of the texts that lost tags or placeholders.
        generate: Called at most `MAX_REQUESTS` times.
    """
    source = untagged(task.segment)
    if _has_marker(source.text):
        return Retagged(None, False, ())
    texts: list[GeneratedText] = []
    found = _without_loss(source, evaluations)
    if found is None:
        text, evaluation = await generate(_task(task, source.text))
        texts.append(text)
        answer = answer_to(source, evaluation.text) if evaluation.is_usable else None
        if answer is None:
            return Retagged(None, False, tuple(texts))
        found = evaluation, answer
    evaluation, answer = found
    wanted = await _timely(source, answer, lambda: parts(source, answer))
    hints: dict[str, str] = {}
    if wanted:
        hints, more = await _translated(task, wanted, MAX_REQUESTS - len(texts), generate)
        texts += more
    text_with_tags = await _timely(source, answer, lambda: retagged(source, answer, hints))
    if text_with_tags is None or verify(task.segment, text_with_tags):
        return Retagged(None, False, tuple(texts))
    aligned = bool(source.tags)
    names = tuple(finding.guard.value for finding in evaluation.findings)
    names += ("glossary",) * bool(evaluation.missing) + (FINDING,) * aligned
    evaluation = replace(evaluation, text=text_with_tags, problems=(), names=names, is_usable=True)
    return Retagged(evaluation, aligned, tuple(texts))


def _without_loss(source: Untagged, evaluations: Sequence[Evaluation]) -> tuple[Evaluation, Untagged] | None:
    """One of the texts with which nothing is wrong but its tags."""
    for evaluation in evaluations:
        if evaluation.finish is Finish.STOP and not evaluation.findings and not evaluation.missing:
            answer = without_markers(source, evaluation.text)
            if answer is not None:
                return evaluation, answer
    return None


async def _translated(
    task: SegmentTask, wanted: Sequence[str], count: int, generate: Generate
) -> tuple[dict[str, str], list[GeneratedText]]:
    """Translations of parts, by their texts: one request for each, or one for all of them, a line each."""
    lines = [" ".join(text.split()) for text in wanted]
    requested = lines if len(lines) <= count else ["\n".join(lines)]
    if any(map(_has_marker, requested)):
        return {}, []
    done = await together([_one(generate, _task(task, text)) for text in requested])
    texts = [generated for generated, _ in done]
    if len(requested) == len(lines):
        answers = [evaluation.text if evaluation.is_usable else "" for _, evaluation in done]
    else:
        answers = done[0][1].text.split("\n") if done[0][1].is_usable else []
    return (dict(zip(wanted, answers, strict=True)) if len(answers) == len(wanted) else {}), texts


def _has_marker(text: str) -> bool:
    """Whether literal text, such as "<x4/>", would be taken for a marker of a segment that has none."""
    return any(markers_in(text))


async def _one(generate: Generate, task: SegmentTask) -> tuple[GeneratedText, Evaluation]:
    return await generate(task)


def _task(task: SegmentTask, text: str) -> SegmentTask:
    return replace(task, segment=Segment(text, text), alternatives=0)


async def _timely(source: Untagged, answer: Untagged, work: Callable[[], Result]) -> Result:
    """The result of work in a thread where the texts are long."""
    if len(source.text) + len(answer.text) > INLINE_CHARS:
        return await asyncio.to_thread(work)
    return work()
