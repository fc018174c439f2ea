"""From texts and a pair to translations: prepare, generate, evaluate, within the request's time limit."""

from __future__ import annotations

import asyncio
import copy
import uuid
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from itertools import chain

from dragoman_contract.languages import Languages
from dragoman_protocols.detection import detect
from dragoman_protocols.errors import DeadlineExceededError, RequestError
from dragoman_protocols.languages import Pair, language
from dragoman_protocols.translation import Delta, OnFinding, Split, TranslationRequest, TranslationResult
from dragoman_service.core.concurrency import MAX_CONCURRENT_SEGMENTS, Deduplication, in_order
from dragoman_service.core.evaluate import Evaluator, result_of
from dragoman_service.core.generate import Generator, size_bytes
from dragoman_service.core.glossary_file import GlossaryFile
from dragoman_service.core.long_texts import prepared
from dragoman_service.core.memory import Memory
from dragoman_service.core.prepare import ANY_TERM, Preparer
from dragoman_service.core.stages import NO_ORIGIN, Observer, Origin, Outcome, PreparedText, SegmentResult
from dragoman_service.core.worker_process import WorkerProcess, WorkerProcessError
from dragoman_service.engine.protocol import Chunk, Decoding, Engine, Prompt
from dragoman_service.errors import SettingsError
from dragoman_service.prompts.families import prompt_family
from dragoman_service.prompts.family import PromptFamily, PromptOptions
from dragoman_service.settings import Settings
from dragoman_service.text.blanks import spaced
from dragoman_service.text.guards import Expectation, check

INLINE_SEGMENTS = 200
"""More segments are joined in a thread: each takes about 10 µs."""

MAX_ROUNDS = 2
"""Generations of one request in the engine per sequence that it runs: enough to keep it busy; the next request waits
for one round of them rather than for a whole document."""

Progress = Callable[[float], None]

ANY_PAIR = Pair(language("en"), language("de"))


