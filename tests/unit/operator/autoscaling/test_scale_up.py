"""When more replicas are required, and how many."""

import pytest
from tests.support.decisions import make_clock, make_policy

from dragoman_operator.autoscaling.decision.recommend import recommend
from dragoman_operator.autoscaling.decision.values import History, ReplicaSample, Rule, Samples


def test_requests_in_flight_count_where_nothing_counts_the_finished():
    decision = make_clock(2).tick(running=20, waiting=20, follow=False)
    assert (decision.replicas, decision.rule) == (5, Rule.LOAD)
    assert decision.reason == "5 replicas: 40 requests are running or waiting, at 8 a replica"


@pytest.mark.parametrize(("in_flight", "replicas"), [(79, 10), (88, 10), (89, 12)])
def test_a_tenth_over_the_target_adds_nothing(in_flight, replicas):
    assert make_clock(10).tick(running=in_flight).replicas == replicas


def test_arrivals_count_and_not_the_queue_they_left_behind():
    clock = make_clock(4)
    clock.tick(20, running=32, finished_per_s=100)  # 0.32 s each: 32 at once, four replicas
    decision = clock.tick(running=40, waiting=24, finished_per_s=100, follow=False)
    # Peers that divide what is in flight by the target would require eight.
    assert decision.signals.by_load < 5
    assert decision.replicas == 4


def test_a_replica_behind_with_its_queue_is_not_counted_on():
    clock = make_clock(2)
    clock.tick(20, running=16, finished_per_s=40)
    # Arrivals jump from 40 to 100 a second; a replica finishes 25 at most and so has seconds of queue.
    decision = clock.tick(running=20, waiting=300, finished_per_s=50, follow=False)
    assert decision.rule is Rule.BACKLOG
    assert decision.replicas > 2 + 4
    assert "2 of 2 have a queue time above 2 s" in decision.reason


def test_a_replica_that_refuses_requests_is_not_counted_on():
    clock = make_clock(1)
    # 12 waiting at 100 a second are 0.12 s of queue: far from the target. What is refused is no arrival.
    load = {"running": 8, "waiting": 12, "finished_per_s": 100}
    assert clock.tick(20, **load, refused_per_s=10, follow=False).replicas == 1
    decision = clock.tick(**load, refused_per_s=20, follow=False)
    assert (decision.rule, decision.replicas) == (Rule.BACKLOG, 3)
    assert decision.reason.startswith("3 replicas: 1 of 1 refuse requests, and 100 ")


def test_a_refused_request_without_a_queue_adds_nothing():
    clock = make_clock(1)
    load = {"running": 4, "finished_per_s": 1}
    assert clock.tick(30, **load, waiting=0, refused_per_s=1).replicas == 1


def test_requests_too_short_to_be_observed_give_no_service_time():
    decision = make_clock(2).tick(10, running=0, finished_per_s=10, follow=False)
    assert decision.signals.service_s is None
    assert decision.replicas == 2


def test_a_rise_is_extrapolated_where_rises_mostly_continue():
    rates = [40.0, 40.0, 40.0, 40.0, 80.0, 120.0]  # 0.1 s each: one replica serves 100 a second
    replicas = []
    for growths in ((1.0, 1.1, 1.6), (1.0, 1.3, 1.6)):
        clock = make_clock(1)
        clock.history = History(growths=growths)
        for rate in rates:
            decision = clock.tick(running=rate / 10, finished_per_s=rate, follow=False)
        replicas.append((decision.replicas, decision.rule))
    assert replicas[0] == (2, Rule.LOAD)
    assert replicas[1][1] is Rule.TREND
    assert replicas[1][0] >= 4


def test_steady_increase_scales_up_before_requests_queue():
    clock = make_clock(10, target_concurrency=9.9)
    grown = []
    for step in range(60):
        per_s = 100 + step  # 0.4 s each: the ten replicas are full at 250 a second
        decision = clock.tick(running=per_s * 0.4, finished_per_s=per_s, follow=False)
        grown.append(decision.rule is Rule.TREND)
    assert not any(grown)  # by the time a replica starts, they still have room
    for step in range(60, 150):
        per_s = 100 + step
        decision = clock.tick(running=per_s * 0.4, finished_per_s=per_s, follow=False)
        if decision.rule is Rule.TREND:
            break
    assert decision.rule is Rule.TREND
    assert 225 <= per_s < 245
    assert decision.replicas == 11


