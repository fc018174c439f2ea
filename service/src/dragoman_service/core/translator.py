"""From texts and a pair to translations: prepare, generate, evaluate, in the request's time."""

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
from dragoman_protocols.errors import DeadlineExceededError, EmptyTextError, RequestError
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
from dragoman_service.core.checks import Evaluator, GuardProcess
from dragoman_service.core.concurrency import MAX_CONCURRENT_SEGMENTS, Deduplication, in_order, key_of
from dragoman_service.core.evaluate import result_of, segment_result
from dragoman_service.core.generate import Generator, size_bytes
from dragoman_service.core.glossary_file import GlossaryFile
from dragoman_service.core.prepare import ANY_TERM, Budgets, Preparer, resolve_options
from dragoman_service.core.stages import (
    NO_ORIGIN,
    Observer,
    Origin,
    Outcome,
    PreparedText,
    SegmentResult,
    SegmentTask,
)
from dragoman_service.engine.protocol import Chunk, Decoding, Engine, Prompt
from dragoman_service.errors import SettingsError
from dragoman_service.prompts import prompt_family
from dragoman_service.prompts.family import PromptFamily, PromptOptions
from dragoman_service.settings import Settings
from dragoman_service.text.guards import Expectation, check

INLINE_CHARS = 2000
"""Longer texts are prepared in a thread: this many take about 2 ms."""

MARKUP_RATIO = 4
"""Cost of a character of HTML or XML, relative to plain text."""

TEXT_CHARS = 100
"""Fixed cost of a text, in characters."""

INLINE_SEGMENTS = 200
"""More segments are joined in a thread: each takes about 10 µs."""


class Translator:
    """Translates requests with one engine.

    Args:
        engine: The engine.
        family: Prompt format of the model.
        languages: Pairs that are served; empty means every pair.
        timeout_s: Maximum seconds for a request.
        split: Used if a request has none; None is the model family's preference.
        max_concurrent: Maximum generations of one request in the engine at once.
        glossary: The deployment's terms.
        cache_bytes: Maximum size of the cache of translated segments; 0: no cache.
        observer: Counts the work.
        guards: Guard process, run by the caller; None: guards run in this process.
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
        guards: GuardProcess | None = None,
    ) -> None:
        self.engine = engine
        self.family = family
        self.languages = languages
        self.timeout_s = timeout_s
        self._split = split
        self._max_concurrent = max_concurrent
        self.glossary = glossary
        self._outcomes = Deduplication[Outcome](cache_bytes, size_bytes)
        self._observer = observer or Observer()
        self._budgets = Budgets(engine, family)
        self._evaluator = Evaluator(guards)
        self._origin = NO_ORIGIN
        self._slots: asyncio.Semaphore | None = None

    def on_behalf_of(self, origin: Origin, timeout_s: float | None = None) -> Translator:
        """The same translator for one request, all parts of which share one maximum in the engine.

        Args:
            origin: Passed to the observer and the engine.
            timeout_s: Maximum seconds for the request; default: this translator's.
        """
        other = copy.copy(self)
        other._origin = origin
        other._slots = asyncio.Semaphore(self._max_concurrent)
        if timeout_s is not None:
            other.timeout_s = timeout_s
        return other

    def chat(self, prompt: Prompt, decoding: Decoding, answer_tokens: int) -> AsyncGenerator[Chunk]:
        """One generation that is no translation: no segments, no guards.

        Args:
            prompt: The prompt.
            decoding: Sampling.
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
        """Load what is otherwise loaded on first use, in a thread; about a second. Called while the model loads."""
        await asyncio.to_thread(_load)

    def check(self, request: TranslationRequest) -> Pair:
        """The pair of a request; its source is `UNKNOWN` if it is to be detected.

        Raises:
            CallerError: The texts are empty, the pair is not served, or the model's family does not support
                an option.
        """
        found = pair(request.source_lang, request.target_lang, self.languages)
        if not request.texts:
            raise EmptyTextError("the list of texts is empty")
        for index, text in enumerate(request.texts):
            if not text or text.isspace():
                which = f"text number {index + 1}" if len(request.texts) > 1 else "the text"
                raise EmptyTextError(f"{which} is empty; send text to translate")
        if found.source is not UNKNOWN:
            resolve_options(request, found, self.family)
        return found

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
                parts = await self._results(request, texts)
        except TimeoutError:
            raise _timeout(limit_s) from None

        def results() -> list[TranslationResult]:
            if parts and not any(_has_any(each) for each in parts.values()):
                raise _first_failure([part for each in parts.values() for part in each])
            joined = []
            # Freed here one by one: freeing all of them at once would block the event loop.
            texts.reverse()
            while texts:
                text = texts.pop()
                joined.append(result_of(text, parts.pop(text.index, ()), request.alternatives))
            return joined

        is_short = len(texts) + sum(map(len, parts.values())) <= INLINE_SEGMENTS
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
        if self.glossary is not None:
            await self.glossary.refresh()
        preparer = Preparer(
            request,
            self.engine,
            self.family,
            self._budgets,
            self.languages,
            self._split,
            self._deployed,
        )
        chars = sum(map(len, request.texts)) + TEXT_CHARS * len(request.texts)
        if request.format is not Format.PLAIN:
            chars *= MARKUP_RATIO
        chars += sum(len(term.source) for term in request.terms)

        def prepared() -> list[PreparedText]:
            self.check(request)
            return [preparer.text(index) for index in range(len(request.texts))]

        if chars <= INLINE_CHARS and not self._must_index_glossary(request):
            return prepared()
        return await asyncio.to_thread(prepared)

    def _must_index_glossary(self, request: TranslationRequest) -> bool:
        """Whether the deployment's terms for the pair may have to be indexed first, which can take seconds."""
        if self.glossary is None:
            return False
        if request.source_lang is None:
            return True
        return not self.glossary.is_made(pair(request.source_lang, request.target_lang, self.languages))

    def _deployed(self, pair: Pair) -> Glossary | None:
        return self.glossary.of(pair) if self.glossary is not None else None

    async def _results(
        self, request: TranslationRequest, texts: Sequence[PreparedText]
    ) -> dict[int, list[SegmentResult]]:
        """The segments' results of each text that has segments, by its index."""
        parts: defaultdict[int, list[SegmentResult]] = defaultdict(list)
        async with aclosing(self._segments(request, texts)) as found:
            async for text, part in found:
                parts[text.index].append(part)
        return parts

    async def _segments(
        self, request: TranslationRequest, texts: Sequence[PreparedText]
    ) -> AsyncGenerator[tuple[PreparedText, SegmentResult]]:
        """The results of all texts' segments, in order."""
        slots = self._slots or asyncio.Semaphore(self._max_concurrent)
        generator = Generator(self.engine, self.family, self._observer, self._evaluator, self._origin, slots)
        strict = request.on_finding is OnFinding.FAIL
        known: dict[bytes, Outcome] = {}

        async def work(position: tuple[PreparedText, int]) -> tuple[PreparedText, SegmentResult]:
            text, number = position
            task = text.tasks[number]
            key = _key(task)
            if key in known:
                outcome, how = known[key], "in_flight"
            else:
                outcome, how = await self._outcomes.get(key, lambda: generator.outcome(task))
                known[key] = outcome
            if how != "made":
                self._observer.reused(how, self._origin)
            part = segment_result(number, task.segment, outcome, strict=strict)
            if part.source_kept:
                self._observer.source_kept(self._origin)
            return text, part

        positions = ((text, number) for text in texts for number in range(len(text.tasks)))
        async with aclosing(in_order(positions, work, self._max_concurrent)) as found:
            async for each in found:
                yield each


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


