"""Replicas that are kept for bursts, by the objective."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.decisions import make_clock, make_policy

from dragoman_operator.autoscaling.decision.objective import Fleet, Load, needed, replay, unseen_burst
from dragoman_operator.autoscaling.decision.recommend import request
from dragoman_operator.autoscaling.decision.values import ARRIVALS, ARRIVALS_S, History, Rule

FLEET = Fleet(capacity=100.0, utilisation=0.8, start=12, wait=0.4, max_replicas=20)
SMOOTH = (160,) * 720
BURSTS = ((60,) * 14 + (500,) * 4) * 40
"""Of a tick: quiet for 70 s, then five replicas' work for 20 s."""

CROWDS = (
    (60,) * 60 + tuple(range(200, 1000, 160)) + tuple(round(60 + 900 * 0.9**tick) for tick in range(55))
) * 6
"""They gather within 30 s and fade within minutes."""

counts = st.lists(st.integers(0, 3000), min_size=1, max_size=120)


def expected(arrivals, objective, *, ahead=False, **fleet):
    changed = replace(FLEET, **fleet)
    return needed(Load.of(arrivals, changed, 12, ahead), changed, 1 - objective)


def kept(arrivals, objective, **fleet):
    return expected(arrivals, objective, **fleet)[0].replicas


def test_smooth_arrivals_need_none_beyond_the_load():
    assert kept(SMOOTH, 0.999) <= 2


def test_bursts_shorter_than_a_start_need_their_peak():
    assert kept(BURSTS, 0.99) == 5


def test_a_lower_objective_keeps_fewer():
    numbers = [kept(BURSTS, objective) for objective in (0.3, 0.9, 0.999)]
    assert numbers == sorted(numbers)
    assert numbers[0] < numbers[-1]


def test_bursts_that_a_start_outruns_need_fewer_than_those_that_it_does_not():
    long = ((60,) * 60 + (500,) * 60) * 6
    assert kept(long, 0.9, start=1) < kept(long, 0.9, start=40)


def test_expected_are_the_kept_and_one_less():
    first, second = expected(BURSTS, 0.99)
    assert (first.replicas, second.replicas) == (5, 4)
    assert first.late_ratio <= 0.01 < second.late_ratio


def test_extrapolated_rises_leave_fewer_late_requests_where_crowds_gather():
    fleet = replace(FLEET, start=4)
    with_it, without = (replay(Load.of(CROWDS, fleet, 12, ahead), fleet, 2) for ahead in (True, False))
    assert with_it < 0.8 * without


@pytest.mark.parametrize(("start", "cancelled"), [(5, False), (12, True)], ids=["25 s", "60 s"])
def test_a_replay_cancels_starts_30_s_after_the_last_scale_up(start, cancelled):
    """Five replicas start for a rise, and are not required before the moment at which they would be ready."""
    none, rise, again = [0.0] * 20, [5.0] + [0.0] * 19, 20 - start
    load = Load([1.0] * start + [5.0] * again, none, rise, [1] * start + [6] * again)
    assert (replay(load, replace(FLEET, start=start), 1) > 0) is cancelled


def test_too_low_a_maximum_is_used_up():
    assert kept(BURSTS, 0.99, max_replicas=3) == 3


@given(counts, st.integers(1, 30), st.integers(1, 40))
def test_a_fleet_as_large_as_the_peak_has_no_late_request(arrivals, start, window):
    fleet = replace(FLEET, start=start, max_replicas=40)
    load = Load.of(arrivals, fleet, window)
    assert replay(load, fleet, 31) == 0


@given(counts, st.integers(1, 20), st.integers(1, 30), st.integers(1, 40), st.integers(1, 20))
def test_a_ratio_of_late_requests_is_a_ratio(arrivals, kept, start, window, most):
    fleet = replace(FLEET, start=start, max_replicas=most)
    assert 0 <= replay(Load.of(arrivals, fleet, window), fleet, min(kept, most)) <= 1 + 1e-9


def test_a_burst_like_none_before_is_expected_by_objective_and_less_the_longer_none_came():
    assert unseen_burst(0.05, 0) == 0
    assert unseen_burst(0.001, 0) == pytest.approx(50**0.5)
    ratios = [unseen_burst(0.001, hours * 3600) for hours in range(0, 48, 4)]
    assert ratios == sorted(ratios, reverse=True)
    assert unseen_burst(0.01, 24 * 3600) == 0


def bursty(clock, ticks, begin=0):
    """Quiet for 70 s, then 20 s of 400 requests a second of a quarter second each."""
    for tick in range(begin, begin + ticks):
        rate = 400.0 if tick % 18 >= 14 else 40.0
        running = min(10.0 * clock.replicas, rate / 4)
        waiting = max(0.0, rate / 4 - running)
        clock.tick(running=running, waiting=waiting, finished_per_s=rate)
    return clock


