import asyncio
import os
import time
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from dragoman_protocols.errors import EngineDeadError, GenerationError, TextTooLongError
from dragoman_service.engine.protocol import Chunk, Decoding, Finish, Progress, Prompt
from dragoman_service.engine.scripted.engine import Script, ScriptedEngine, SlotQueue, script_from
from dragoman_service.errors import ModelLoadError, SettingsError
from dragoman_service.settings import Settings


class Scripted:
    def __init__(self, **script: Any) -> None:
        self.registry = CollectorRegistry()
        self.engine = ScriptedEngine(Script(**script), "m", self.registry)

    def sample(self, name: str) -> float | None:
        return self.registry.get_sample_value(f"vllm:{name}", {"model_name": "m", "engine": "0"})

    async def answer(self, text: str, **decoding: Any) -> list[Chunk]:
        async with aclosing(self.engine.generate(Prompt(text, text), Decoding(**decoding), "r")) as chunks:
            return [chunk async for chunk in chunks]

    async def until_running(self, count: int) -> None:
        for _ in range(5000):
            if self.sample("num_requests_running") == count:
                return
            await asyncio.sleep(0.001)
        pytest.fail(f"{count} requests never ran")


async def test_an_answer_is_the_reverse_and_its_reverse_the_text() -> None:
    (chunk,) = await Scripted().answer("Grüße, world")
    assert chunk == Chunk("dlrow ,eßürG", Finish.STOP, prompt_tokens=3, output_tokens=3)


async def test_a_stream_has_the_same_text_in_pieces() -> None:
    *pieces, last = await Scripted().answer("Hello, world", stream=True)
    assert len(pieces) == 3
    assert "".join(piece.text for piece in pieces) + last.text == "dlrow ,olleH"
    assert (last.finish, pieces[0].finish) == (Finish.STOP, None)


async def test_max_tokens_cuts_the_output() -> None:
    (chunk,) = await Scripted().answer("Hello, world", max_tokens=1)
    assert (chunk.text, chunk.finish) == ("dlro", Finish.LENGTH)


async def test_the_pace_is_that_of_the_script() -> None:
    began_s = time.monotonic()
    await Scripted(first_token_s=0.05, token_s=0.01).answer("x" * 20)
    assert time.monotonic() - began_s >= 0.1


async def test_a_batch_can_be_too_large_to_pay() -> None:
    scripted = Scripted(
        first_token_s=0.05, token_s=0.002, slowdown_ratio=0.2, slowdown_power=2.0, max_num_seqs=8
    )
    began_s = time.monotonic()
    await asyncio.gather(*(scripted.answer(f"{number}" + "x" * 15) for number in range(8)))
    assert time.monotonic() - began_s >= 0.05 + 4 * 0.002 * (1 + 0.2 * 7**2)
    assert scripted.sample("generation_tokens_total") == 32
    assert scripted.sample("request_queue_time_seconds_count") == 8


async def test_more_sequences_than_slots_wait_and_are_counted() -> None:
    scripted = Scripted(first_token_s=60, max_num_seqs=2, max_model_len=1000)
    tasks = [asyncio.create_task(scripted.answer("x" * 40)) for _ in range(3)]
    await scripted.until_running(2)
    assert scripted.sample("num_requests_waiting") == 1
    assert scripted.sample("kv_cache_usage_perc") == pytest.approx(2 * 20 / 2000)
    tasks[0].cancel()
    await asyncio.gather(tasks[0], return_exceptions=True)
    await scripted.until_running(2)
    assert scripted.sample("num_requests_waiting") == 0
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert [scripted.sample(f"num_requests_{state}") for state in ("running", "waiting")] == [0, 0]
    assert scripted.sample("kv_cache_usage_perc") == 0


async def test_a_text_over_the_model_s_length_is_refused_with_numbers() -> None:
    with pytest.raises(TextTooLongError, match=r"250 tokens .* over the 300"):
        await Scripted(max_model_len=300).answer("x" * 1000)


