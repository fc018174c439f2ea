import math
from random import Random

import pytest

from dragoman_service.engine.vllm.prefill_batching import MAX_STEPS, MIN_STEPS, PrefillDelay, PrefillGate

DELAY_STEPS = 0.5
DECODE_S = 0.003


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


def run(
    delay: PrefillDelay, launch_s: float, token_s: float, *, steps: int = 4000, began_s: float = 0.0
) -> float:
    """Steps of which one in ten prefills: it takes as long as its launch, or as its tokens if that is longer.

    Returns:
        When the next one begins.
    """
    draw = Random(1)
    for step in range(steps):
        tokens = draw.randint(30, 900) if step % 10 == 0 else 0
        delay.observe(began_s, tokens, running=25)
        prefill_s = max(launch_s, tokens * token_s) if tokens else 0.0
        began_s += (DECODE_S + prefill_s) * draw.uniform(0.8, 1.2)
    return began_s


def test_the_delay_of_launches_is_measured() -> None:
    delay = PrefillDelay()
    run(delay, launch_s=3 * DECODE_S, token_s=1e-6)
    assert delay.steps == pytest.approx(3.0, abs=0.5)


def test_the_time_for_tokens_is_no_delay() -> None:
    delay = PrefillDelay()
    run(delay, launch_s=0.0, token_s=30e-6)
    assert delay.steps == MIN_STEPS


def test_the_time_that_a_prefill_takes_in_the_next_step_counts() -> None:
    delay, began_s = PrefillDelay(), 0.0
    for step in range(1000):
        delay.observe(began_s, 100 if step % 10 == 0 else 0, running=25)
        began_s += DECODE_S * (2 if step % 10 < 2 else 1)
    assert delay.steps == pytest.approx(2.0, abs=0.1)


def test_the_delay_follows_the_load() -> None:
    delay = PrefillDelay()
    later_s = run(delay, launch_s=3 * DECODE_S, token_s=1e-6)
    run(delay, launch_s=0.0, token_s=30e-6, began_s=later_s)
    assert delay.steps == MIN_STEPS


def test_the_delay_is_limited() -> None:
    delay = PrefillDelay()
    run(delay, launch_s=100 * DECODE_S, token_s=0.0)
    assert delay.steps == MAX_STEPS


def test_few_prefills_are_no_measurement() -> None:
    delay = PrefillDelay()
    run(delay, launch_s=3 * DECODE_S, token_s=0.0, steps=150)
    assert delay.steps == MIN_STEPS


@pytest.mark.parametrize("prefill_at", [0, 18])
def test_idle_time_before_or_after_a_prefill_is_no_part_of_it(prefill_at: int) -> None:
    delay, began_s = PrefillDelay(), 0.0
    for _ in range(200):
        for step in range(20):
            delay.observe(began_s, 50 if step == prefill_at else 0, running=0 if step == 0 else 1)
            began_s += DECODE_S
        began_s += 60.0
    assert delay.steps == MIN_STEPS


def test_a_single_long_step_changes_little() -> None:
    delay = PrefillDelay()
    later_s = run(delay, launch_s=3 * DECODE_S, token_s=1e-6)
    before = delay.steps
    delay.observe(later_s + 10.0, 0, running=25)
    run(delay, launch_s=3 * DECODE_S, token_s=1e-6, steps=5, began_s=later_s + 10.0)
    assert delay.steps == pytest.approx(before, rel=0.05)
