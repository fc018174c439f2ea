"""What runs in processes of their own: the guards, and all that long texts need."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, groupby

from dragoman_protocols.detection import detect
from dragoman_protocols.translation import Split, TranslationRequest
from dragoman_service.core.glossary_file import GlossaryFile
from dragoman_service.core.prepare import TEXT_CHARS, Preparer
from dragoman_service.core.stages import PreparedText
from dragoman_service.core.worker_process import WorkerProcess, WorkerProcessError
from dragoman_service.engine.protocol import Engine, TokenCounter
from dragoman_service.prompts.families import prompt_family
from dragoman_service.settings import Settings
from dragoman_service.text.guards import Expectation, Finding, check
from dragoman_service.text.segmented_text import SegmentedText

BATCH_CHARS = 20_000
"""Texts of one call to the process, unless one is longer: other requests have their turn between calls."""

PART_PIECES = 256
"""Pieces of segments that are sent back at once: unpickling them takes about a millisecond."""

SEGMENT_PIECES = 4
"""A segment's, or a text's, own objects, in pieces."""

NICENESS = 10
"""Of the process for long texts, so that the event loop comes first where they share a CPU, and still leaves it a
tenth."""

MAX_PENDING = 1000
"""Of the process for long texts: a request has 128 segments in the engine at once, each of which is checked."""

MAX_PENDING_GUARDS = 64
"""Of the guard process; beyond them the event loop is faster, however busy it is."""


class Guards:
    """The guards, with what they need loaded."""

    def __init__(self) -> None:
        detect("Load the detection model before the first text.")

    def check(self, source: str, output: str, expected: Expectation) -> tuple[tuple[Finding, ...]]:
        """As `guards.check`."""
        return (check(source, output, expected),)


class LongTexts(Guards):
    """The guards, and what prepares long texts.

    Args:
        preparer: Prepares them; None: they cannot be prepared in this process.
    """

    def __init__(self, preparer: Preparer | None, glossary: GlossaryFile | None) -> None:
        super().__init__()
        self._preparer, self._glossary = preparer, glossary

    def texts(self, request: TranslationRequest, first: int) -> Iterator[list[PreparedText]]:
        """All texts in parts, as `packed`, their indices from `first` on; as `Preparer.texts`."""
        if self._preparer is None:
            raise WorkerProcessError
        if self._glossary is not None:
            asyncio.run(self._glossary.refresh())
        return packed(replace(text, index=first + text.index) for text in self._preparer.texts(request))


def guard_process() -> WorkerProcess:
    """A process for the guards."""
    return WorkerProcess("guard process", lambda: Guards, MAX_PENDING_GUARDS)


def long_texts_process(settings: Settings, engine: Engine) -> WorkerProcess:
    """A process for the long texts of a pod, whose engine is loaded before it is called."""
    return WorkerProcess(
        "process for long texts",
        lambda: partial(_long_texts, settings, engine.counter()),
        MAX_PENDING,
        NICENESS,
    )


def _long_texts(settings: Settings, counter: TokenCounter | None) -> LongTexts:
    if counter is None:
        return LongTexts(None, None)
    glossary = GlossaryFile(settings.glossary) if settings.glossary else None
    family = prompt_family(settings.prompt_family, settings.prompt_template)
    split = Split(settings.split) if settings.split else None
    return LongTexts(Preparer(counter, family, settings.languages, split, glossary), glossary)


async def prepared(process: WorkerProcess, request: TranslationRequest) -> list[PreparedText]:
    """As `Preparer.texts`, of a request that was checked.

    Raises:
        WorkerProcessError: The caller has to do it.
    """
    texts: list[PreparedText] = []
    for first, batch in batches(request):
        texts += joined(await process.call("texts", batch, first))
    return texts


def batches(request: TranslationRequest) -> Iterator[tuple[int, TranslationRequest]]:
    """A request as several with about `BATCH_CHARS` each, and the index of the first text of each."""
    first = chars = 0
    for end, text in enumerate(request.texts, 1):
        chars += len(text) + TEXT_CHARS
        if chars >= BATCH_CHARS or end == len(request.texts):
            yield first, replace(request, texts=request.texts[first:end])
            first, chars = end, 0


def packed(texts: Iterable[PreparedText]) -> Iterator[list[PreparedText]]:
    """Texts, and parts of texts, in lists with about `PART_PIECES` each."""
    part: list[PreparedText] = []
    pieces = 0
    for text in texts:
        document, start = text.document, 0
        for end, segment in enumerate(document.segments):
            if pieces >= PART_PIECES:
                part.append(_slice(text, start, end))
                yield part
                part, pieces, start = [], 0, end
            pieces += SEGMENT_PIECES + len(segment.pieces)
        part.append(_slice(text, start, len(document.between)))
        pieces += SEGMENT_PIECES
        if pieces >= PART_PIECES:
            yield part
            part, pieces = [], 0
    if part:
        yield part


def _slice(text: PreparedText, start: int, end: int) -> PreparedText:
    whole = text.document
    document = SegmentedText(whole.segments[start:end], whole.between[start:end], whole.joints[start:end])
    return replace(text, document=document, tasks=text.tasks[start:end])


def joined(parts: Iterable[list[PreparedText]]) -> list[PreparedText]:
    """The texts that were `packed`."""
    texts = groupby(chain.from_iterable(parts), lambda text: text.index)
    return [_whole(*slices) for _, slices in texts]


def _whole(first: PreparedText, *others: PreparedText) -> PreparedText:
    if not others:
        return first
    slices = (first, *others)
    segments = chain.from_iterable(each.document.segments for each in slices)
    between = chain.from_iterable(each.document.between for each in slices)
    joints = chain.from_iterable(each.document.joints for each in slices)
    tasks = chain.from_iterable(each.tasks for each in slices)
    return replace(
        first, document=SegmentedText(tuple(segments), tuple(between), tuple(joints)), tasks=tuple(tasks)
    )
