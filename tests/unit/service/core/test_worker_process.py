"""A worker process: the same results as in this one, and no caller waits for one that is gone."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, cast

import pytest

from dragoman_service.core import evaluate, worker_process
from dragoman_service.core.evaluate import Evaluator
from dragoman_service.core.long_texts import MAX_PENDING_GUARDS, guard_process
from dragoman_service.core.worker_process import WorkerProcess, WorkerProcessError
from dragoman_service.text.guards import Expectation, Finding, Guard, check

pytestmark = pytest.mark.slow

START_S = 60
Started = Callable[..., AbstractAsyncContextManager[None]]
EXPECTED = Expectation("en", "de", "stop", markers=True)
SOURCE = "The report of 14 May lists 3 faults in the pumps of the northern plant."
ANSWERS = (
    "Der Bericht vom 14. Mai nennt 3 Fehler in den Pumpen des nördlichen Werks.",
    SOURCE,
    "",
    "Le rapport du 14 mai énumère 3 défauts dans les pompes de l'usine du nord.",
    "Der Bericht vom 14. Mai nennt 4 Fehler in den Pumpen des nördlichen Werks.",
)


@pytest.fixture
async def guards(started: Started) -> AsyncIterator[WorkerProcess]:
    guards = guard_process()
    async with started(guards, guards.call("check", SOURCE, ANSWERS[0], EXPECTED)):
        yield guards


async def checked(
    guards: WorkerProcess, answer: str, expected: Expectation = EXPECTED
) -> tuple[Finding, ...]:
    (found,) = await guards.call("check", SOURCE, answer, expected)
    return cast(tuple[Finding, ...], found)


async def test_it_finds_what_the_guards_find(guards: WorkerProcess) -> None:
    async with asyncio.timeout(START_S):
        found = await asyncio.gather(*(checked(guards, answer) for answer in ANSWERS))
    assert found == [check(SOURCE, answer, EXPECTED) for answer in ANSWERS]
    assert [bool(each) for each in found] == [False, True, True, True, True]


async def test_it_starts_at_the_first_call() -> None:
    guards = guard_process()
    running = asyncio.create_task(guards.run())
    for _ in range(5):
        await asyncio.sleep(0)
    assert guards.pid is None
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_the_evaluator_uses_it(guards: WorkerProcess) -> None:
    async with asyncio.timeout(START_S):
        found = await Evaluator(guards).findings(SOURCE, SOURCE, EXPECTED)
    assert [each.guard for each in found] == [Guard.UNTRANSLATED]


@pytest.mark.parametrize("repeats", [1, evaluate.INLINE_CHARS // len(SOURCE) + 1])
async def test_segments_of_long_requests_and_long_segments_do_not_queue_in_it(
    guards: WorkerProcess, monkeypatch: pytest.MonkeyPatch, repeats: int
) -> None:
    sent: list[int] = []
    call = guards.call

    async def counted(method: str, source: str, *arguments: Any) -> Any:
        sent.append(len(source))
        return await call(method, source, *arguments)

    monkeypatch.setattr(guards, "call", counted)
    text = SOURCE * repeats
    for evaluator, of_long, expected_sent in (
        (Evaluator(guards, None), True, []),
        (Evaluator(None, guards), True, [len(text)]),
        (Evaluator(guards, None), False, [len(text)] if repeats == 1 else []),
        (Evaluator(None, guards), False, [] if repeats == 1 else [len(text)]),
    ):
        sent.clear()
        async with asyncio.timeout(START_S):
            found = await evaluator.findings(text, text, EXPECTED, of_long=of_long)
        assert [each.guard for each in found] == [Guard.UNTRANSLATED]
        assert sent == expected_sent


async def test_a_fault_of_a_method_is_its_own_answer_s_alone(guards: WorkerProcess) -> None:
    faulty = Expectation(cast(Any, None), "de")
    async with asyncio.timeout(START_S):
        bad = asyncio.create_task(checked(guards, ANSWERS[3], faulty))
        assert await checked(guards, ANSWERS[0]) == ()
        with pytest.raises(AttributeError) as raised:
            await bad
    assert "guards.py" in raised.value.__notes__[0]


async def test_pending_calls_fail_when_it_dies_and_evaluators_check_themselves(
    guards: WorkerProcess, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(worker_process, "RESTART_S", 0.0)
    process = _process_of(guards)
    os.kill(process, signal.SIGSTOP)
    waiting = asyncio.create_task(checked(guards, ANSWERS[0]))
    evaluation = asyncio.create_task(Evaluator(guards).findings(SOURCE, SOURCE, EXPECTED))
    await asyncio.sleep(0)
    os.kill(process, signal.SIGKILL)
    async with asyncio.timeout(START_S):
        with pytest.raises(WorkerProcessError):
            await waiting
        assert [each.guard for each in await evaluation] == [Guard.UNTRANSLATED]
        await guards.up.wait()
        assert await checked(guards, ANSWERS[0]) == ()
    assert _process_of(guards) != process
    assert "guard process ended with status -9" in caplog.text


async def test_one_with_much_to_do_gets_no_more_though_callers_are_cancelled(guards: WorkerProcess) -> None:
    os.kill(_process_of(guards), signal.SIGSTOP)
    waiting = [asyncio.create_task(checked(guards, ANSWERS[0])) for _ in range(MAX_PENDING_GUARDS)]
    for _ in range(3):  # They are sent.
        await asyncio.sleep(0)
    cancelled = waiting.pop()
    cancelled.cancel()
    async with asyncio.timeout(START_S):
        await asyncio.wait((cancelled,))
        with pytest.raises(WorkerProcessError):
            await checked(guards, ANSWERS[0])
        found = await Evaluator(guards).findings(SOURCE, SOURCE, EXPECTED)
        assert [each.guard for each in found] == [Guard.UNTRANSLATED]
        os.kill(_process_of(guards), signal.SIGCONT)
        assert set(await asyncio.gather(*waiting)) == {()}
        assert await checked(guards, ANSWERS[0]) == ()


async def test_a_call_that_is_cancelled_at_once_is_not_sent(guards: WorkerProcess) -> None:
    os.kill(_process_of(guards), signal.SIGSTOP)
    cancelled = [asyncio.create_task(checked(guards, SOURCE)) for _ in range(MAX_PENDING_GUARDS)]
    asyncio.get_running_loop().call_soon(lambda: [each.cancel() for each in cancelled])
    async with asyncio.timeout(START_S):
        await asyncio.wait(cancelled)
        there = asyncio.create_task(checked(guards, SOURCE))
        await asyncio.sleep(0)
        os.kill(_process_of(guards), signal.SIGCONT)
        assert [each.guard for each in await there] == [Guard.UNTRANSLATED]


def _process_of(guards: WorkerProcess) -> int:
    assert guards.pid is not None
    return guards.pid
