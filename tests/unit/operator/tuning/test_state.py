"""Measuring and recommending; the state goes through the status after every step, as in a restart."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.tuned_pods import T0, Pod

from dragoman_operator.tuning.decision.measurements import Measurements
from dragoman_operator.tuning.decision.recommendation import Recommendation
from dragoman_operator.tuning.decision.state import (
    Observation,
    State,
    adopted,
    fresh,
    next_step,
    restored,
    with_observations,
)

WINDOW_S = 100.0
STATUS_LIMIT = 32_768


def measured(load: float, steps: int = 60, window_s: float = WINDOW_S) -> State:
    """The state after ticks of one pod of size 16 under a load, with a restart of the operator after each."""
    pod, state = Pod(16), fresh("v1", 16, T0)
    for _ in range(steps):
        state = with_observations(state, [Observation(16, *pod.sample(load))])
        state = next_step(state, 1, 8192, window_s, pod.now.at)
        state = restored(state.encoded(), "v1", 16, pod.now.at)
    return state


def test_the_size_that_fits_the_load_is_recommended() -> None:
    state = measured(25.0)
    assert state.recommendation is not None
    assert state.evidence is not None
    assert state.recommendation.max_num_seqs == 32
    assert state.evidence.p95 == 25.0
    assert state.busiest == 25.0


def test_nothing_is_recommended_before_a_window_is_over() -> None:
    assert measured(25.0, window_s=10 * WINDOW_S).recommendation is None


def test_the_time_of_a_recommendation_is_that_of_the_first_of_the_same_value() -> None:
    first, later = measured(25.0, steps=25), measured(25.0, steps=80)
    assert first.recommendation is not None
    assert later.recommendation is not None
    assert first.recommendation.max_num_seqs == later.recommendation.max_num_seqs
    assert first.recommended == later.recommended


def test_pods_of_another_size_are_not_measured() -> None:
    one, other = Pod(16), Pod(32)
    state = with_observations(
        fresh("v1", 16, 0.0), [Observation(16, *one.sample(9.0)), Observation(32, *other.sample(9.0))]
    )
    assert state.current == Measurements()


@pytest.mark.parametrize(("version", "size"), [("v2", 16), ("v1", 20)])
def test_another_spec_is_measured_anew_and_the_peaks_stay(version: str, size: int) -> None:
    state = measured(25.0)
    other = adopted(state, version, size, 7.0)
    assert other == replace(fresh(version, size, 7.0), peaks=state.peaks, since=T0)
    assert adopted(state, "v1", 16, 7.0) is state


@pytest.mark.parametrize("word", [None, "", "malformed", 7, "eJwDAAAAAAE="])
def test_a_state_that_cannot_be_read_is_ignored(word: object) -> None:
    assert restored(word, "v1", 16, 5.0) == fresh("v1", 16, 5.0)


@pytest.mark.parametrize(("hours", "recommended"), [(1, 16), (25, 2)])
def test_a_lower_value_is_recommended_once_a_day_was_measured(hours: int, recommended: int) -> None:
    pod, now = Pod(16), T0
    state = fresh("v1", 16, now - 3600.0 * hours)
    for _ in range(60):
        state = with_observations(state, [Observation(16, *pod.sample(1.0))])
        state = next_step(state, 1, 8192, WINDOW_S, pod.now.at)
    assert state.recommendation is not None
    assert state.recommendation.max_num_seqs == recommended


def test_a_recommendation_out_of_range_is_ignored() -> None:
    state = replace(fresh("v1", 16, 5.0), recommendation=Recommendation(10**9, "edited by hand"))
    assert restored(state.encoded(), "v1", 16, 5.0) == fresh("v1", 16, 5.0)


def test_peaks_are_forgotten_after_a_day() -> None:
    state = fresh("v1", 16, 0.0)
    for hour in range(50):
        state = state.with_peak(100.0 if hour == 3 else 4.0, 3600.0 * hour)
        assert (state.busiest == 100.0) == (3 <= hour < 27)
    assert len(state.peaks) == 24


@given(
    st.lists(st.sampled_from([0.0, 3.0, 25.0, 300.0]), max_size=60),
    st.sampled_from([1, 16, 64, 512]),
    st.integers(1, 64),
)
def test_state_stays_valid_and_small(loads: list[float], size: int, minimum: int) -> None:
    now, state, pod = T0, fresh("v1", size, T0), Pod(size)
    for load in loads:
        now += 40.0
        state = with_observations(state, [Observation(size, *pod.sample(load, now))])
        state = next_step(state, minimum, 512, WINDOW_S, now)
        assert len(state.encoded()) < STATUS_LIMIT
        again = restored(state.encoded(), "v1", size, now)
        assert again.recommendation == state.recommendation
        state = again
