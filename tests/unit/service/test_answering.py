"""What all endpoints share, without HTTP."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from starlette.responses import JSONResponse, Response

from dragoman_protocols.errors import GenerationError
from dragoman_protocols.languages import pair
from dragoman_protocols.translation import Delta, TranslationRequest, TranslationResult
from dragoman_service.http.work import Call


class Core:
    """Answers with the target language, once all that was asked for is under way.

    Args:
        meet: How many requests have to be under way.
        failing: Target whose requests fail.
    """

    def __init__(self, meet: int = 1, failing: str = "") -> None:
        self._barrier = asyncio.Barrier(meet)
        self._failing = failing
        self.ended: list[str] = []

    def check(self, asked: TranslationRequest) -> Any:
        return pair("en", asked.target_lang, ())

    async def translate(self, asked: TranslationRequest) -> list[TranslationResult]:
        try:
            async with asyncio.timeout(5):
                await self._barrier.wait()
            if asked.target_lang == self._failing:
                raise GenerationError("failed")
            if self._failing:
                await asyncio.Event().wait()
            return [TranslationResult(f"{text} {asked.target_lang}", "en") for text in asked.texts]
        finally:
            self.ended.append(asked.target_lang)

    async def stream(self, asked: TranslationRequest) -> AsyncGenerator[Delta]:
        try:
            for text in asked.texts:
                yield Delta(0, text)
        finally:
            self.ended.append(asked.target_lang)


def request_for(target: str) -> TranslationRequest:
    return TranslationRequest(("a", "b"), target, "en")


def rendered(results: Any) -> Response:
    return JSONResponse([[result.text for result in each] for each in results])


async def test_targets_are_translated_side_by_side_and_answered_in_order() -> None:
    core: Any = Core(meet=3)
    call = Call((request_for("fr"), request_for("de"), request_for("ne")), rendered)
    answer = await call.answer(core)
    assert answer.body == b'[["a fr","b fr"],["a de","b de"],["a ne","b ne"]]'
    assert call.texts == ["a", "b"] * 3


async def test_the_first_target_that_fails_ends_the_others() -> None:
    core: Any = Core(meet=2, failing="de")
    with pytest.raises(GenerationError):
        await Call((request_for("fr"), request_for("de")), rendered).answer(core)
    assert sorted(core.ended) == ["de", "fr"]


async def test_nothing_to_translate_is_an_answer_too() -> None:
    core: Any = Core()
    call = Call((), rendered)
    assert call.check(core) is None
    assert (await call.answer(core)).body == b"[]"


class Written:
    def delta(self, delta: Delta) -> bytes:
        return delta.text.encode()

    def end(self) -> bytes:
        return b"end"

    def failed(self, error: Any) -> bytes:
        return b"failed"


async def test_a_stream_that_is_closed_closes_the_cores() -> None:
    core: Any = Core()
    call = Call((request_for("fr"),), rendered, Written())
    assert call.streams
    assert [event async for event in call.stream(core)] == [b"a", b"b", b"end"]
    stream = call.stream(core)
    assert await anext(stream) == b"a"
    core.ended.clear()
    await stream.aclose()
    assert core.ended == ["fr"]
