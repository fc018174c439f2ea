"""From texts and a pair to translations: what a request goes through, from its check to its result."""

from __future__ import annotations

import asyncio
import copy
import uuid
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

from dragoman_contract.languages import Languages
from dragoman_protocols.detection import detect
from dragoman_protocols.errors import DeadlineExceededError, EmptyTextError, ServiceError
from dragoman_protocols.glossaries.matching import Glossary
from dragoman_protocols.languages import UNKNOWN, Pair, language, pair
from dragoman_protocols.translation import (
    Delta,
    Format,
    OnFinding,
    Split,
    TranslationRequest,
    TranslationResult,
)
from dragoman_service.core.checks import Judge
from dragoman_service.core.checks_process import GuardProcess
from dragoman_service.core.generate import Generator, Outcome, size_bytes
from dragoman_service.core.glossary_file import GlossaryFile
from dragoman_service.core.observer import NOWHERE, Observer, Origin, Silent
from dragoman_service.core.prepare import Budgets, Preparer
from dragoman_service.core.sharing import Sharing, key_of
from dragoman_service.core.side_by_side import in_order
from dragoman_service.core.texts import Settled, Text, result_of, settled
from dragoman_service.core.wanted import wanted
from dragoman_service.engine.protocol import Chunk, Decoding, Engine, Prompt
from dragoman_service.prompts.family import PromptFamily
from dragoman_service.text.guards import Expectation, check

MOST_SIDE_BY_SIDE = 128
"""Generations of one request that the engine holds at once, alternatives and all targets included: handing over a
thousand takes the event loop for longer than other callers should wait, and more than this fill the batch of no CPU and
few GPUs."""

PREPARED_INLINE_CHARS = 2000
"""Longer texts are prepared in a thread: this many take about 2 ms."""

MARKUP_RATIO = 4
"""What a character of HTML or XML costs, against one of plain text."""

TEXT_CHARS = 100
"""What a text costs beside its characters, in theirs."""

JOINED_INLINE = 200
"""More segments are put together in a thread: each takes about 10 µs."""