class Translator:
    """Translates requests with one engine.

    Args:
        languages: Pairs that are served; empty means every pair.
        timeout_s: Maximum seconds for a request.
        split: Used if a request has none; None is the model family's preference.
        max_concurrent: Maximum generations of one request in the engine at once.
        cache_bytes: Maximum size of the cache of translated segments; 0: no cache.
        guards: Guard process, run by the caller; None: guards run in this process.
        long_texts: Process for long texts, run by the caller; None: a thread.
    """

    def __init__(
        self,
        engine: Engine,
        family: PromptFamily,
        languages: tuple[Languages, ...] = (),
        timeout_s: float = 30.0,
        *,
        split: Split | None = None,
        max_concurrent: int = MAX_CONCURRENT_SEGMENTS,
        glossary: GlossaryFile | None = None,
        cache_bytes: int = 0,
        observer: Observer | None = None,
        guards: WorkerProcess | None = None,
        long_texts: WorkerProcess | None = None,
    ) -> None:
        self.engine = engine
        self.family = family
        self.timeout_s = timeout_s
        self._split = split
        self._max_concurrent = max_concurrent
        self.glossary = glossary
        self._outcomes = Deduplication[Outcome](cache_bytes, size_bytes)
        self._observer = observer or Observer()
        self._preparer = Preparer(engine, family, languages, split, glossary)
        self.check = self._preparer.check
        self._evaluator = Evaluator(guards, long_texts)
        self._long_texts = long_texts
        self._origin = NO_ORIGIN
        self._progress: Progress | None = None
        self._slots: asyncio.Semaphore | None = None

    def on_behalf_of(
        self, origin: Origin, timeout_s: float | None = None, progress: Progress | None = None
    ) -> Translator:
        """The same translator for one request, all parts of which share one maximum in the engine.

        Args:
            origin: The request's properties.
            timeout_s: Maximum seconds; None: the translator's.
            progress: Called after each segment with the share of segments that are complete, above 0 and up to 1.
        """
        other = copy.copy(self)
        other._origin = origin
        other._progress = progress
        other._slots = asyncio.Semaphore(self._max_concurrent)
        if timeout_s is not None:
            other.timeout_s = timeout_s
        return other

    def chat(self, prompt: Prompt, decoding: Decoding, answer_tokens: int) -> AsyncGenerator[Chunk]:
        """One generation without segments and guards; its priority is by the expected tokens of its answer."""
        origin = self._origin
        return self.engine.generate(
            prompt,
            decoding,
            uuid.uuid4().hex,
            priority=origin.priority(None, answer_tokens) if origin.priority else 0,
            trace_headers=origin.trace_headers,
        )

    async def warm_up(self) -> None:
        """Load what is otherwise loaded on first use, in a thread; about a second. Called while the model loads."""
        await asyncio.to_thread(_load)

    async def translate(self, request: TranslationRequest) -> list[TranslationResult]:
        """Translate all texts, their segments concurrently.

        Cancelling this aborts every generation that no other request waits for.

        Raises:
            CallerError: The request is invalid.
            DeadlineExceededError: It took longer than `timeout_s`, or than the request's own limit.
            UnreliableTranslationError: A guard reported a finding, and the request has `on_finding=fail`.
            EngineError: The engine failed, or none of the segments could be translated.
        """
        limit_s = self._limit_s(request)
        try:
            async with asyncio.timeout(limit_s):
                texts = await self._prepared(request)
                parts: list[list[SegmentResult]] = [[] for _ in texts]
                total, done = sum(len(text.tasks) for text in texts), 0
                async with aclosing(self._segments(request, texts)) as found:
                    async for text, part in found:
                        parts[text.index].append(part)
                        done += 1
                        if self._progress is not None:
                            self._progress(done / total)
        except TimeoutError:
            raise _timeout(limit_s) from None

        def results() -> list[TranslationResult]:
            _raise_if_all_failed(chain.from_iterable(parts))
            joined = []
            # Freed here one by one: freeing all of them at once would block the event loop.
            texts.reverse()
            parts.reverse()
            while texts:
                joined.append(result_of(texts.pop(), parts.pop(), request.alternatives))
            return joined

        is_short = len(texts) + sum(map(len, parts)) <= INLINE_SEGMENTS
        return results() if is_short else await asyncio.to_thread(results)

    async def stream(self, request: TranslationRequest) -> AsyncGenerator[Delta]:
        """Translate all texts, yielding each segment as soon as it and all before it are complete.

        A segment is evaluated, and retried, before it is yielded. Each sentence is a segment unless the request or
        the deployment sets `split`. Closing the generator aborts as cancelling `translate` does.

        Raises:
            As `translate` does; errors of the request itself come before the first delta.
        """
        limit_s = self._limit_s(request)
        end_s = asyncio.get_running_loop().time() + limit_s
        if request.split is None and self._split is None:
            request = replace(request, split=Split.SENTENCES)
        try:
            async with asyncio.timeout_at(end_s):
                texts = await self._prepared(request)
        except TimeoutError:
            raise _timeout(limit_s) from None
        async with aclosing(self._segments(request, texts)) as found:
            deltas = _deltas(found, texts, request.alternatives)
            async with aclosing(deltas):
                while True:
                    try:
                        async with asyncio.timeout_at(end_s):
                            delta = await anext(deltas, None)
                    except TimeoutError:
                        raise _timeout(limit_s) from None
                    if delta is None:
                        return
                    yield delta

    def _limit_s(self, request: TranslationRequest) -> float:
        return self.timeout_s if request.timeout_s is None else min(self.timeout_s, request.timeout_s)

    async def _prepared(self, request: TranslationRequest) -> list[PreparedText]:
        texts = await (self._remembered(request) if request.memory else self._prepared_alone(request))

        def with_blanks() -> list[PreparedText]:
            return [
                replace(text, document=spaced(text.document, text.source.pair)) if text.source.pair else text
                for text in texts
            ]

        return await asyncio.to_thread(with_blanks) if self._preparer.is_long(request) else with_blanks()

    async def _remembered(self, request: TranslationRequest) -> list[PreparedText]:
        # Not with the memory: the process for long texts has no use for it.
        alone, memory = replace(request, memory={}), Memory(request.memory)
        if request.split is not None or self._split is not None:
            return memory.applied(alone, await self._prepared_alone(alone))
        # A memory has sentences, or whole texts; a text with none of them is segmented as without it.
        texts = memory.applied(alone, await self._prepared_alone(replace(alone, split=Split.SENTENCES)))
        others = [text.index for text in texts if not memory.has_some(text)]
        if others:
            again = replace(alone, texts=tuple(request.texts[index] for index in others))
            for text in await self._prepared_alone(again):
                index = others[text.index]
                texts[index] = replace(text, index=index)
        return texts

    async def _prepared_alone(self, request: TranslationRequest) -> list[PreparedText]:
        if self.glossary is not None:
            await self.glossary.refresh()
        is_long = self._preparer.is_long(request)
        if is_long and self._long_texts is not None:
            self.check(request)
            with suppress(WorkerProcessError):
                return await prepared(self._long_texts, request)
        if is_long or self._preparer.indexes_terms(request):
            return await asyncio.to_thread(self._preparer.texts, request)
        return self._preparer.texts(request)

    async def _segments(
        self, request: TranslationRequest, texts: Sequence[PreparedText]
    ) -> AsyncGenerator[tuple[PreparedText, SegmentResult]]:
        """The results of all texts' segments, in order."""
        generator = Generator(
            self.engine,
            self.family,
            self._observer,
            self._evaluator,
            self._outcomes,
            self._origin,
            self._slots or asyncio.Semaphore(self._max_concurrent),
            self._preparer.is_long(request),
            Memory(request.memory) if request.memory else None,
        )
        strict = request.on_finding is OnFinding.FAIL

        async def generated(position: tuple[PreparedText, int]) -> tuple[PreparedText, SegmentResult]:
            text, number = position
            return text, await generator.result(number, text.tasks[number], strict=strict)

        positions = ((text, number) for text in texts for number in range(len(text.tasks)))
        async with aclosing(in_order(positions, generated, self._max_concurrent)) as found:
            async for each in found:
                yield each


