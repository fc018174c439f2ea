"""Answers that come many at once: all are judged, and the event loop goes on meanwhile."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from dragoman_service.core import checks as judge_module
from dragoman_service.core import slices
from dragoman_service.core.checks import Judge
from dragoman_service.text.guards import Expectation

MANY = 200
EXPECTED = Expectation("en", "de")


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Any], Any]], None]:
    """Replaces the guards by a function of the answer."""

    def replace(rule: Callable[[Any], Any]) -> None:
        monkeypatch.setattr(judge_module, "check", lambda source, output, expected: rule(output))

    return replace


def found(judge: Judge, text: str) -> asyncio.Task[Any]:
    return asyncio.create_task(judge.findings("", text, EXPECTED))


async def test_a_few_turns_of_the_loop_judge_many(judged: Any) -> None:
    judged(str.upper)
    all_found = [found(Judge(), "a")]
    judge = Judge()
    all_found += [found(judge, "b") for _ in range(MANY)]
    turns = 0
    while not all(each.done() for each in all_found):
        turns += 1
        await asyncio.sleep(0)
    assert {each.result() for each in all_found} == {"A", "B"}
    assert turns < MANY


async def test_others_have_their_turn_between_slices(judged: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(10_000))
    monkeypatch.setattr(slices.time, "perf_counter", lambda: next(clock) / 2)
    judged(str.upper)
    monkeypatch.setattr(slices, "SLICE_S", 1.0)
    judge = Judge()
    all_found = [found(judge, "a") for _ in range(MANY)]
    between = 0
    while not all(each.done() for each in all_found):
        between += 1
        await asyncio.sleep(0)
    assert between > MANY / 4


async def test_a_failure_is_its_own_answer_s_alone(judged: Any) -> None:
    def rule(answer: str) -> str:
        if answer == "bad":
            raise ValueError("a guard has a fault")
        return answer.upper()

    judged(rule)
    judge = Judge()
    bad, good = found(judge, "bad"), found(judge, "good")
    with pytest.raises(ValueError, match="a guard has a fault"):
        await bad
    assert await good == "GOOD"


async def test_who_has_left_is_passed_over(judged: Any) -> None:
    seen: list[str] = []
    judged(lambda answer: seen.append(answer) or "done")
    judge = Judge()
    gone, there = found(judge, "gone"), found(judge, "there")
    await asyncio.sleep(0)
    gone.cancel()
    assert await there == "done"
    with pytest.raises(asyncio.CancelledError):
        await gone
    assert "there" in seen


async def test_a_long_answer_is_judged_beside_the_loop(judged: Any) -> None:
    judged(len)
    text = "x" * (judge_module.JUDGED_INLINE_CHARS + 1)
    assert await found(Judge(), text) == len(text)
