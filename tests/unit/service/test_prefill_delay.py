from random import Random

import pytest

from dragoman_service.engine.vllm.prefill_delay import MAX_STEPS, MIN_STEPS, PrefillDelay

DECODE_S = 0.003


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


def test_idle_time_is_no_part_of_a_step() -> None:
    delay, began_s = PrefillDelay(), 0.0
    for _ in range(200):
        for step in range(20):
            delay.observe(began_s, 50 if step == 0 else 0, running=0 if step == 0 else 1)
            began_s += DECODE_S
        began_s += 60.0
    assert delay.steps == MIN_STEPS


def test_idle_time_after_a_prefill_is_no_part_of_it() -> None:
    delay, began_s = PrefillDelay(), 0.0
    for _ in range(200):
        for step in range(20):
            delay.observe(began_s, 50 if step == 18 else 0, running=0 if step == 0 else 1)
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
