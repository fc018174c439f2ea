"""Generates segments: one generation each, its evaluation, a retry if it has findings; equal segments only once."""

from __future__ import annotations

import asyncio
import re
import sys
import time
import uuid
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from dragoman_protocols.errors import GenerationError
from dragoman_service.core.concurrency import Deduplication, How, key_of, together
from dragoman_service.core.evaluate import (
    Evaluator,
    alternative_sampling,
    better,
    retry_sampling,
    segment_result,
)
from dragoman_service.core.memory import Memory
from dragoman_service.core.retag import Retagged, is_wanted, retag
from dragoman_service.core.stages import (
    Evaluation,
    GeneratedText,
    Observer,
    Origin,
    Outcome,
    SegmentResult,
    SegmentTask,
)
from dragoman_service.engine.protocol import Chunk, Decoding, Engine, Prompt
from dragoman_service.metric_definitions import (
    GUARD_FINDINGS,
    REUSED_SEGMENTS,
    SEGMENT_RETRIES,
    SOURCE_KEPT_SEGMENTS,
)
from dragoman_service.prompts.family import PromptFamily

RUN = re.compile(r"(?=(\S{4})\S\S\1)(\S{1,3}?)\2{9}")
"""A translation may repeat such a run (dot leaders, rules) of its source. All of them repeat after six characters: most
texts fail this first, cheaper condition."""


def size_bytes(outcome: Outcome) -> int | None:
    """Bytes of an outcome in the cache; None for one with findings: it is not cached."""
    if outcome.evaluation.names:
        return None
    return sum(map(sys.getsizeof, (outcome.evaluation.text, *outcome.alternatives)))