class Translator:
    """Everything a translation needs that does not change between requests.

    Args:
        engine: What generates.
        family: How the model wants to be asked.
        languages: Pairs that are served; empty means every pair.
        timeout_s: Seconds after which a request is given up.
        split: What ends a segment where a request does not say; None is as the model wants it.
        side_by_side: Generations of one request that the engine holds at once.
        glossary: The deployment's terms.
        cache_bytes: What outcomes that are kept for later requests may take; 0 keeps none.
        observer: Told of what happens.
        guards: A process for them, run by whoever made it; None has them run on the event loop.
    """

    def __init__(
        self,
        engine: Engine,
        family: PromptFamily,
        languages: tuple[Languages, ...] = (),
        timeout_s: float = 30.0,
        *,
        split: Split | None = None,
        side_by_side: int = MOST_SIDE_BY_SIDE,
        glossary: GlossaryFile | None = None,
        cache_bytes: int = 0,
        observer: Observer | None = None,
        guards: GuardProcess | None = None,
    ) -> None:
        self.engine = engine
        self.family = family
        self.languages = languages
        self.timeout_s = timeout_s
        self._split = split
        self._side_by_side = side_by_side
        self.glossary = glossary
        self._sharing = Sharing[Outcome](cache_bytes, size_bytes)
        self._observer = observer or Silent()
        self._budgets = Budgets(engine, family)
        self._judge = Judge(guards)
        self._origin = NOWHERE
        self._slots: asyncio.Semaphore | None = None

    def on_behalf_of(self, origin: Origin, timeout_s: float | None = None) -> Translator:
        """The same translator for one caller's request, all parts of which share one bound in the engine.

        Args:
            origin: Passed to the observer and the engine.
            timeout_s: Seconds after which the request is given up; default: this translator's.
        """
        other = copy.copy(self)
        other._origin = origin
        other._slots = asyncio.Semaphore(self._side_by_side)
        if timeout_s is not None:
            other.timeout_s = timeout_s
        return other

    def chat(self, prompt: Prompt, decoding: Decoding, answer_tokens: int) -> AsyncGenerator[Chunk]:
        """One generation that is no translation: no segments, no guards.

        Args:
            prompt: What the engine reads.
            decoding: How it answers.
            answer_tokens: Expected length of the answer, for its priority.
        """
        origin = self._origin
        return self.engine.generate(
            prompt,
            decoding,
            uuid.uuid4().hex,
            priority=origin.priority(None, answer_tokens) if origin.priority else 0,
            trace_headers=origin.trace_headers,
        )

    async def warm_up(self) -> None:
        """Load what is loaded on first use, in a thread; a second or so. Called while the model loads."""
        await asyncio.to_thread(_load)

    def check(self, asked: TranslationRequest) -> Pair:
        """The pair asked for; its source is `UNKNOWN` where it is to be detected.

        Raises:
            CallerError: The texts are empty, the pair is not served, or the model's family cannot be told
                the request's wishes.
        """
        found = pair(asked.source_lang, asked.target_lang, self.languages)
        if not asked.texts:
            raise EmptyTextError("the list of texts is empty")
        for index, text in enumerate(asked.texts):
            if not text or text.isspace():
                which = f"text number {index + 1}" if len(asked.texts) > 1 else "the text"
                raise EmptyTextError(f"{which} is empty; send something to translate")
        if found.source is not UNKNOWN:
            wanted(asked, found, self.family)
        return found

    async def translate(self, asked: TranslationRequest) -> list[TranslationResult]:
        """Translate all texts, their segments side by side in the engine.

        Cancelling this aborts every generation that nobody else waits for.

        Raises:
            CallerError: The request cannot be answered as it is.
            DeadlineExceededError: It took more than `timeout_s`, or than the request gives it.
            UnreliableTranslationError: A guard fired, and the request asked to fail then.
            EngineError: The engine failed, or none of the segments could be translated.
        """
        limit_s = self._limit_s(asked)
        try:
            async with asyncio.timeout(limit_s):
                texts = await self._prepared(asked)
                parts = await self._gathered(asked, texts)
        except TimeoutError:
            raise _late(limit_s) from None

        def results() -> list[TranslationResult]:
            if parts and not any(_has_any(each) for each in parts.values()):
                raise _first_failure([part for each in parts.values() for part in each])
            made = []
            # What has been joined is freed here, piece by piece: all of it at once would be the event loop's work.
            texts.reverse()
            while texts:
                text = texts.pop()
                made.append(result_of(text, parts.pop(text.index, ()), asked.alternatives))
            return made

        is_short = len(texts) + sum(map(len, parts.values())) <= JOINED_INLINE
        return results() if is_short else await asyncio.to_thread(results)

    async def stream(self, asked: TranslationRequest) -> AsyncGenerator[Delta]:
        """Translate all texts, giving each segment as soon as it and all before it are done.

        What was given is never taken back: a segment is checked, and tried again, before it is. Where the
        request leaves the splitting open, each sentence is a segment. Closing the generator aborts as
        cancelling `translate` does.

        Raises:
            As `translate` does; errors of the request itself come before the first delta.
        """
        limit_s = self._limit_s(asked)
        end_s = asyncio.get_running_loop().time() + limit_s
        if asked.split is None and self._split is None:
            asked = replace(asked, split=Split.SENTENCES)
        try:
            async with asyncio.timeout_at(end_s):
                texts = await self._prepared(asked)
        except TimeoutError:
            raise _late(limit_s) from None
        async with aclosing(self._settled(asked, texts)) as found:
            deltas = _deltas(found, texts, asked.alternatives)
            async with aclosing(deltas):
                while True:
                    try:
                        async with asyncio.timeout_at(end_s):
                            delta = await anext(deltas, None)
                    except TimeoutError:
                        raise _late(limit_s) from None
                    if delta is None:
                        return
                    yield delta

    def _limit_s(self, asked: TranslationRequest) -> float:
        return self.timeout_s if asked.timeout_s is None else min(self.timeout_s, asked.timeout_s)

    async def _prepared(self, asked: TranslationRequest) -> list[Text]:
        if self.glossary is not None:
            await self.glossary.refresh()
        preparer = Preparer(
            asked,
            self.engine,
            self.family,
            self._budgets,
            self.languages,
            self._split,
            self._deployed,
        )
        chars = sum(map(len, asked.texts)) + TEXT_CHARS * len(asked.texts)
        if asked.format is not Format.PLAIN:
            chars *= MARKUP_RATIO
        chars += sum(len(term.source) for term in asked.terms)

        def prepared() -> list[Text]:
            self.check(asked)
            return [preparer.text(index) for index in range(len(asked.texts))]

        if chars <= PREPARED_INLINE_CHARS and not self._has_glossary_to_make(asked):
            return prepared()
        return await asyncio.to_thread(prepared)

    def _has_glossary_to_make(self, asked: TranslationRequest) -> bool:
        """Whether the deployment's terms for a pair may have to be made first, which takes long."""
        if self.glossary is None:
            return False
        if asked.source_lang is None:
            return True
        return not self.glossary.is_made(pair(asked.source_lang, asked.target_lang, self.languages))

    def _deployed(self, pair: Pair) -> Glossary | None:
        return self.glossary.of(pair) if self.glossary is not None else None

    async def _gathered(self, asked: TranslationRequest, texts: Sequence[Text]) -> dict[int, list[Settled]]:
        """The segments of each text that has any, by its index."""
        parts: defaultdict[int, list[Settled]] = defaultdict(list)
        async with aclosing(self._settled(asked, texts)) as found:
            async for text, part in found:
                parts[text.index].append(part)
        return parts

    async def _settled(
        self, asked: TranslationRequest, texts: Sequence[Text]
    ) -> AsyncGenerator[tuple[Text, Settled]]:
        """The segments of all texts in order, decided on."""
        slots = self._slots or asyncio.Semaphore(self._side_by_side)
        generator = Generator(self.engine, self.family, self._observer, self._judge, self._origin, slots)
        strict = asked.on_finding is OnFinding.FAIL
        known: dict[bytes, Outcome] = {}

        async def work(place: tuple[Text, int]) -> tuple[Text, Settled]:
            text, number = place
            wish = text.asked[number]
            key = key_of(*wish.key())
            if key in known:
                outcome, how = known[key], "in_flight"
            else:
                outcome, how = await self._sharing.get(key, lambda: generator.outcome(wish))
                known[key] = outcome
            if how != "made":
                self._observer.reused(how, self._origin)
            part = settled(number, wish.segment, outcome, strict=strict)
            if part.untouched:
                self._observer.untouched(self._origin)
            return text, part

        places = ((text, number) for text in texts for number in range(len(text.asked)))
        async with aclosing(in_order(places, work, self._side_by_side)) as found:
            async for each in found:
                yield each


