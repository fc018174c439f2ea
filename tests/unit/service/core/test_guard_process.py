"""The guards in a process of their own: the same findings, and no answer waits for one that is gone."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, cast

import pytest

from dragoman_service.core import evaluate, guard_process
from dragoman_service.core.evaluate import Evaluator
from dragoman_service.core.guard_process import GuardProcess, GuardProcessError
from dragoman_service.text.guards import Expectation, Guard, check

pytestmark = pytest.mark.slow

START_S = 60
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
async def guards() -> AsyncIterator[GuardProcess]:
    guards = GuardProcess()
    running = asyncio.create_task(guards.run())
    async with asyncio.timeout(START_S):
        await guards.up.wait()
    yield guards
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_it_finds_what_the_guards_find(guards: GuardProcess) -> None:
    async with asyncio.timeout(START_S):
        found = await asyncio.gather(*(guards.check(SOURCE, answer, EXPECTED) for answer in ANSWERS))
    assert found == [check(SOURCE, answer, EXPECTED) for answer in ANSWERS]
    assert [bool(each) for each in found] == [False, True, True, True, True]


async def test_the_evaluator_uses_it(guards: GuardProcess) -> None:
    async with asyncio.timeout(START_S):
        found = await Evaluator(guards).findings(SOURCE, SOURCE, EXPECTED)
    assert [each.guard for each in found] == [Guard.UNTRANSLATED]


async def test_long_texts_do_not_queue_in_it(guards: GuardProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    check_in_process = guards.check

    async def counted(source: str, output: str, expected: Expectation) -> Any:
        sent.append(len(source))
        return await check_in_process(source, output, expected)

    monkeypatch.setattr(guards, "check", counted)
    evaluator = Evaluator(guards)
    async with asyncio.timeout(START_S):
        long = SOURCE * (evaluate.INLINE_CHARS // len(SOURCE) + 1)
        found = await asyncio.gather(
            evaluator.findings(long, long, EXPECTED), evaluator.findings(SOURCE, SOURCE, EXPECTED)
        )
    assert [[each.guard for each in every] for every in found] == [[Guard.UNTRANSLATED]] * 2
    assert sent == [len(SOURCE)]


async def test_a_fault_of_a_guard_is_its_own_answer_s_alone(guards: GuardProcess) -> None:
    faulty = Expectation(cast(Any, None), "de")
    async with asyncio.timeout(START_S):
        bad, good = await asyncio.gather(
            guards.check(SOURCE, ANSWERS[3], faulty),
            guards.check(SOURCE, ANSWERS[0], EXPECTED),
            return_exceptions=True,
        )
    assert isinstance(bad, AttributeError)
    assert good == ()


async def test_pending_checks_fail_when_it_dies_and_evaluators_check_themselves(
    guards: GuardProcess, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(guard_process, "RESTART_S", 0.0)
    process = _process_of(guards)
    os.kill(process, signal.SIGSTOP)
    waiting = asyncio.create_task(guards.check(SOURCE, ANSWERS[0], EXPECTED))
    evaluation = asyncio.create_task(Evaluator(guards).findings(SOURCE, SOURCE, EXPECTED))
    await asyncio.sleep(0)
    os.kill(process, signal.SIGKILL)
    async with asyncio.timeout(START_S):
        with pytest.raises(GuardProcessError):
            await waiting
        assert [each.guard for each in await evaluation] == [Guard.UNTRANSLATED]
        await guards.up.wait()
        assert await guards.check(SOURCE, ANSWERS[0], EXPECTED) == ()
    assert _process_of(guards) != process
    assert "guard process ended with status -9" in caplog.text


async def test_one_with_much_to_do_gets_no_more(guards: GuardProcess) -> None:
    os.kill(_process_of(guards), signal.SIGSTOP)
    waiting = [
        asyncio.create_task(guards.check(SOURCE, ANSWERS[0], EXPECTED))
        for _ in range(guard_process.MAX_PENDING)
    ]
    await asyncio.sleep(0)
    assert not guards.is_free
    async with asyncio.timeout(START_S):
        found = await Evaluator(guards).findings(SOURCE, SOURCE, EXPECTED)
        assert [each.guard for each in found] == [Guard.UNTRANSLATED]
        waiting.pop().cancel()
        os.kill(_process_of(guards), signal.SIGCONT)
        assert set(await asyncio.gather(*waiting)) == {()}


def _process_of(guards: GuardProcess) -> int:
    assert guards.pid is not None
    return guards.pid
