"""The engine sleeps only while nothing is generated, and every generation finds it awake."""

import asyncio
import random
from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from dragoman_protocols.errors import EngineDeadError
from dragoman_service.engine.protocol import Decoding, Framing, Prompt
from dragoman_service.engine.scripted.engine import Script, ScriptedEngine
from dragoman_service.engine.sleeping import SleepingEngine, SleepMetrics
from dragoman_service.engine.vllm.arguments import engine_arguments
from dragoman_service.engine.vllm.engine import AsyncLLMEngine
from dragoman_service.errors import SettingsError
from dragoman_service.settings import Settings

TURNS = 300
"""Turns of the event loop after which all that a test has started is done."""


class ChosenPace(ScriptedEngine):
    """Each of its operations takes a number of turns of the event loop, drawn at random; it records its wakes."""

    def __init__(self, draw: random.Random, **script: Any) -> None:
        super().__init__(Script(**script), "m", CollectorRegistry())
        self._draw = draw
        self.sleeps = self.wakes = 0

    async def sleep(self) -> None:
        self.sleeps += 1
        await super().sleep()
        await turns(self._draw.randrange(6))

    async def wake_up(self) -> None:
        self.wakes += 1
        await turns(self._draw.randrange(6))
        await super().wake_up()

    async def _work(self, seconds: float) -> None:
        await turns(self._draw.randrange(4))
        await super()._work(seconds)


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@dataclass
class Sleeping:
    """A sleeping engine for which the pod is idle as long as `idle_s` says."""

    engine: ChosenPace = field(default_factory=lambda: ChosenPace(random.Random(0)))
    idle_s: float = 10.0
    limit_s: float = 5.0
    failures: int = 0
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    def __post_init__(self) -> None:
        self.sleeping = SleepingEngine(
            self.engine,
            5.0,
            self.limit_s,
            lambda: self.idle_s,
            self._failed,
            SleepMetrics(self.registry, "m"),
        )

    def _failed(self) -> None:
        self.failures += 1

    def value(self, name: str) -> float | None:
        return self.registry.get_sample_value(f"dragoman_engine_{name}", {"model_name": "m"})

    async def answer(self, text: str = "abc") -> str:
        chunks = self.sleeping.generate(Prompt(text, text), Decoding(), text)
        async with aclosing(chunks):
            return "".join([chunk.text async for chunk in chunks])

    async def put_to_sleep(self) -> None:
        self.sleeping.sleep_if_idle()
        await self.until("asleep", 1)

    async def until(self, name: str, value: float) -> None:
        async with asyncio.timeout(10):
            while self.value(name) != value:
                await turns(1)


async def test_an_idle_engine_sleeps_and_the_next_request_wakes_it() -> None:
    pod = Sleeping()
    await pod.put_to_sleep()
    assert await pod.answer("abc") == "cba"
    assert (pod.value("asleep"), pod.value("wakes_total"), pod.value("wake_seconds_count")) == (0, 1, 1)


async def test_an_engine_does_not_sleep_before_its_time() -> None:
    pod = Sleeping(idle_s=4.9)
    pod.sleeping.sleep_if_idle()
    await turns(TURNS)
    assert (pod.engine.sleeps, pod.value("asleep")) == (0, 0)


async def test_an_engine_that_generates_does_not_sleep() -> None:
    pod = Sleeping(ChosenPace(random.Random(0), first_token_s=0.05))
    answer = asyncio.create_task(pod.answer())
    while not pod.engine.stall_detector.generating:
        await asyncio.sleep(0)
        pod.sleeping.sleep_if_idle()
    pod.sleeping.sleep_if_idle()
    assert await answer == "cba"
    assert pod.engine.sleeps == 0


async def test_many_first_requests_cause_one_wake() -> None:
    pod = Sleeping(ChosenPace(random.Random(0), wake_s=0.02))
    await pod.put_to_sleep()
    answers = await asyncio.gather(*(pod.answer(f"a{number}") for number in range(50)))
    assert answers == [f"a{number}"[::-1] for number in range(50)]
    assert pod.engine.wakes == 1