async def test_every_so_many_generations_fail_and_the_rest_do_not() -> None:
    scripted = Scripted(fail_every=2)
    await scripted.answer("a")
    with pytest.raises(GenerationError):
        await scripted.answer("b")
    await scripted.answer("c")


async def test_a_dead_engine_stays_dead() -> None:
    scripted = Scripted(die_after=1)
    await scripted.engine.check()
    for _ in range(2):
        with pytest.raises(EngineDeadError):
            await scripted.answer("a")
    with pytest.raises(EngineDeadError):
        await scripted.engine.check()


async def test_a_load_reports_its_share_and_fails_by_its_script() -> None:
    reports: list[Progress] = []
    await Scripted().engine.load(reports.append)
    assert [report.share_ratio for report in reports] == [step / 10 for step in range(10)]
    with pytest.raises(ModelLoadError, match="no such luck"):
        await Scripted(fail_load="no such luck").engine.load(reports.append)


@pytest.mark.parametrize(
    ("engine_args", "message"),
    [
        ({"tokens_s": 1}, "did you mean 'token_s'?"),
        ({"token_s": "fast"}, "token_s takes float, not 'fast'"),
        ({"max_num_seqs": 2}, "set twice"),
        ({"fail_every": True}, "fail_every takes int"),
    ],
)
def test_a_script_that_cannot_be_read_is_refused(
    make_settings: Callable[..., Settings], engine_args: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError, match=message.replace("?", r"\?")):
        script_from(make_settings(max_num_seqs=4, engine_args=engine_args))


def test_a_script_comes_from_flags_and_engine_arguments(make_settings: Callable[..., Settings]) -> None:
    settings = make_settings(max_num_seqs=4, engine_args={"token_s": 1, "load_s": 0.5})
    assert script_from(settings) == Script(max_num_seqs=4, token_s=1, load_s=0.5)


async def test_the_journal_has_what_any_pod_started(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    first, second = (Scripted(journal=str(journal), fail_every=2) for _ in range(2))
    for pod in (first, second):
        await pod.engine.load(lambda progress: None)
    await first.answer("a")
    await second.answer("b")
    with pytest.raises(GenerationError):
        await first.answer("c")
    for pod in (first, second):
        await pod.engine.aclose()
    assert journal.read_text() == "".join(f"{os.getpid()}\t{text}\n" for text in "abc")


async def test_a_journal_that_cannot_be_written_fails_the_load(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match="the journal cannot be written"):
        await Scripted(journal=str(tmp_path / "no" / "journal")).engine.load(lambda progress: None)


async def order(places: SlotQueue, priorities: list[int]) -> list[int]:
    """In which order waiters of these priorities get the one place."""
    served: list[int] = []

    async def wait(priority: int) -> None:
        async with places.slot(priority):
            served.append(priority)

    async with places.slot():
        tasks = [asyncio.create_task(wait(each)) for each in priorities]
        await asyncio.sleep(0)
        assert (places.running, places.waiting) == (1, len(priorities))
    await asyncio.gather(*tasks)
    assert (places.running, places.waiting) == (0, 0)
    return served


async def test_first_come_first_served_or_the_smallest() -> None:
    assert await order(SlotQueue(1), [3, 1, 2]) == [3, 1, 2]
    assert await order(SlotQueue(1, by_priority=True), [3, 1, 2]) == [1, 2, 3]


@pytest.mark.parametrize("handed", [False, True])
async def test_a_waiter_that_gives_up_loses_no_place(handed: bool) -> None:
    places = SlotQueue(1)

    async def wait() -> None:
        async with places.slot():
            await asyncio.sleep(60)

    first = asyncio.create_task(wait())
    await asyncio.sleep(0)
    second = asyncio.create_task(wait())
    await asyncio.sleep(0)
    if handed:
        # The place is the second's before it has woken to know.
        first.cancel()
        await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    async with asyncio.timeout(10), places.slot():
        assert (places.running, places.waiting) == (1, 0)