def _load() -> None:
    """Use what is loaded on first use: models of languages, their names, patterns."""
    text = "What is loaded on first use is loaded now."
    detect(text)
    found = Pair(language("en"), language("de"))
    check(text, f"Translation: {text}", Expectation(found.source.tag, found.target.tag))


async def _deltas(
    found: AsyncGenerator[tuple[Text, Settled]], texts: Sequence[Text], alternatives: int
) -> AsyncGenerator[Delta]:
    """Settled segments as pieces of their texts; failures wait until something did not fail."""
    held: deque[Delta] = deque()
    every: list[Settled] = []
    has_any = False
    for text in texts:
        parts: list[Settled] = []
        for number in range(len(text.asked)):
            _, part = await anext(found)
            parts.append(part)
            every.append(part)
            has_any = has_any or part.failure is None
            held.append(Delta(text.index, text.document.between[number] + part.text))
            while held and has_any:
                yield held.popleft()
        whole = result_of(text, parts, alternatives)
        held.append(Delta(text.index, text.document.between[-1], whole))
        while held and (has_any or not every):
            yield held.popleft()
    if held:
        raise _first_failure(every)


def _has_any(parts: Sequence[Settled]) -> bool:
    """Whether there is anything to give: a segment that did not fail, or none that could."""
    return not parts or any(part.failure is None for part in parts)


def _first_failure(parts: Sequence[Settled]) -> ServiceError:
    return next(part.failure for part in parts if part.failure is not None)


def _late(limit_s: float) -> DeadlineExceededError:
    return DeadlineExceededError(
        f"the translation was not finished within {limit_s:g} s and was given up; send less text at once, or raise "
        "--request-timeout-s"
    )