async def test_the_request_that_started_the_wake_can_be_cancelled() -> None:
    pod = Sleeping(ChosenPace(random.Random(0), wake_s=0.02))
    await pod.put_to_sleep()
    first = asyncio.create_task(pod.answer("first"))
    await turns(2)
    others = [asyncio.create_task(pod.answer(f"b{number}")) for number in range(5)]
    await turns(1)
    first.cancel()
    assert await asyncio.gather(*others) == [f"b{number}"[::-1] for number in range(5)]
    assert first.cancelled()
    assert pod.engine.wakes == 1


async def test_a_request_while_the_engine_falls_asleep_waits_and_wakes_it() -> None:
    pod = Sleeping(ChosenPace(random.Random(0), sleep_s=0.02))
    pod.sleeping.sleep_if_idle()
    await turns(1)
    assert await pod.answer("abc") == "cba"
    assert (pod.engine.sleeps, pod.engine.wakes) == (1, 1)


async def test_a_sleeping_engine_does_not_count_as_stalled() -> None:
    pod = Sleeping(ChosenPace(random.Random(0), wake_s=0.02))
    await pod.put_to_sleep()
    answer = asyncio.create_task(pod.answer())
    await turns(3)
    assert (pod.engine.wakes, pod.sleeping.stall_detector.generating) == (1, 0)
    await answer
    assert pod.sleeping.stall_detector.stalled_s < 0.02


