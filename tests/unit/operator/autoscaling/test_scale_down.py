"""When replicas are let go, and what keeps them."""

from itertools import pairwise

import pytest
from tests.support.decisions import make_clock, make_policy

from dragoman_operator.autoscaling.decision.recommend import recommend
from dragoman_operator.autoscaling.decision.values import History, Rule, Samples


def quiet(clock, replicas):
    """Let the load fall and tick until the replicas do; the seconds that took."""
    for tick in range(1000):
        if clock.tick(running=2, finished_per_s=10).replicas <= replicas:
            return (tick + 1) * clock.policy.tick_s
    raise AssertionError(clock.decisions[-1].reason)


def test_the_window_keeps_what_the_load_required():
    clock = make_clock(5)
    clock.tick(100, running=40, finished_per_s=100)
    assert 295 <= quiet(clock, 1) <= 420
    shrunk = next(decision for decision in clock.decisions if decision.rule is Rule.SCALE_DOWN)
    assert "the load required at most" in shrunk.reason
    assert "in the last 5 min" in shrunk.reason


def test_no_scale_down_to_replicas_that_would_be_full():
    """In full replicas a request took 0.1 s: one serves 100 a second. In emptier ones it takes 0.05 s."""
    clock = make_clock(2, scale_down_window_s=15.0)
    clock.tick(20, running=20, finished_per_s=200, follow=False)
    clock.replicas = 12
    clock.tick(10, running=20, finished_per_s=400)
    assert clock.replicas == 4
    assert Rule.LOAD not in [decision.rule for decision in clock.decisions[-10:]]
    clock.tick(200, running=20, finished_per_s=400)
    assert clock.replicas == 4


def test_nothing_is_let_go_before_a_window_was_watched():
    clock = make_clock(5)
    decision = clock.tick(59, running=2)
    assert (decision.replicas, decision.rule) == (5, Rule.STABILIZED)
    assert clock.tick(3, running=2).replicas == 1


@pytest.mark.parametrize(
    ("start_s", "window_s"), [(10.0, 60.0), (120.0, 360.0), (4000.0, 1800.0)], ids=["10 s", "2 min", "1 h"]
)
def test_the_default_window_is_three_starts_between_a_minute_and_half_an_hour(start_s, window_s):
    clock = make_clock(5, scale_down_window_s=None)
    clock.tick(500, running=40, finished_per_s=100, time_to_ready_s=start_s)
    took_s = 0.0
    while clock.tick(running=2, finished_per_s=10, time_to_ready_s=start_s).replicas == 5:
        took_s += 5.0
        assert took_s < 4000, clock.decisions[-1].reason
    assert window_s - 5 <= took_s <= window_s + 60  # the load is a mean of a minute


def test_noise_does_not_add_and_remove_a_replica_in_turn():
    """Requests take 30 ms in a full replica, and 20 ms in two half-full ones: these suggest that one is enough."""
    clock = make_clock(1, scale_down_window_s=None)
    for _ in range(720):
        service_s = 0.03 if clock.replicas == 1 else 0.02
        clock.tick(running=310 * service_s, finished_per_s=310.0)
    assert sum(one.replicas != two.replicas for one, two in pairwise(clock.decisions)) <= 6  # in an hour


def test_no_scale_down_while_replicas_start():
    clock = make_clock(3)
    clock.tick(200, running=2, desired=4, pending=1, pending_s=60, follow=False)
    assert clock.decisions[-1].replicas == 4
    assert clock.decisions[-1].reason == "kept at 4: 1 is starting"


def test_starts_that_the_load_no_longer_requires_are_cancelled():
    clock = make_clock(3)
    clock.tick(200, running=2, desired=5, pending=2, pending_s=60, cancellable=2, follow=False)
    decision = clock.decisions[-1]
    assert (decision.replicas, decision.rule) == (3, Rule.CANCELLED)
    assert decision.reason == "3 replicas: the load required at most 0.2 replicas in the last 5 min"
    assert clock.history.last_scale_down is None


def test_only_starts_are_cancelled_and_replicas_that_were_ready_before_are_not():
    clock = make_clock(3)
    clock.tick(200, running=2, desired=5, pending=2, pending_s=60, cancellable=1, follow=False)
    assert clock.decisions[-1].replicas == 4