@pytest.mark.parametrize("tick_s", [pytest.param(1.0, marks=pytest.mark.slow), 2.0, 3.0, 10.0])
def test_arrivals_are_counted_in_intervals_of_5_s_whatever_the_time_between_decisions(tick_s):
    clock = make_clock(5, objective=0.99, tick_s=tick_s)
    clock.tick(round(120 / tick_s) + 1, running=20, finished_per_s=40.0)
    arrivals = clock.history.arrivals
    assert len(arrivals) == 120 / ARRIVALS_S
    assert sum(arrivals[1:]) == pytest.approx(200 * len(arrivals[1:]), rel=0.01)
    clock.tick(round(4000 / tick_s), running=20, finished_per_s=40.0)
    assert len(clock.history.arrivals) == ARRIVALS == 3600 / ARRIVALS_S


def test_the_decision_keeps_replicas_for_bursts():
    clock = bursty(make_clock(1, objective=0.99), 360)
    assert clock.history.kept >= 9
    assert min(decision.replicas for decision in clock.decisions[-100:]) >= 9
    without = bursty(make_clock(1), 360)
    assert without.history.kept == 0


def test_the_reason_says_what_is_expected():
    history = bursty(make_clock(1, objective=0.99), 374).history
    clock = replace(make_clock(1, objective=0.99), history=history, now=1_700_000_000.0 + 374 * 5)
    decision = clock.tick(running=10, finished_per_s=40.0)
    assert decision.rule is Rule.OBJECTIVE
    kept, fewer = decision.signals.expected
    assert decision.reason.startswith(f"{kept.replicas} replicas for bursts: with {kept.replicas} replicas, ")
    assert f"of requests would wait over 2 s; with {fewer.replicas}, " in decision.reason
    assert decision.signals.expectation is not None


def test_a_restart_changes_no_decision():
    through = bursty(make_clock(1, objective=0.999), 400)
    stopped = bursty(make_clock(1, objective=0.999), 200)
    stopped.history = History.from_json(stopped.history.to_json())
    restarted = bursty(stopped, 200, begin=200)
    assert [each.replicas for each in restarted.decisions] == [each.replicas for each in through.decisions]


@pytest.mark.slow
def test_the_state_stays_below_8_kb():
    clock = bursty(make_clock(5, objective=0.999, max_num_seqs=1000, max_replicas=500), 2000)
    assert len(clock.history.arrivals) == ARRIVALS
    assert len(clock.history.to_json()) < 8_000


def test_idle_replicas_go_to_zero_in_spite_of_bursts_within_the_hour():
    clock = bursty(make_clock(1, objective=0.99, min_replicas=0), 180)
    clock.tick(200)
    assert clock.replicas == 0
    assert clock.tick().replicas == 0


def test_a_lower_request_is_used_as_far_as_the_objective_allows():
    clock = bursty(make_clock(1, objective=0.99), 360)
    kept = clock.history.kept
    proposal, _ = request(clock.policy, clock.history, clock.replicas, 1, clock.now)
    assert proposal.replicas >= kept


@pytest.mark.parametrize("objective", [0.0, 1.0, -0.1, 99.0])
def test_an_objective_is_a_ratio(objective):
    with pytest.raises(ValueError, match="objective"):
        make_policy(objective=objective)


def test_times_that_round_to_zero_do_not_lose_the_history():
    history = History(busiest_s=0.0001, start_s=0.0001, arrivals=(1, 2), kept=3)
    assert History.from_json(history.to_json()).kept == 3


def test_an_engine_that_stalls_once_does_not_seem_slow_for_hours():
    clock = make_clock(1)
    clock.tick(60, running=5, finished_per_s=5)
    clock.tick(6, running=10, waiting=100, finished_per_s=0.5, follow=False)
    clock.tick(60, running=5, finished_per_s=5)
    assert (clock.history.busiest_s or 9) < 3, "in the stall, ten run, and one finishes in two seconds"


def test_a_service_time_that_lasts_for_a_minute_is_kept():
    clock = make_clock(1)
    clock.tick(60, running=5, finished_per_s=5)
    clock.tick(13, running=10, finished_per_s=5, follow=False)
    clock.tick(60, running=5, finished_per_s=5)
    assert clock.history.busiest_s == pytest.approx(2.0, rel=0.02)


@pytest.mark.parametrize("tick_s", [5.0, 5.2])
def test_few_requests_are_measured_over_longer_periods(tick_s):
    """15 finish in half a minute, 45 in one and a half."""
    clock = make_clock(1, tick_s=tick_s)
    clock.tick(60, running=2, finished_per_s=0.5)
    clock.tick(40, running=4, finished_per_s=0.5, follow=False)
    clock.tick(40, running=2, finished_per_s=0.5)
    assert clock.history.busiest_s == pytest.approx(8.0, rel=0.02)