@pytest.mark.parametrize(
    ("script", "limit_s", "reason"),
    [
        ({"fail_wake": "out of memory"}, 5.0, r"could not be woken \(GenerationError: out of memory\)"),
        ({"wake_s": 60.0}, 0.02, r"could not be woken within 0.02 s"),
        ({"wake_s": 0.01, "fail_wake": "x", "die_after": 1}, 5.0, r"could not be woken"),
    ],
)
async def test_a_wake_that_fails_makes_the_engine_dead(
    script: dict[str, Any], limit_s: float, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    pod = Sleeping(ChosenPace(random.Random(0), **script), limit_s=limit_s)
    await pod.sleeping.check()
    await pod.put_to_sleep()
    errors = await asyncio.gather(*(pod.answer() for _ in range(3)), return_exceptions=True)
    assert {type(error) for error in errors} == {EngineDeadError}
    with pytest.raises(EngineDeadError, match=reason):
        await pod.sleeping.check()
    with pytest.raises(EngineDeadError, match=reason):
        await pod.answer()
    assert (pod.failures, pod.engine.wakes) == (1, 1)
    assert "this pod must restart" in caplog.text


async def test_a_sleep_that_fails_makes_the_engine_dead() -> None:
    pod = Sleeping(ChosenPace(random.Random(0), sleep_s=60.0), limit_s=0.02)
    pod.sleeping.sleep_if_idle()
    with pytest.raises(EngineDeadError, match="could not be put to sleep within"):
        await pod.answer()
    assert pod.failures == 1


@pytest.mark.parametrize("change", ["sleep", "wake", "asleep"])
async def test_an_engine_closes_at_any_time(change: str) -> None:
    pod = Sleeping(
        ChosenPace(random.Random(0), **({"sleep_s": 60.0} if change == "sleep" else {"wake_s": 60.0}))
    )
    waiting = None
    if change == "sleep":
        pod.sleeping.sleep_if_idle()
        await turns(2)
    else:
        await pod.put_to_sleep()
    if change == "wake":
        waiting = asyncio.create_task(pod.answer())
        await turns(3)
    async with asyncio.timeout(5):
        await pod.sleeping.aclose()
    if waiting is not None:
        with pytest.raises(EngineDeadError, match="is shut down"):
            await waiting
    with pytest.raises(EngineDeadError, match="is shut down"):
        await pod.answer()
    pod.sleeping.sleep_if_idle()
    assert pod.failures == 0


async def test_the_watch_puts_the_engine_to_sleep_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman_service.engine.sleeping.POLL_S", 0.001)
    pod = Sleeping()
    watching = asyncio.create_task(pod.sleeping.watch())
    for wakes in range(3):
        await pod.until("asleep", 1)
        assert await pod.answer() == "cba"
        assert pod.value("wakes_total") == wakes + 1
    watching.cancel()


class VLLM:
    """Records the calls that reach vLLM's AsyncLLM; `wakes` is what `wake_up` returns."""

    def __init__(self, wakes: bool | None) -> None:
        self._wakes = wakes
        self.calls: list[str] = []

    async def sleep(self, level: int) -> None:
        self.calls.append(f"sleep {level}")

    async def wake_up(self) -> bool | None:
        self.calls.append("wake_up")
        return self._wakes


@pytest.mark.parametrize("wakes", [None, True])
async def test_vllm_keeps_the_weights_and_wakes_whether_or_not_it_reports_it(
    make_settings: Callable[..., Settings], wakes: bool | None
) -> None:
    engine = AsyncLLMEngine(make_settings(), Framing.RAW)
    engine._runtime.llm = called = VLLM(wakes)
    await engine.sleep()
    await engine.wake_up()
    assert called.calls == ["sleep 1", "wake_up"]
    engine._runtime.llm = None
    await engine.aclose()


async def test_a_vllm_that_still_sleeps_is_an_error(make_settings: Callable[..., Settings]) -> None:
    engine = AsyncLLMEngine(make_settings(), Framing.RAW)
    engine._runtime.llm = VLLM(wakes=False)
    with pytest.raises(RuntimeError, match="still sleeps"):
        await engine.wake_up()
    engine._runtime.llm = None
    await engine.aclose()


def test_sleep_mode_is_enabled_where_the_engine_may_sleep(make_settings: Callable[..., Settings]) -> None:
    assert "enable_sleep_mode" not in engine_arguments(make_settings(), ())
    assert engine_arguments(make_settings(sleep_after_s=60), ())["enable_sleep_mode"] is True
    again = make_settings(sleep_after_s=60, engine_args={"enable_sleep_mode": False})
    with pytest.raises(SettingsError, match="is set twice"):
        engine_arguments(again, ("enable_sleep_mode",))


async def ends(task: asyncio.Task[str]) -> bool:
    """Whether a request was answered; it was cancelled otherwise."""
    with suppress(asyncio.CancelledError):
        text = await task
        assert text == task.get_name()[::-1]
        return True
    return False


@pytest.mark.parametrize("seed", range(400))
async def test_no_interleaving_generates_while_the_engine_sleeps(seed: int) -> None:
    """The scripted engine fails a generation that starts while it sleeps, and a sleep while it generates."""
    draw = random.Random(seed)
    pod = Sleeping(ChosenPace(draw, max_num_seqs=draw.choice((1, 2, 16))))
    tasks: list[asyncio.Task[str]] = []
    cancelled: set[asyncio.Task[str]] = set()
    for number in range(60):
        match draw.choice(("ask", "ask", "sleep", "sleep", "cancel", "turns")):
            case "ask":
                tasks.append(asyncio.create_task(pod.answer(f"t{number}"), name=f"t{number}"))
            case "sleep":
                pod.sleeping.sleep_if_idle()
            case "cancel" if tasks:
                task = draw.choice(tasks)
                if task.cancel():
                    cancelled.add(task)
            case _:
                await turns(draw.randrange(12))
    answered = [await ends(task) for task in tasks]
    assert all(ok or task in cancelled for ok, task in zip(answered, tasks, strict=True))
    await pod.sleeping.check()
    assert pod.failures == 0
    assert pod.engine.sleeps - pod.engine.wakes in (0, 1)
