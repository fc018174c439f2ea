import math

import pytest

from dragoman_service.engine.vllm.prefill_gate import PrefillGate

DELAY_STEPS = 0.5


def held(gate: PrefillGate, startable: int, running: int, delay_steps: float = DELAY_STEPS) -> int:
    """Steps until requests start that came together."""
    steps = 0
    while gate.holds(startable, running, delay_steps):
        steps += 1
    return steps


def test_requests_wait_longer_the_more_requests_a_prefill_delays() -> None:
    assert [held(PrefillGate(16), 1, running) for running in (1, 4, 12, 20)] == [0, 1, 5, 9]


def test_requests_wait_longer_the_more_a_prefill_delays() -> None:
    assert [held(PrefillGate(64), 1, 10, delay) for delay in (0.5, 1.0, 2.0, 4.0)] == [4, 9, 19, 39]


def test_many_requests_start_sooner_than_one() -> None:
    assert [held(PrefillGate(16), startable, 24) for startable in (1, 2, 4, 12, 100)] == [11, 5, 2, 0, 0]


def test_a_request_starts_at_once_if_nothing_runs() -> None:
    assert held(PrefillGate(16), 1, 0) == 0


def test_no_request_waits_longer_than_the_maximum() -> None:
    assert held(PrefillGate(16), 1, 1000) == 15
    assert held(PrefillGate(1), 1, 1000) == 0


def test_steps_without_waiting_requests_are_not_counted() -> None:
    gate = PrefillGate(16)
    for _ in range(100):
        assert not gate.holds(0, 20, DELAY_STEPS)
    assert held(gate, 1, 20) == 9


@pytest.mark.parametrize("running", [10, 50, 200])
@pytest.mark.parametrize("gap_steps", [1, 3, 10, 40])
def test_the_delay_is_at_most_twice_the_minimum(running: int, gap_steps: int) -> None:
    """Requests come at equal gaps. The minimum is that of the best constant number of requests per prefill."""
    gate, waiting, waited, prefills, steps = PrefillGate(10**9), 0, 0, 0, 4000
    for step in range(steps):
        waiting += step % gap_steps == 0
        if gate.holds(waiting, running, DELAY_STEPS):
            waited += waiting
        elif waiting:
            waiting, prefills = 0, prefills + 1
    delay = waited + prefills * running * DELAY_STEPS
    requests = math.ceil(steps / gap_steps)
    best = min(
        requests / n * running * DELAY_STEPS + requests * (n - 1) / 2 * gap_steps for n in range(1, 200)
    )
    assert delay <= 2.1 * best