def test_surplus_pods_that_start_do_not_allow_a_scale_down_of_ready_ones():
    clock = make_clock(3)
    clock.tick(200, running=2, desired=3, pending=1, pending_s=60, cancellable=1, follow=False)
    assert clock.decisions[-1].reason == "kept at 3: 1 is starting"


def test_starts_are_cancelled_30_s_after_the_last_scale_up():
    clock = make_clock(2)
    clock.tick(200, running=4, finished_per_s=20)
    desired = clock.tick(2, running=20, waiting=80, finished_per_s=100, follow=False).replicas
    assert desired > 2
    starting = {"desired": desired, "pending": desired - 2, "cancellable": desired - 2, "follow": False}
    while (decision := clock.tick(running=20, waiting=80, finished_per_s=100, **starting)).replicas > desired:
        starting |= {
            "desired": decision.replicas,
            "pending": decision.replicas - 2,
            "cancellable": decision.replicas - 2,
        }
    assert decision.rule is Rule.STARTING
    began = clock.history.scale_ups[-1][0]
    while clock.tick(running=1, finished_per_s=1, **starting).rule is Rule.STARTING:
        assert clock.now - began <= 600
    assert clock.decisions[-1].rule is Rule.CANCELLED
    assert clock.now - began >= 30


def test_the_reason_names_a_minimum_above_the_load():
    clock = make_clock(2, min_replicas=2)
    clock.tick(100, running=2)
    assert clock.decisions[-1].reason == (
        "2 replicas: the load required at most 0.2 replicas in the last 5 min; minReplicas is 2"
    )


def test_a_replica_that_will_never_start_does_not_keep_the_others():
    clock = make_clock(3)
    clock.tick(200, running=2, desired=4, pending=1, pending_s=3600, follow=False)
    assert 1 in {decision.replicas for decision in clock.decisions}


def test_no_scale_down_while_any_replica_does_not_report():
    clock = make_clock(5)
    clock.tick(200, running=2, missing=1)
    assert clock.replicas == 5
    assert clock.decisions[-1].reason == "kept at 5 replicas: 1 of 5 report no metrics"


def test_large_deployments_scale_down_in_worthwhile_steps():
    clock = make_clock(100, max_replicas=200)
    clock.tick(200, running=98 * 8)
    assert clock.replicas == 100
    clock.tick(100, running=96 * 8)
    assert clock.replicas == 96


def test_to_zero_only_without_requests_and_only_if_allowed():
    clock = make_clock(1, min_replicas=0)
    clock.tick(200, running=1)
    assert clock.replicas == 1
    assert clock.tick(179).replicas == 1
    decision = clock.tick()
    assert (decision.replicas, decision.rule) == (0, Rule.IDLE)
    assert decision.reason == "0 replicas: no requests for 900 s"

    clock = make_clock(1, min_replicas=1)
    assert clock.tick(400).replicas == 1


def test_a_request_within_the_idle_time_restarts_it():
    clock = make_clock(1, min_replicas=0)
    clock.tick(170)
    clock.tick(running=1)
    assert clock.tick(170).replicas == 1


def test_the_bounds_win_over_everything():
    assert recommend(make_policy(min_replicas=3), Samples(0, ()), History(), 0.0).replicas == 3
    assert make_clock(9, max_replicas=4).tick(running=72, missing=9).replicas == 4
    decision = make_clock(9, max_replicas=4).tick(running=72)
    assert (decision.replicas, decision.rule) == (4, Rule.BOUNDS)
    assert decision.reason == "4 replicas: minReplicas is 1 and maxReplicas 4"


def test_one_scale_down_a_minute():
    clock = make_clock(9)
    clock.tick(100, running=72)
    for step in range(120):
        clock.tick(running=max(8, 72 - step))
    shrinks = [index for index, decision in enumerate(clock.decisions) if decision.rule is Rule.SCALE_DOWN]
    gaps = [later - earlier for earlier, later in pairwise(shrinks)]
    assert shrinks
    assert all(gap >= 12 for gap in gaps)