@dataclass(frozen=True)
class Generator:
    """Generates segments for one request.

    Args:
        observer: Counts findings and retries.
        evaluator: Evaluates the generated texts.
        slots: Generations that the request may have in the engine at once.
        memory: Its segments are not generated.
    """

    engine: Engine
    family: PromptFamily
    observer: Observer
    evaluator: Evaluator
    outcomes: Deduplication[Outcome]
    origin: Origin
    slots: asyncio.Semaphore
    is_long: bool
    memory: Memory | None = None
    _outcomes: dict[bytes, asyncio.Future[Outcome]] = field(default_factory=dict, init=False)
    """Of the request's segments, from their start on: equal ones have one outcome."""

    async def result(self, number: int, task: SegmentTask, *, strict: bool) -> SegmentResult:
        """What is returned for the segment with index `number` of its text; raises as `outcome` does.

        Raises:
            UnreliableTranslationError: A guard reported a finding on the text to return, and `strict` is set.
        """
        remembered = None if self.memory is None else self.memory.result(task.segment)
        if remembered is not None:
            self.observer.count(REUSED_SEGMENTS, "memory")
            return remembered
        outcome, how = await self._outcome_once(task)
        if how != "made":
            self.observer.count(REUSED_SEGMENTS, how)
        result = segment_result(number, task.segment, outcome, strict=strict)
        if result.source_kept:
            self.observer.count(SOURCE_KEPT_SEGMENTS)
        return result

    async def _outcome_once(self, task: SegmentTask) -> tuple[Outcome, How]:
        key = _key(task)
        if key in self._outcomes:
            return await asyncio.shield(self._outcomes[key]), "in_flight"
        known = self._outcomes[key] = asyncio.get_running_loop().create_future()
        try:
            outcome, how = await self.outcomes.get(key, lambda: self.outcome(task))
        except BaseException:
            # The failure ends the request, and with it those who wait.
            known.cancel()
            raise
        known.set_result(outcome)
        return outcome, how

    async def outcome(self, task: SegmentTask) -> Outcome:
        """The outcome of a segment, generated a second time if the first text has findings.

        Raises:
            EngineError: The engine failed.
            CapacityError: The engine's queue is full.
            TextTooLongError: The segment does not fit the model.
        """
        started_s = time.monotonic()
        prompt = self.family.prompt(task.segment.text, task.pair, task.options)
        decoding = self.family.decoding
        if RUN.search(task.segment.text):
            decoding = replace(decoding, stop_on_repetition=False)
        priority = self.origin.priority
        urgency = priority(task.pair, self.engine.count_tokens(task.segment.text)) if priority else 0
        texts = [await self.generate(prompt, decoding, urgency)]
        evaluation = await self._evaluated(task, texts[0])
        names = evaluation.names
        aligned = False
        retried = bool(names)
        self._count(evaluation)
        if retried:
            self.observer.count(SEGMENT_RETRIES)
            if self.origin.added is not None:
                self.origin.added(texts[0].prompt_tokens + texts[0].output_tokens)
            texts.append(await self.generate(prompt, retry_sampling(decoding, names), urgency))
            second = await self._evaluated(task, texts[1])
            self._count(second)
            names += second.names
            evaluations = (evaluation, second)
            evaluation = better(evaluation, second)
            if is_wanted(evaluation):
                retagged = await self._retagged(task, evaluations, decoding, urgency)
                texts += retagged.texts
                if retagged.evaluation is not None:
                    self._count(retagged.evaluation)
                    evaluation, aligned = retagged.evaluation, retagged.aligned
                    names += evaluation.names
        others = await self._alternatives(task, prompt, decoding, urgency) if task.alternatives else []
        texts += [text for text, _ in others]
        read = sum(text.prompt_tokens for text in texts)
        written = sum(text.output_tokens for text in texts)
        self.observer.segment(task.pair, time.monotonic() - started_s, read, written, self.origin)
        return Outcome(
            evaluation,
            names,
            retried,
            _different(evaluation.text, [each for _, each in others]),
            read,
            written,
            aligned,
        )

    async def _retagged(
        self, task: SegmentTask, evaluations: Sequence[Evaluation], decoding: Decoding, urgency: int
    ) -> Retagged:
        async def generated(other: SegmentTask) -> tuple[GeneratedText, Evaluation]:
            prompt = self.family.prompt(other.segment.text, other.pair, other.options)
            text = await self.generate(prompt, decoding, urgency)
            if self.origin.added is not None:
                self.origin.added(text.prompt_tokens + text.output_tokens)
            return text, await self._evaluated(other, text)

        return await retag(task, evaluations, generated)

    async def generate(self, prompt: Prompt, decoding: Decoding, priority: int = 0) -> GeneratedText:
        """One complete generation, started once the request has a slot for it.

        Raises:
            EngineError: The engine failed.
        """
        async with self.slots:
            return await self._generate(prompt, decoding, priority)

    async def _generate(self, prompt: Prompt, decoding: Decoding, priority: int) -> GeneratedText:
        pieces: list[str] = []
        last: Chunk | None = None
        chunks = self.engine.generate(
            prompt,
            decoding,
            uuid.uuid4().hex,
            priority=priority,
            trace_headers=self.origin.trace_headers,
        )
        started = self.observer.generation_started(self.engine.capacity.sequences)
        try:
            async with aclosing(chunks):
                async for last in chunks:
                    pieces.append(last.text)
        finally:
            self.observer.generation_ended(started, 0 if last is None else last.output_tokens)
        if last is None or last.finish is None:
            raise GenerationError("the engine ended the generation without a reason")
        return GeneratedText("".join(pieces), last.finish, last.prompt_tokens, last.output_tokens)

    async def _alternatives(
        self, task: SegmentTask, prompt: Prompt, decoding: Decoding, priority: int
    ) -> list[tuple[GeneratedText, Evaluation]]:
        texts = await together(
            [
                self.generate(prompt, alternative_sampling(decoding, number), priority)
                for number in range(1, task.alternatives + 1)
            ]
        )
        return [(text, await self._evaluated(task, text)) for text in texts]

    async def _evaluated(self, task: SegmentTask, text: GeneratedText) -> Evaluation:
        return await self.evaluator.evaluation(
            task.segment, text, task.pair, task.terms, of_long=self.is_long
        )

    def _count(self, evaluation: Evaluation) -> None:
        for name in evaluation.names:
            self.observer.count(GUARD_FINDINGS, name)


def _different(first: str, others: Sequence[Evaluation]) -> tuple[str, ...]:
    texts = dict.fromkeys(other.text for other in others if not other.names)
    texts.pop(first, None)
    return tuple(texts)


def _key(task: SegmentTask) -> bytes:
    """A key of everything that can change a segment's outcome."""
    segment = task.segment
    return key_of(
        segment.text,
        segment.source,
        segment.format,
        task.pair.source.tag,
        task.pair.target.tag,
        task.options,
        task.terms,
        task.alternatives,
    )
