"""One generation, and the loop around it that ends with an answer to give or with none."""

from __future__ import annotations

import asyncio
import re
import sys
import time
import uuid
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from dragoman_protocols.errors import GenerationError
from dragoman_protocols.glossaries.matching import Term
from dragoman_protocols.languages import Pair
from dragoman_service.core.checks import Judge
from dragoman_service.core.evaluate import Answer, Verdict, alternative_sampling, better, other_sampling
from dragoman_service.core.observer import Observer, Origin
from dragoman_service.core.side_by_side import together
from dragoman_service.engine.protocol import Chunk, Decoding, Engine, Prompt
from dragoman_service.prompts.family import PromptFamily
from dragoman_service.prompts.wishes import Wishes
from dragoman_service.text.preparation import Segment

RUN = re.compile(r"(\S{1,3}?)\1{9}")
"""A source with such a run (dot leaders, rules) has a right to it in its translation."""


@dataclass(frozen=True)
class Asked:
    """What makes a segment's outcome; equal for two segments only if either's outcome does for both.

    Args:
        segment: What is to be translated.
        pair: Its languages.
        wishes: What the prompt says beside it, terms included.
        terms: Those that apply, for the check.
        alternatives: Further translations wanted.
    """

    segment: Segment
    pair: Pair
    wishes: Wishes
    terms: tuple[Term, ...] = ()
    alternatives: int = 0

    def key(self) -> tuple[object, ...]:
        """All that can change the outcome."""
        return (
            self.segment.text,
            self.segment.source,
            self.segment.format,
            self.pair.source.tag,
            self.pair.target.tag,
            self.wishes,
            self.terms,
            self.alternatives,
        )


@dataclass(frozen=True)
class Outcome:
    """What came of a segment.

    Args:
        verdict: On the answer to give.
        names: All that fired on the way, as metrics name it.
        retried: Whether it was generated twice.
        alternatives: Further answers, all of them usable and different.
        prompt_tokens: Read by the engine.
        output_tokens: Written by the engine.
    """

    verdict: Verdict
    names: tuple[str, ...] = ()
    retried: bool = False
    alternatives: tuple[str, ...] = ()
    prompt_tokens: int = 0
    output_tokens: int = 0


def size_bytes(outcome: Outcome) -> int | None:
    """What a kept outcome takes; None for one with findings, which another try may spare."""
    if not outcome.verdict.is_clean:
        return None
    return sum(map(sys.getsizeof, (outcome.verdict.answer, *outcome.alternatives)))


@dataclass(frozen=True)
class Generator:
    """Asks the engine for one segment.

    Args:
        engine: What generates.
        family: Words and sampling.
        observer: Told of what fires.
        judge: Of the answers.
        origin: Of the request.
        slots: Generations that the request may have in the engine at once.
    """

    engine: Engine
    family: PromptFamily
    observer: Observer
    judge: Judge
    origin: Origin
    slots: asyncio.Semaphore

    async def outcome(self, asked: Asked) -> Outcome:
        """An answer, tried twice where the first has something against it.

        Raises:
            EngineError: The engine failed.
            CapacityError: It has no place.
            TextTooLongError: The segment does not fit the model.
        """
        began_s = time.monotonic()
        prompt = self.family.prompt(asked.segment.text, asked.pair, asked.wishes)
        decoding = self.family.decoding
        if RUN.search(asked.segment.text):
            decoding = replace(decoding, stop_on_repetition=False)
        priority = self.origin.priority
        urgency = priority(asked.pair, self.engine.count_tokens(asked.segment.text)) if priority else 0
        answers = [await self.answer(prompt, decoding, urgency)]
        verdict = await self._judged(asked, answers[0])
        retried = not verdict.is_clean
        self._tell(verdict)
        names = verdict.names
        if retried:
            self.observer.retried(self.origin)
            if self.origin.added is not None:
                self.origin.added(answers[0].prompt_tokens + answers[0].output_tokens)
            answers.append(await self.answer(prompt, other_sampling(decoding, names), urgency))
            second = await self._judged(asked, answers[1])
            self._tell(second)
            names += second.names
            verdict = better(verdict, second)
        others = await self._alternatives(asked, prompt, decoding, urgency) if asked.alternatives else []
        answers += [answer for answer, _ in others]
        read = sum(answer.prompt_tokens for answer in answers)
        written = sum(answer.output_tokens for answer in answers)
        self.observer.segment(asked.pair, time.monotonic() - began_s, read, written, self.origin)
        return Outcome(
            verdict,
            names,
            retried,
            _different(verdict.answer, [judgement for _, judgement in others]),
            read,
            written,
        )

    async def answer(self, prompt: Prompt, decoding: Decoding, priority: int = 0) -> Answer:
        """One generation, to its end, once the request has a slot for it.

        Raises:
            EngineError: The engine failed.
        """
        async with self.slots:
            return await self._answer(prompt, decoding, priority)

    async def _answer(self, prompt: Prompt, decoding: Decoding, priority: int) -> Answer:
        pieces: list[str] = []
        last: Chunk | None = None
        chunks = self.engine.generate(
            prompt,
            decoding,
            uuid.uuid4().hex,
            priority=priority,
            trace_headers=self.origin.trace_headers,
        )
        async with aclosing(chunks):
            async for last in chunks:
                pieces.append(last.text)
        if last is None or last.finish is None:
            raise GenerationError("the engine ended the generation without saying why")
        return Answer("".join(pieces), last.finish, last.prompt_tokens, last.output_tokens)

    async def _alternatives(
        self, asked: Asked, prompt: Prompt, decoding: Decoding, priority: int
    ) -> list[tuple[Answer, Verdict]]:
        answers = await together(
            [
                self.answer(prompt, alternative_sampling(decoding, number), priority)
                for number in range(1, asked.alternatives + 1)
            ]
        )
        return [(answer, await self._judged(asked, answer)) for answer in answers]

    async def _judged(self, asked: Asked, answer: Answer) -> Verdict:
        return await self.judge.verdict(asked.segment, answer, asked.pair, asked.terms)

    def _tell(self, verdict: Verdict) -> None:
        for name in verdict.names:
            self.observer.finding(name, self.origin)


def _different(first: str, others: Sequence[Verdict]) -> tuple[str, ...]:
    answers = dict.fromkeys(other.answer for other in others if other.is_clean)
    answers.pop(first, None)
    return tuple(answers)
