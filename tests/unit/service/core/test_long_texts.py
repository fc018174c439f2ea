"""Long texts in a process of their own: the same tasks and translations as in this one."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from dragoman_protocols.errors import UnknownLanguageError
from dragoman_protocols.glossaries.matching import Term
from dragoman_protocols.offer import offer_of
from dragoman_protocols.served import pair_of
from dragoman_protocols.translation import Format, Split, TranslationRequest
from dragoman_service.core import long_texts, prepare
from dragoman_service.core.long_texts import (
    BATCH_CHARS,
    PART_PIECES,
    SEGMENT_PIECES,
    batches,
    joined,
    long_texts_process,
    packed,
    prepared,
)
from dragoman_service.core.prepare import Preparer
from dragoman_service.core.stages import PreparedText, SegmentTask, SourceLanguage
from dragoman_service.core.worker_process import WorkerProcess, WorkerProcessError
from dragoman_service.engine.scripted.engine import Script, ScriptedEngine
from dragoman_service.prompts.families import prompt_family
from dragoman_service.prompts.family import NO_OPTIONS
from dragoman_service.settings import Settings
from dragoman_service.text.pieces import Piece
from dragoman_service.text.segmented_text import Segment, SegmentedText

START_S = 60
Started = Callable[..., AbstractAsyncContextManager[None]]
SENTENCE = "The train number {} leaves at noon and everybody is waiting for it on the platform. "
PLAIN = "".join(SENTENCE.format(number) + ("\n\n  " if number % 9 == 0 else "") for number in range(600))
HTML = "".join(f"<p>Hello <b>train</b> {number} <i>of <br/> many</i>.</p>" for number in range(300))
PAIR = pair_of("en", "de", offer_of([()]))


ENGINE = ScriptedEngine(Script(), "m", CollectorRegistry())


PREPARER = Preparer(ENGINE, prompt_family("chatml-generic", None), (), None, None)


def text_of(index: int, pieces: list[int]) -> PreparedText:
    """A prepared text whose segments have so many pieces."""
    segments = tuple(
        Segment(f"{at}", f"{at}", tuple(Piece("a", "a") for _ in range(count)))
        for at, count in enumerate(pieces)
    )
    between = tuple(str(at) for at in range(len(segments) + 1))
    tasks = tuple(SegmentTask(segment, PAIR, NO_OPTIONS) for segment in segments)
    joints = tuple(at % 3 == 0 for at in range(len(between)))
    return PreparedText(
        index, SourceLanguage("en", None, PAIR), SegmentedText(segments, between, joints), tasks
    )


@given(st.lists(st.lists(st.integers(0, PART_PIECES), max_size=30), min_size=1, max_size=5))
def test_parts_are_small_and_joined_are_the_texts(pieces: list[list[int]]) -> None:
    texts = [text_of(index, each) for index, each in enumerate(pieces)]
    parts = list(packed(texts))
    assert joined(parts) == texts
    for part in parts:
        counts = [len(segment.pieces) for text in part for segment in text.document.segments]
        size = sum(counts) + SEGMENT_PIECES * (len(counts) + len(part))
        assert 0 < size <= PART_PIECES + max(counts, default=0) + 3 * SEGMENT_PIECES
        assert all(len(text.tasks) == len(text.document.segments) for text in part)


@given(st.lists(st.integers(1, 2 * BATCH_CHARS), min_size=1, max_size=30))
def test_batches_are_the_request_s_texts_in_order(lengths: list[int]) -> None:
    request = TranslationRequest(tuple("x" * length for length in lengths), "de", "en", split=Split.LINES)
    found = list(batches(request))
    assert [first for first, _ in found] == [
        sum(len(batch.texts) for _, batch in found[:at]) for at in range(len(found))
    ]
    assert sum((batch.texts for _, batch in found), ()) == request.texts
    for _, batch in found:
        assert batch.split == request.split
        assert sum(map(len, batch.texts[:-1])) < BATCH_CHARS


REQUESTS = {
    "plain": TranslationRequest((PLAIN,), "de", "en"),
    "detected": TranslationRequest((PLAIN, "123", "Der Zug fährt um zwölf Uhr ab."), "de"),
    "html": TranslationRequest((HTML, HTML), "de", "en", Format.HTML),
    "many": TranslationRequest((SENTENCE,) * 900, "de", "en", context="Of trains."),
    "terms": TranslationRequest((PLAIN,), "de", "en", terms=(Term("train", "Zug"),)),
}


@pytest.fixture
async def process(make_settings: Callable[..., Settings], started: Started) -> AsyncIterator[WorkerProcess]:
    process = long_texts_process(make_settings(), ENGINE)
    async with started(process, prepared(process, REQUESTS["plain"])):
        yield process


@pytest.mark.slow
async def test_the_process_prepares_what_this_one_does_and_refuses_what_this_one_does(
    process: WorkerProcess,
) -> None:
    for request in REQUESTS.values():
        async with asyncio.timeout(START_S):
            assert await prepared(process, request) == PREPARER.texts(request)
    unknown = TranslationRequest(("ᚠᚢᚦ " * 3000,), "de")
    with pytest.raises(UnknownLanguageError) as here:
        PREPARER.texts(unknown)
    async with asyncio.timeout(START_S):
        with pytest.raises(UnknownLanguageError) as there:
            await prepared(process, unknown)
    assert str(there.value) == str(here.value)


@pytest.mark.slow
async def test_a_long_request_has_its_turn_between_the_texts_of_others(process: WorkerProcess) -> None:
    many = TranslationRequest((PLAIN,) * 20, "de", "en")
    async with asyncio.timeout(START_S):
        first = asyncio.create_task(prepared(process, many))
        await asyncio.sleep(0)
        await prepared(process, REQUESTS["plain"])
        assert not first.done()
        await first


@pytest.mark.slow
async def test_a_core_translates_the_same_with_it_and_after_its_death(
    core: Any, process: WorkerProcess
) -> None:
    request = TranslationRequest((PLAIN, "Short."), "de", "en")
    expected = await core(lambda text, _: text.upper(), timeout_s=100).translate(request)
    calls: list[str] = []
    call = process.call

    async def counted(method: str, *arguments: Any) -> Any:
        calls.append(method)
        return await call(method, *arguments)

    process.call = counted  # type: ignore[method-assign]
    translator = core(lambda text, _: text.upper(), timeout_s=100, long_texts=process)
    assert await translator.translate(request) == expected
    assert set(calls) == {"texts", "check"}
    assert process.pid is not None
    os.kill(process.pid, signal.SIGSTOP)
    waiting = asyncio.create_task(translator.translate(request))
    while calls.count("texts") == 1:  # noqa: ASYNC110 - a call is no event
        await asyncio.sleep(0)
    os.kill(process.pid, signal.SIGKILL)
    assert await waiting == expected


def test_terms_of_the_deployment_are_reloaded_there_and_short_requests_do_not_go_there(
    make_settings: Callable[..., Settings], tmp_path: Path
) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("en\tde\ttrain\tZug\n")
    served = long_texts._long_texts(make_settings(glossary=path), ENGINE.counter())
    request = TranslationRequest((SENTENCE,), "de", "en")

    def terms() -> set[str]:
        return {
            term.target
            for part in served.texts(request, 0)
            for text in part
            for task in text.tasks
            for term in task.terms
        }

    assert terms() == {"Zug"}
    path.write_text("en\tde\ttrain\tBahn\n")
    end_s = time.monotonic() + START_S
    while terms() != {"Bahn"} and time.monotonic() < end_s:
        pass
    assert terms() == {"Bahn"}


def test_without_a_tokenizer_that_can_leave_its_process_the_caller_prepares(
    make_settings: Callable[..., Settings],
) -> None:
    served = long_texts._long_texts(make_settings(), None)
    with pytest.raises(WorkerProcessError):
        next(served.texts(REQUESTS["plain"], 0))


@pytest.mark.parametrize(
    ("length", "long"), [(prepare.INLINE_CHARS - prepare.TEXT_CHARS, False), (2000, True)]
)
def test_length_decides_what_is_long(length: int, long: bool) -> None:
    assert PREPARER.is_long(TranslationRequest(("x" * length,), "de", "en")) is long
