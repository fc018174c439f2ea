"""When a size that is tried goes on, and when back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_operator.tuning.decision.measurements import Measurements
from dragoman_operator.tuning.decision.recommendation import Outcome, compare


def slower(ratio: float) -> Any:
    return lambda running: ratio * (0.0025 + 0.00005 * running)


def compared(build: Any, before: Any, after: Any, load: float, samples: int = 60, **how: Any) -> Outcome:
    old, new = build.watched(before, [load] * samples), build.watched(after, [load] * samples)
    return compare(old, new, **{"side_by_side": True} | how).outcome


def test_more_places_for_those_that_wait_are_better(build: Any) -> None:
    assert compared(build, build.pod(16), build.pod(32, seed=1), 25) is Outcome.BETTER


def test_more_places_than_are_used_are_alike(build: Any) -> None:
    assert compared(build, build.pod(32), build.pod(64, seed=1), 20) is Outcome.EQUAL


def test_places_taken_away_from_those_that_need_them_are_worse(build: Any) -> None:
    assert compared(build, build.pod(32), build.pod(16, seed=1), 25) is Outcome.WORSE


def test_an_engine_that_is_slower_in_every_step_is_worse(build: Any) -> None:
    assert compared(build, build.pod(32), build.pod(64, slower(1.1), seed=1), 20) is Outcome.WORSE


def test_lost_requests_are_worse_however_fast(build: Any) -> None:
    found = compare(
        build.watched(build.pod(16), [25.0] * 60),
        build.watched(build.pod(32, lost_ratio=0.05, seed=1), [25.0] * 60),
        side_by_side=True,
    )
    assert found.outcome is Outcome.WORSE
    assert "of its requests are lost, 0.0% before" in found.reason


def test_a_few_samples_or_requests_give_no_result(build: Any) -> None:
    assert compared(build, build.pod(16), build.pod(32), 25, samples=5) is Outcome.INCONCLUSIVE
    assert compare(Measurements(), Measurements(), side_by_side=True).outcome is Outcome.INCONCLUSIVE
    idle = build.watched(build.pod(32), [0.0] * 60)
    assert (
        compare(build.watched(build.pod(16), [25.0] * 60), idle, side_by_side=True).outcome
        is Outcome.INCONCLUSIVE
    )


def test_noise_that_hides_a_loss_is_not_called_alike(build: Any) -> None:
    loud = build.pod(64, noise=0.5, seed=3)
    assert compared(build, build.pod(32, noise=0.5), loud, 20, samples=20) is Outcome.INCONCLUSIVE


def test_one_after_the_other_another_load_is_no_comparison(build: Any) -> None:
    before = build.watched(build.pod(16), [40.0] * 60)
    after = build.watched(build.pod(32), [5.0] * 60)
    assert compare(before, after, side_by_side=False).outcome is Outcome.INCONCLUSIVE
    # Where the load has been as low before, only that is compared: with few requests either size is as good.
    before = before.plus(build.watched(build.pod(16), [5.0] * 60))
    assert compare(before, after, side_by_side=False).outcome is Outcome.EQUAL


def test_side_by_side_a_faster_pod_may_have_fewer_requests_in_flight(build: Any) -> None:
    """A Service spreads requests evenly: the slower size piles them up, the other has no such sample."""
    before = build.watched(build.pod(16), [60.0] * 60)
    after = build.watched(build.pod(32, seed=1), [20.0] * 60)
    assert compare(before, after, side_by_side=True).outcome is Outcome.BETTER


def test_reason_has_the_measurements(build: Any) -> None:
    before = build.watched(build.pod(16, noise=0.0), [25.0] * 60)
    after = build.watched(build.pod(32, noise=0.0), [25.0] * 60)
    reason = compare(before, after, side_by_side=True).reason
    assert reason == "+37.5% throughput, ±0.0%; queue 0.16 → 0 s; 3.3 → 3.75 ms a token"


@pytest.mark.slow
@pytest.mark.parametrize("side_by_side", [True, False])
def test_equal_sizes_are_hardly_ever_called_better_or_worse(build: Any, side_by_side: bool) -> None:
    """A fifth of noise in each sample: of 150 comparisons of a size with itself, chance decides a few."""
    decided = [
        compared(
            build,
            build.pod(32, noise=0.2, seed=2 * seed),
            build.pod(32, noise=0.2, seed=2 * seed + 1),
            20,
            side_by_side=side_by_side,
        )
        for seed in range(150)
    ]
    wrong = sum(outcome in (Outcome.BETTER, Outcome.WORSE) for outcome in decided)
    assert wrong <= 0.07 * len(decided)


@given(st.integers(0, 10_000), st.floats(0.3, 0.85) | st.floats(1.2, 3))
def test_a_clear_difference_is_found_in_its_direction(build: Any, seed: int, ratio: float) -> None:
    found = compared(build, build.pod(32, seed=seed), build.pod(32, slower(ratio), seed=seed + 1), 20)
    assert found is (Outcome.WORSE if ratio > 1 else Outcome.BETTER)
