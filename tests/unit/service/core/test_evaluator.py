"""Many answers at once: all are evaluated, and the event loop goes on meanwhile."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from dragoman_service.core import concurrency, evaluate
from dragoman_service.core.evaluate import Evaluator
from dragoman_service.text.guards import Expectation

MANY = 200
EXPECTED = Expectation("en", "de")


@pytest.fixture
def replaced_check(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Any], Any]], None]:
    """Replaces the guards by a function of the answer."""

    def replace(rule: Callable[[Any], Any]) -> None:
        monkeypatch.setattr(evaluate, "check", lambda source, output, expected: rule(output))

    return replace


def found(evaluator: Evaluator, text: str) -> asyncio.Task[Any]:
    return asyncio.create_task(evaluator.findings("", text, EXPECTED))


async def test_a_few_turns_of_the_loop_evaluate_many(replaced_check: Any) -> None:
    replaced_check(str.upper)
    all_found = [found(Evaluator(), "a")]
    evaluator = Evaluator()
    all_found += [found(evaluator, "b") for _ in range(MANY)]
    turns = 0
    while not all(each.done() for each in all_found):
        turns += 1
        await asyncio.sleep(0)
    assert {each.result() for each in all_found} == {"A", "B"}
    assert turns < MANY


async def test_others_have_their_turn_between_slices(
    replaced_check: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(10_000))
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock) / 2)
    replaced_check(str.upper)
    monkeypatch.setattr(concurrency, "SLICE_S", 1.0)
    evaluator = Evaluator()
    all_found = [found(evaluator, "a") for _ in range(MANY)]
    between = 0
    while not all(each.done() for each in all_found):
        between += 1
        await asyncio.sleep(0)
    assert between > MANY / 4


async def test_a_failure_is_its_own_answer_s_alone(replaced_check: Any) -> None:
    def rule(answer: str) -> str:
        if answer == "bad":
            raise ValueError("a guard has a fault")
        return answer.upper()

    replaced_check(rule)
    evaluator = Evaluator()
    bad, good = found(evaluator, "bad"), found(evaluator, "good")
    with pytest.raises(ValueError, match="a guard has a fault"):
        await bad
    assert await good == "GOOD"


async def test_a_cancelled_caller_is_ignored(replaced_check: Any) -> None:
    seen: list[str] = []

    def check(answer: str) -> str:
        seen.append(answer)
        return "done"

    replaced_check(check)
    evaluator = Evaluator()
    gone, there = found(evaluator, "gone"), found(evaluator, "there")
    await asyncio.sleep(0)
    gone.cancel()
    assert await there == "done"
    with pytest.raises(asyncio.CancelledError):
        await gone
    assert "there" in seen


async def test_a_long_answer_is_evaluated_in_a_thread(replaced_check: Any) -> None:
    replaced_check(len)
    text = "x" * (evaluate.INLINE_CHARS + 1)
    assert await found(Evaluator(), text) == len(text)
