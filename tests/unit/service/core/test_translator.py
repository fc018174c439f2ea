import asyncio
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from tests.support.engines import AnsweringEngine

from dragoman_contract.languages import Languages
from dragoman_protocols.errors import (
    DeadlineExceededError,
    EmptyOutputError,
    EmptyTextError,
    GenerationError,
    TruncatedOutputError,
    UnsupportedPairError,
)
from dragoman_protocols.translation import TranslationRequest
from dragoman_service.core.concurrency import MAX_CONCURRENT_SEGMENTS
from dragoman_service.core.translator import Translator
from dragoman_service.engine.protocol import Chunk, Finish
from dragoman_service.engine.scripted.engine import Script, ScriptedEngine
from dragoman_service.prompts.families import prompt_family


def make_translator(timeout_s: float = 30.0, **script: Any) -> Translator:
    engine = ScriptedEngine(Script(**script), "m", CollectorRegistry())
    served = (Languages(source="en", targets=("de",)),)
    return Translator(engine, prompt_family("chatml-generic"), served, timeout_s)


def request_for(*texts: str, target_lang: str = "de") -> TranslationRequest:
    return TranslationRequest(texts, target_lang, "en")


async def settled() -> None:
    """Let every task run until it waits for time to pass."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_texts_are_answered_in_their_order() -> None:
    results = await make_translator().translate(request_for("ab", "cd", "ef"))
    assert [result.text for result in results] == ["ba", "dc", "fe"]


async def test_texts_run_side_by_side() -> None:
    translator = make_translator(first_token_s=0.5, timeout_s=4)
    assert len(await translator.translate(request_for(*(f"a{number}b" for number in range(10))))) == 10


async def test_a_long_list_does_not_take_the_whole_engine() -> None:
    translator = make_translator(first_token_s=60, max_num_seqs=1000)
    task = asyncio.create_task(translator.translate(request_for(*(f"a{number}b" for number in range(300)))))
    async with asyncio.timeout(
        30
    ):  # So many texts are prepared in a thread, and started a few at a turn of the loop.
        while translator.engine.stall_detector.generating < MAX_CONCURRENT_SEGMENTS:
            await settled()
    await settled()
    assert translator.engine.stall_detector.generating == MAX_CONCURRENT_SEGMENTS
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert (
        len(await make_translator().translate(request_for(*(f"a{number}b" for number in range(300))))) == 300
    )


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("",), "the text is empty"),
        ((" \n\t",), "the text is empty"),
        (("a", " "), "text number 2"),
        ((), "list"),
    ],
)
async def test_empty_texts_are_refused(texts: tuple[str, ...], message: str) -> None:
    with pytest.raises(EmptyTextError, match=message):
        await make_translator().translate(request_for(*texts))


async def test_another_pair_is_refused() -> None:
    with pytest.raises(UnsupportedPairError):
        await make_translator().translate(request_for("a", target_lang="fr"))


async def test_what_takes_too_long_is_given_up_and_aborted() -> None:
    translator = make_translator(timeout_s=0.05, first_token_s=60)
    with pytest.raises(DeadlineExceededError, match=r"within 0\.05 s"):
        await translator.translate(request_for("a", "b"))
    assert translator.engine.stall_detector.generating == 0


async def test_one_failed_text_fails_the_request_and_aborts_the_others() -> None:
    translator = make_translator(fail_every=2, max_num_seqs=8)
    with pytest.raises(GenerationError):
        await translator.translate(request_for("a", "b", "c"))
    assert translator.engine.stall_detector.generating == 0


async def test_a_cancelled_request_aborts_its_generations() -> None:
    translator = make_translator(first_token_s=60)
    task = asyncio.create_task(translator.translate(request_for("a", "b")))
    await settled()
    assert translator.engine.stall_detector.generating == 2
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert translator.engine.stall_detector.generating == 0


def answering(*chunks: Chunk) -> AnsweringEngine:
    return AnsweringEngine(lambda *_: chunks)


@pytest.mark.parametrize(
    ("chunks", "error"),
    [
        ([Chunk("ja ja ja", Finish.LENGTH, 3, 99)], TruncatedOutputError),
        ([Chunk("\n ", Finish.STOP, 3, 1)], EmptyOutputError),
        ([], GenerationError),
        ([Chunk("half")], GenerationError),
    ],
)
async def test_an_output_that_is_no_translation_is_an_error(
    chunks: list[Chunk], error: type[Exception]
) -> None:
    translator = Translator(answering(*chunks), prompt_family("alma"))
    with pytest.raises(error):
        await translator.translate(request_for("a"))


async def test_chunks_are_joined_and_trimmed() -> None:
    translator = Translator(answering(Chunk(" Hal"), Chunk("lo\n", Finish.STOP)), prompt_family("alma"))
    assert [result.text for result in await translator.translate(request_for("a"))] == ["Hallo"]
