"""Budgets of outputs, and the stall detector."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.clock import Clock

from dragoman_protocols.errors import TextTooLongError
from dragoman_service.engine.protocol import StallDetector, output_budget


def test_a_short_segment_gets_room_for_a_phrase() -> None:
    assert output_budget(prompt_tokens=30, segment_tokens=1, max_model_len=4096) == 72


def test_what_fits_bounds_what_is_plausible() -> None:
    assert output_budget(prompt_tokens=600, segment_tokens=400, max_model_len=1024) == 424


def test_without_room_for_a_text_as_long_it_is_refused_with_numbers() -> None:
    with pytest.raises(TextTooLongError, match=r"630 tokens .* about 600, over the 1024"):
        output_budget(prompt_tokens=630, segment_tokens=600, max_model_len=1024)


def test_a_prompt_over_what_the_model_was_made_for_is_refused() -> None:
    assert output_budget(2048, 10, 100_000, max_prompt_tokens=2048) == 144
    with pytest.raises(TextTooLongError, match=r"2049 tokens.* at most 2048"):
        output_budget(2049, 10, 100_000, max_prompt_tokens=2048)


@given(st.integers(1, 5000), st.integers(0, 5000), st.integers(1, 8192))
def test_prompt_and_output_always_fit(prompt: int, segment: int, length: int) -> None:
    try:
        budget = output_budget(prompt, segment, length)
    except TextTooLongError:
        assert prompt + max(segment, 16) > length
    else:
        assert segment <= budget
        assert prompt + budget <= length


def test_an_idle_engine_owes_nothing() -> None:
    clock = Clock(0.0)
    stall_detector = StallDetector(clock)
    clock.now_s = 1000
    assert (stall_detector.stalled_s, stall_detector.generating) == (0, 0)


def test_time_counts_from_the_last_step_while_there_is_work() -> None:
    clock = Clock(0.0)
    stall_detector = StallDetector(clock)
    with stall_detector.generation():
        clock.now_s = 5
        assert (stall_detector.stalled_s, stall_detector.generating) == (5, 1)
        stall_detector.step()
        clock.now_s = 8
        assert stall_detector.stalled_s == 3


def test_a_stuck_engine_is_noticed_through_callers_that_give_up() -> None:
    clock = Clock(0.0)
    stall_detector = StallDetector(clock)
    for _ in range(5):
        with stall_detector.generation():
            clock.now_s += 30
        clock.now_s += 1000
    assert stall_detector.stalled_s == 150
    stall_detector.step()
    assert stall_detector.stalled_s == 0


def test_a_caller_that_leaves_at_once_makes_no_stuck_engine() -> None:
    clock = Clock(0.0)
    stall_detector = StallDetector(clock)
    with stall_detector.generation():
        clock.now_s += 0.005
    clock.now_s += 10_000
    assert stall_detector.stalled_s == 0.005


def test_generations_side_by_side_count_time_once() -> None:
    clock = Clock(0.0)
    stall_detector = StallDetector(clock)
    with stall_detector.generation(), stall_detector.generation():
        clock.now_s += 10
        assert (stall_detector.stalled_s, stall_detector.generating) == (10, 2)
    assert stall_detector.stalled_s == 10