def _load() -> None:
    """Load the model of languages, their names, and patterns, by using them."""
    text = "This text is in English."
    detect(text)
    found = Pair(language("en"), language("de"))
    check(text, f"Translation: {text}", Expectation(found.source.tag, found.target.tag))


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
    if buffered:
        raise _first_failure(every)


def _has_any(parts: Sequence[SegmentResult]) -> bool:
    """Whether there is a translation: a segment that did not fail, or no segment at all."""
    return not parts or any(part.failure is None for part in parts)


def _first_failure(parts: Sequence[SegmentResult]) -> RequestError:
    return next(part.failure for part in parts if part.failure is not None)


def _timeout(limit_s: float) -> DeadlineExceededError:
    return DeadlineExceededError(
        f"the translation was not finished within {limit_s:g} s; send less text at once, or raise "
        "--request-timeout-s"
    )


MAX_ROUNDS = 2
"""Generations of one request in the engine per sequence that it runs: enough to keep it busy; the next request waits
for one round of them rather than for a whole document."""

ANY_PAIR = Pair(language("en"), language("de"))


def max_concurrent(settings: Settings) -> int:
    """Maximum generations of one request in the engine at once."""
    sequences = settings.max_num_seqs
    return min(MAX_CONCURRENT_SEGMENTS, MAX_ROUNDS * sequences) if sequences else MAX_CONCURRENT_SEGMENTS


def translator_of(
    settings: Settings, engine: Engine, observer: Observer, guards: GuardProcess | None = None
) -> Translator:
    """The translator that a pod's settings describe.

    Args:
        settings: The pod's.
        engine: The engine; need not be loaded.
        observer: Counts the work.
        guards: Guard process, if there is one.

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
    )
