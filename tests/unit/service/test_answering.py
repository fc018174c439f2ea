"""What all endpoints share, without HTTP."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from dragoman_protocols.calls import Translate
from dragoman_protocols.errors import GenerationError
from dragoman_protocols.messages import Answer, json_answer
from dragoman_protocols.offer import offer_of
from dragoman_protocols.served import pair_of
from dragoman_protocols.translation import Delta, TranslationRequest, TranslationResult
from dragoman_service.http.endpoints import TranslationWork


class Core:
    """Answers with the target language, once all requests are in progress.

    Args:
        meet: How many requests have to be in progress.
        failing: Target whose requests fail.
    """

    def __init__(self, meet: int = 1, failing: str = "") -> None:
        self._barrier = asyncio.Barrier(meet)
        self._failing = failing
        self.ended: list[str] = []

    def check(self, request: TranslationRequest) -> Any:
        return pair_of("en", request.target_lang, offer_of([()]))

    async def translate(self, request: TranslationRequest) -> list[TranslationResult]:
        try:
            async with asyncio.timeout(5):
                await self._barrier.wait()
            if request.target_lang == self._failing:
                raise GenerationError("failed")
            if self._failing:
                await asyncio.Event().wait()
            return [TranslationResult(f"{text} {request.target_lang}", "en") for text in request.texts]
        finally:
            self.ended.append(request.target_lang)

    async def stream(self, request: TranslationRequest) -> AsyncGenerator[Delta]:
        try:
            for text in request.texts:
                yield Delta(0, text)
        finally:
            self.ended.append(request.target_lang)


def request_for(target: str) -> TranslationRequest:
    return TranslationRequest(("a", "b"), target, "en")


def rendered(results: Any) -> Answer:
    return json_answer([[result.text for result in each] for each in results])


def work_for(*targets: str, events: Any = None) -> TranslationWork:
    requests = tuple(map(request_for, targets))
    return TranslationWork(requests, Translate(requests, 2, rendered, events))


async def test_targets_are_translated_side_by_side_and_answered_in_order() -> None:
    core: Any = Core(meet=3)
    work = work_for("fr", "de", "ne")
    answer = await work.answer(core)
    assert answer.body == b'[["a fr","b fr"],["a de","b de"],["a ne","b ne"]]'
    assert work.text_count == 6
    assert work.stream(core) is None


async def test_the_first_target_that_fails_ends_the_others() -> None:
    core: Any = Core(meet=2, failing="de")
    with pytest.raises(GenerationError):
        await work_for("fr", "de").answer(core)
    assert sorted(core.ended) == ["de", "fr"]


async def test_nothing_to_translate_is_an_answer_too() -> None:
    core: Any = Core()
    work = work_for()
    assert work.check(core) is None
    assert (await work.answer(core)).body == b"[]"


class Written:
    def delta(self, delta: Delta) -> bytes:
        return delta.text.encode()

    def end(self) -> bytes:
        return b"end"

    def failed(self, error: Any) -> bytes:
        return b"failed"


async def test_a_stream_that_is_closed_closes_the_cores() -> None:
    core: Any = Core()
    work = work_for("fr", events=Written())
    stream = work.stream(core)
    assert stream is not None
    assert [event async for event in stream.events] == [b"a", b"b", b"end"]
    again = work.stream(core)
    assert again is not None
    assert await anext(again.events) == b"a"
    core.ended.clear()
    await again.events.aclose()
    assert core.ended == ["fr"]