def test_a_step_is_no_trend():
    clock = make_clock(10, target_concurrency=9.9)
    clock.tick(20, running=40, finished_per_s=100)
    decisions = [clock.tick(running=60, finished_per_s=150, follow=False) for _ in range(36)]
    assert Rule.TREND not in {decision.rule for decision in decisions}


def test_noise_on_few_requests_adds_nothing():
    clock = make_clock(1)
    for arrived in (3, 5, 4, 2, 8, 1, 4, 3, 9, 2, 4, 4) * 10:  # a mean of 4 a tick, Poisson-like
        clock.tick(running=arrived * 0.9, finished_per_s=arrived / 5)
    assert {decision.replicas for decision in clock.decisions} == {1}


def test_full_caches_require_replicas_too():
    decision = make_clock(4).tick(running=8, kv_usage=0.95, follow=False)
    assert (decision.replicas, decision.rule) == (5, Rule.KV_CACHE)
    assert decision.reason == "5 replicas: the KV caches are 95% full, the target is 80%"


def test_the_maximum_limits_and_is_in_the_reason():
    decision = make_clock(2, max_replicas=3).tick(running=20, waiting=200)
    assert decision.replicas == 3
    assert decision.reason.endswith("; maxReplicas is 3")


def test_one_minute_adds_no_more_than_ten_times():
    clock = make_clock(1, max_replicas=5000)
    first = clock.tick(running=10, waiting=100_000)
    assert (first.replicas, first.rule) == (17, Rule.LIMIT)
    assert clock.tick(11, running=170, waiting=100_000).replicas == 17
    assert clock.tick(2, running=170, waiting=100_000).replicas == 170


def test_pending_replicas_count_as_there():
    clock = make_clock(2)
    assert clock.tick(running=20, waiting=12, follow=False).replicas == 4
    assert clock.tick(running=20, waiting=12, desired=4, pending=2, follow=False).replicas == 4


def test_the_first_queued_request_scales_from_zero():
    policy = make_policy(min_replicas=0)
    decision = recommend(policy, Samples(0, (), queued=1), History(), 1.0)
    assert (decision.replicas, decision.rule) == (1, Rule.FROM_ZERO)
    assert recommend(policy, Samples(0, (), queued=30), History(), 1.0).replicas == 4
    assert recommend(policy, Samples(0, ()), History(), 1.0).replicas == 0


def test_requests_queued_while_the_first_replica_starts_count_by_their_rate():
    clock = make_clock(4, min_replicas=0, idle_s=60)
    clock.tick(20, running=32, finished_per_s=100)
    clock.tick(200, finished_per_s=0)
    assert clock.replicas == 0
    held, desired = 10.0, clock.tick(queued=10).replicas
    for _ in range(10):  # 100 a second come, and none can be served yet
        held += 500
        clock.now += 5
        decision = recommend(
            clock.policy, Samples(desired, (), pending=desired, queued=held), clock.history, clock.now
        )
        clock.history, desired = decision.history, decision.replicas
    assert desired == 4  # and not held / 8 = 640


def test_the_first_sample_of_a_new_replica_does_not_end_the_observation():
    """It has no rate yet. 100 requests wait for the first replica, which is full, and 10 a second arrive."""
    clock = make_clock(1)
    clock.tick(60, running=10, waiting=100, finished_per_s=10, follow=False)
    old = ReplicaSample(clock.now + 5, 10.0, 100.0, None, 10.0)
    new = ReplicaSample(clock.now + 5, 10.0, 0.0)
    samples = Samples(3, (old, new), pending=1, time_to_ready_s=60.0)
    decision = recommend(clock.policy, samples, clock.history, clock.now + 5)
    assert decision.replicas == 3
    assert decision.signals.service_s == pytest.approx(1.0)
    assert decision.signals.arrivals_per_s == pytest.approx(10.0, abs=1)


def test_a_backlog_of_few_requests_adds_a_replica():
    """Nine arrive in a minute, which may be chance; a queue that grows is none."""
    clock = make_clock(1, max_num_seqs=1)
    for minute in range(10):
        clock.tick(12, running=1, waiting=minute, finished_per_s=1 / 8, follow=False)
    assert clock.decisions[-1].rule is Rule.BACKLOG
    assert clock.decisions[-1].replicas > 1