async def _deltas(
    found: AsyncGenerator[tuple[PreparedText, SegmentResult]],
    texts: Sequence[PreparedText],
    alternatives: int,
) -> AsyncGenerator[Delta]:
    """Results of segments as pieces of their texts; failures are buffered until one segment did not fail."""
    buffered: deque[Delta] = deque()
    every: list[SegmentResult] = []
    has_any = False
    for text in texts:
        parts: list[SegmentResult] = []
        for number in range(len(text.tasks)):
            _, part = await anext(found)
            parts.append(part)
            every.append(part)
            has_any = has_any or part.failure is None
            buffered.append(Delta(text.index, text.document.between[number] + part.text))
            while buffered and has_any:
                yield buffered.popleft()
        whole = result_of(text, parts, alternatives)
        buffered.append(Delta(text.index, text.document.between[-1], whole))
        while buffered and (has_any or not every):
            yield buffered.popleft()
    _raise_if_all_failed(every)


def _raise_if_all_failed(parts: Iterable[SegmentResult]) -> None:
    failure: RequestError | None = None
    for part in parts:
        if part.failure is None:
            return
        failure = failure or part.failure
    if failure is not None:
        raise failure


def _timeout(limit_s: float) -> DeadlineExceededError:
    return DeadlineExceededError(
        f"the translation was not finished within {limit_s:g} s, the limit of this service; send less text at once"
    )


def _load() -> None:
    """Load the model of languages, their names, and patterns, by using them."""
    text = "This text is in English."
    detect(text)
    expected = Expectation(ANY_PAIR.source.tag, ANY_PAIR.target.tag)
    check(text, f"Translation: {text}", expected)


def max_concurrent(settings: Settings) -> int:
    """Maximum generations of one request in the engine at once."""
    sequences = settings.max_num_seqs
    return min(MAX_CONCURRENT_SEGMENTS, MAX_ROUNDS * sequences) if sequences else MAX_CONCURRENT_SEGMENTS


def translator_of(
    settings: Settings,
    engine: Engine,
    observer: Observer,
    guards: WorkerProcess | None = None,
    long_texts: WorkerProcess | None = None,
) -> Translator:
    """The translator that a pod's settings describe, with an engine that need not be loaded yet.

    Raises:
        PromptTemplateError: The prompt family cannot be used.
        SettingsError: The glossary cannot be read, or the family does not support one.
    """
    family = prompt_family(settings.prompt_family, settings.prompt_template)
    if settings.glossary is not None and family.unsupported(ANY_PAIR, PromptOptions(terms=ANY_TERM)):
        raise SettingsError(
            f"--glossary: models of family {family.name} do not support terms; remove it, or use another model"
        )
    return Translator(
        engine,
        family,
        settings.languages,
        settings.request_timeout_s,
        split=Split(settings.split) if settings.split else None,
        max_concurrent=max_concurrent(settings),
        glossary=GlossaryFile(settings.glossary) if settings.glossary else None,
        cache_bytes=settings.translation_cache_bytes,
        observer=observer,
        guards=guards,
        long_texts=long_texts,
    )
