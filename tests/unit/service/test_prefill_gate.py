import asyncio
from contextlib import ExitStack

import pytest

from dragoman_service.engine.protocol import StallDetector
from dragoman_service.engine.vllm.prefill_gate import PrefillGate


class Engine:
    """One with work until set otherwise."""

    def __init__(self, every: int) -> None:
        self.stall_detector = StallDetector()
        self.prefill_gate = PrefillGate(every, self.stall_detector)
        self._work = ExitStack()
        self._work.enter_context(self.stall_detector.generation())

    def ends(self) -> None:
        self._work.close()
        self.prefill_gate.open()

    def comes(self) -> asyncio.Task[None]:
        return asyncio.create_task(self.prefill_gate.wait())


async def turns() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_those_that_come_between_two_openings_go_in_together() -> None:
    engine = Engine(3)
    come = [engine.comes()]
    await turns()
    engine.prefill_gate.step()
    come.append(engine.comes())
    await turns()
    engine.prefill_gate.step()
    await turns()
    assert [each.done() for each in come] == [False, False]
    engine.prefill_gate.step()
    await turns()
    assert [each.done() for each in come] == [True, True]
    late = engine.comes()
    await turns()
    assert not late.done()
    engine.ends()
    await late


async def test_a_request_after_a_pause_is_admitted_at_once() -> None:
    engine = Engine(3)
    for _ in range(5):
        engine.prefill_gate.step()
    first, second = engine.comes(), engine.comes()
    await turns()
    assert (first.done(), second.done()) == (True, False)
    engine.ends()
    await second


async def test_an_idle_engine_admits_at_once() -> None:
    engine = Engine(1000)
    waiting = engine.comes()
    await turns()
    assert not waiting.done()
    engine.ends()
    async with asyncio.timeout(30):
        await waiting
        await engine.prefill_gate.wait()


async def test_one_lets_everybody_in() -> None:
    engine = Engine(1)
    async with asyncio.timeout(30):
        await asyncio.gather(*(engine.comes() for _ in range(5)))


async def test_a_request_that_is_cancelled_does_not_delay_others() -> None:
    engine = Engine(2)
    gone, there = engine.comes(), engine.comes()
    await turns()
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    engine.prefill_gate.step()
    engine.prefill_gate.step()
    async with asyncio.timeout(30):
        await there
