"""A number that another client writes to spec.replicas in mode Internal."""

from typing import Any

import pytest
from tests.support.decisions import make_clock

from dragoman_operator.autoscaling.decision.recommend import request
from dragoman_operator.autoscaling.decision.values import History


def observed(clock: Any, ticks: int, **load: Any) -> Any:
    """A clock after so many ticks of five seconds."""
    clock.tick(ticks, **load)
    return clock


def test_higher_number_is_used_at_once_and_kept_for_a_window() -> None:
    clock = observed(make_clock(1), 70)
    proposal, clock.history = request(clock.policy, clock.history, 1, 4, clock.now)
    assert (proposal.replicas, proposal.rule) == (4, "Requested")
    assert proposal.reason == "4 replicas: 4 requested in spec.replicas"
    clock.replicas = 4
    decision = clock.tick(55)
    assert (decision.replicas, decision.rule) == (4, "ScaleDownStabilized")
    assert decision.reason == "kept at 4: requested in spec.replicas 5 min ago"
    assert clock.tick(10).replicas == 1


def test_without_a_window_in_the_spec_a_higher_number_is_kept_for_5_min() -> None:
    clock = observed(make_clock(1, scale_down_window_s=None), 70)
    _, clock.history = request(clock.policy, clock.history, 1, 4, clock.now)
    clock.replicas = 4
    assert clock.tick(59, time_to_ready_s=20.0).replicas == 4
    assert clock.tick(3, time_to_ready_s=20.0).replicas == 1


def test_number_outside_the_bounds_is_limited() -> None:
    clock = observed(make_clock(2, max_replicas=4), 3)
    proposal, _ = request(clock.policy, clock.history, 2, 9, clock.now)
    assert proposal.replicas == 4
    assert proposal.reason == "4 replicas: 9 requested in spec.replicas, minReplicas is 1 and maxReplicas 4"


def test_lower_number_is_used_as_far_as_the_load_of_the_window_allows() -> None:
    clock = observed(make_clock(5), 70, running=28.0)
    proposal, _ = request(clock.policy, clock.history, 5, 1, clock.now)
    assert proposal.replicas == 4
    assert proposal.reason == (
        "4 replicas: 1 requested in spec.replicas; the load required at most 3.5 replicas in the last 5 min"
    )


def test_lower_number_revokes_a_higher_one() -> None:
    clock = observed(make_clock(1), 70)
    _, clock.history = request(clock.policy, clock.history, 1, 4, clock.now)
    clock.replicas = 4
    clock.tick(3)
    proposal, clock.history = request(clock.policy, clock.history, 4, 1, clock.now)
    assert proposal.replicas == 1
    assert clock.history.requested is None


@pytest.mark.parametrize(
    ("ticks", "missing", "later_s", "problem"),
    [
        (10, 0, 0, "observed for 45 s of the 5 min stabilization window"),
        (70, 1, 0, "1 of 5 report no metrics"),
        (70, 0, 60, "the load is not known"),
    ],
)
def test_lower_number_changes_nothing_without_a_window(
    ticks: int, missing: int, later_s: float, problem: str
) -> None:
    clock = observed(make_clock(5), ticks, missing=missing)
    proposal, _ = request(clock.policy, clock.history, 5, 1, clock.now + later_s)
    assert proposal.replicas == 5
    assert proposal.reason == f"kept at 5: 1 requested in spec.replicas, but {problem}"
    proposal, _ = request(clock.policy, History(), 5, 1, clock.now)
    assert proposal.replicas == 5


def test_zero_needs_a_window_without_requests() -> None:
    clock = observed(make_clock(1, min_replicas=0), 70)
    assert request(clock.policy, clock.history, 1, 0, clock.now)[0].replicas == 0
    busy = observed(make_clock(1, min_replicas=0), 70, running=0.5)
    assert request(busy.policy, busy.history, 1, 0, busy.now)[0].replicas == 1


def test_replica_that_was_requested_is_not_idle_within_the_window() -> None:
    clock = observed(make_clock(0, min_replicas=0, idle_s=10.0), 70)
    proposal, clock.history = request(clock.policy, clock.history, 0, 1, clock.now)
    clock.replicas = proposal.replicas
    assert clock.tick(50).replicas == 1
    assert clock.tick(20).rule == "Idle"


def test_request_survives_a_restart() -> None:
    clock = observed(make_clock(1), 3)
    _, history = request(clock.policy, clock.history, 1, 4, clock.now)
    assert History.from_json(history.to_json()).requested == history.requested
    assert not history.begins_after(clock.now)
    assert history.begins_after(clock.now - 1)
