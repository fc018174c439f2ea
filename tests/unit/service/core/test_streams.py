"""Streams: early, in order, and never taken back."""

import asyncio
from contextlib import aclosing

import pytest

from dragoman_protocols.errors import DeadlineExceededError, EmptyOutputError, EmptyTextError
from dragoman_protocols.translation import Split, TranslationRequest
from dragoman_service.engine.protocol import Chunk, Finish

GERMAN = {
    "The cat sleeps on the sofa.": "Die Katze schläft auf dem Sofa.",
    "The dog sees the big cat.": "Der Hund sieht die große Katze.",
}
NOTHING = Chunk("", Finish.STOP, 3, 1)


def request_for(*texts, **options):
    return TranslationRequest(texts, "de", "en", **options)


async def test_sentences_come_in_order_and_their_sum_is_the_result(core) -> None:
    translator = core(lambda text, _: GERMAN[text])
    texts = ("The cat sleeps on the sofa. The dog sees the big cat.\n", "12", "The dog sees the big cat.")
    deltas = [delta async for delta in translator.stream(request_for(*texts))]
    assert [(delta.index, delta.text) for delta in deltas] == [
        (0, "Die Katze schläft auf dem Sofa."),
        (0, " Der Hund sieht die große Katze."),
        (0, "\n"),
        (1, "12"),
        (2, "Der Hund sieht die große Katze."),
        (2, ""),
    ]
    for index in range(3):
        (result,) = [delta.result for delta in deltas if delta.index == index and delta.result]
        assert "".join(delta.text for delta in deltas if delta.index == index) == result.text


async def test_sentences_are_joined_as_the_target_language_writes_them(core) -> None:
    text = "猫在沙发上睡觉。狗看见大猫。"
    german = {
        "猫在沙发上睡觉。": "Die Katze schläft auf dem Sofa.",
        "狗看见大猫。": "Der Hund sieht die große Katze.",
    }
    translator = core(lambda text, _: german[text])
    request = TranslationRequest((text,), "de", "zh", split=Split.SENTENCES)
    deltas = [delta async for delta in translator.stream(request)]
    (result,) = await translator.translate(request)
    assert [delta.text for delta in deltas] == [
        "Die Katze schläft auf dem Sofa.",
        " Der Hund sieht die große Katze.",
        "",
    ]
    assert result.text == "".join(delta.text for delta in deltas)


async def test_the_first_piece_does_not_wait_for_the_last(core) -> None:
    release = asyncio.Event()
    translator = core(lambda text, _: GERMAN[text])
    generate = translator.engine.generate

    async def slow(prompt, *args, **kwargs):
        if prompt.segment.startswith("The dog"):
            await release.wait()
        async for chunk in generate(prompt, *args, **kwargs):
            yield chunk

    translator.engine.generate = slow
    async with aclosing(
        translator.stream(request_for("The cat sleeps on the sofa. The dog sees the big cat."))
    ) as deltas:
        assert (await anext(deltas)).text == "Die Katze schläft auf dem Sofa."
        release.set()
        assert (await anext(deltas)).text == " Der Hund sieht die große Katze."


async def test_what_failed_first_is_held_until_something_did_not(core) -> None:
    translator = core(lambda text, _: NOTHING if text.startswith("The cat") else GERMAN[text])
    text = "The cat sleeps on the sofa. The dog sees the big cat."
    deltas = [delta async for delta in translator.stream(request_for(text))]
    assert (
        "".join(delta.text for delta in deltas)
        == "The cat sleeps on the sofa. Der Hund sieht die große Katze."
    )
    with pytest.raises(EmptyOutputError):
        await anext(translator.stream(request_for("The cat sleeps on the sofa.")))


async def test_errors_of_the_request_come_before_the_first_piece(core) -> None:
    translator = core(lambda text, _: text)
    with pytest.raises(EmptyTextError):
        await anext(translator.stream(request_for(" ")))


async def test_a_stream_has_a_deadline_and_frees_its_places(core) -> None:
    translator = core(lambda text, _: text, first_token_s=60, timeout_s=0.05)
    with pytest.raises(DeadlineExceededError):
        await anext(translator.stream(request_for("The cat sleeps on the sofa. The dog sees the big cat.")))
    assert translator.engine.stall_detector.generating == 0


async def test_a_stream_that_is_closed_frees_its_places(core) -> None:
    translator = core(lambda text, _: GERMAN[text])
    generate = translator.engine.generate
    running = 0

    async def stuck(prompt, *args, **kwargs):
        nonlocal running
        if prompt.segment.startswith("The dog"):
            running += 1
            try:
                await asyncio.Event().wait()
            finally:
                running -= 1
        async for chunk in generate(prompt, *args, **kwargs):
            yield chunk

    translator.engine.generate = stuck
    stream = translator.stream(request_for("The cat sleeps on the sofa. The dog sees the big cat."))
    await anext(stream)
    assert running == 1
    await stream.aclose()
    assert running == 0
