"""The fluid fleet: against what can be reckoned by hand, and against the exact one, request by request."""

import numpy as np
import pytest

from dragoman_simulate.exact import ExactFleet
from dragoman_simulate.fleet import Fleet
from dragoman_simulate.policies import POLICIES
from dragoman_simulate.replay import replay
from dragoman_simulate.speed import SpeedTable


class Plan:
    """A policy that reads its replicas from a list of (second, replicas)."""

    tick_s = 1

    def __init__(self, *steps):
        self.steps = steps

    def decide(self, view):
        return next((count for at, count in reversed(self.steps) if view.now_s >= at), view.desired)


def run_both(build, trace, policies, limits, replicas, spread=0.67):
    fluid_policy, exact_policy = policies
    tokens = float(trace.target_tokens[0])
    fluid = Fleet(limits, build.speed, replicas, float(trace.counts[0]), tokens)
    exact = ExactFleet(limits, build.speed, replicas, seed=1, spread=spread)
    return replay(trace, fluid_policy, fluid, limits), replay(trace, exact_policy, exact, limits)


SHAPES = {
    "steady": ([150.0] * 300, 85, 32, Plan((0, 2))),
    "overload that ends": ([180.0] * 60 + [320.0] * 100 + [60.0] * 240, 85, 32, Plan((0, 2))),
    "step met late": ([100.0] * 60 + [330.0] * 150 + [80.0] * 150, 85, 32, Plan((0, 1), (80, 4))),
    "growth and removal": ([60.0] * 60 + [250.0] * 240, 85, 32, Plan((0, 1), (60, 5), (220, 3))),
    "long texts, few seats": ([0.8] * 200 + [4.5] * 500 + [0.8] * 500, 1500, 16, Plan((0, 1), (300, 2))),
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_agrees_with_the_exact_model(build, shape):
    """Same plan, same arrivals: hours within 2%, share over target within 2 points, high waits within a tenth or
    half a second; long texts, whose ends come in lumps, within a fifth."""
    rates, tokens, seats, plan = SHAPES[shape]
    limits = build.limits(max_num_seqs=seats)
    fluid, exact = run_both(
        build, build.trace(rates, tokens), (plan, plan), limits, 2 if shape == "steady" else 1
    )
    slack = 0.2 if tokens > 1000 else 0.1
    assert fluid.replica_hours == pytest.approx(exact.replica_hours, rel=0.02)
    assert fluid.over_target_share == pytest.approx(
        exact.over_target_share, abs=0.02 if slack < 0.2 else 0.04
    )
    assert fluid.wait_p95_s == pytest.approx(exact.wait_p95_s, rel=slack, abs=0.5)
    assert fluid.wait_p99_s == pytest.approx(exact.wait_p99_s, rel=slack, abs=0.5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dragoman", "kpa"])
def test_policies_do_the_same_in_both(build, name):
    """Closed loop, where a gauge's noise can tip decisions: hours within 5%, share within 2 points."""
    limits = build.limits()
    trace = build.trace([100.0] * 200 + [300.0] * 300 + [100.0] * 200)
    make = POLICIES[name]
    fluid, exact = run_both(build, trace, (make(limits), make(limits)), limits, 2)
    assert fluid.replica_hours == pytest.approx(exact.replica_hours, rel=0.05)
    assert fluid.over_target_share == pytest.approx(exact.over_target_share, abs=0.02)
    assert exact.over_target_share > 0.02


def test_waits_are_the_queue_over_the_rate(build):
    limits = build.limits()
    full_per_s = 32 * build.speed.tokens_per_s(32) / 100
    fleet = Fleet(limits, build.speed, 1, full_per_s, 100.0)
    for second in range(10):
        fleet.step(second, 2 * full_per_s, 90, 100.0)
    # The queue grows by a second's work each second; the last to come waits ten.
    assert fleet.waits.percentiles((1.0,))[0] == pytest.approx(10, abs=0.5)
    metrics = fleet.view(10, blind=False).metrics
    assert metrics is not None
    assert metrics.waiting == pytest.approx(10 * full_per_s, rel=0.02)


def test_no_request_is_lost_or_made(build):
    limits = build.limits(minimum=0)
    trace = build.trace([0.0] * 30 + [80.0] * 200 + [0.0] * 100)
    fleet = Fleet(limits, build.speed, 0, 0.0, 85.0)
    outcome = replay(trace, Plan((0, 0), (40, 3), (120, 1), (180, 4)), fleet, limits)
    assert fleet.waits.total == pytest.approx(trace.counts.sum(), rel=1e-9)
    assert outcome.wait_p99_s > 30  # the first ones waited for a replica to start


def test_held_requests_wait_for_the_start(build):
    limits = build.limits(minimum=0, start_up_s=50.0)
    fleet = Fleet(limits, build.speed, 0, 0.0, 85.0)
    fleet.resize(1, 0)
    fleet.step(0, 1.0, 90, 85.0)
    for second in range(1, 60):
        fleet.step(second, 0, 90, 85.0)
    assert fleet.waits.percentiles((0.5,))[0] == pytest.approx(50, abs=1)


def test_a_removed_replica_finishes_what_it_has(build):
    limits = build.limits()
    fleet = Fleet(limits, build.speed, 2, 300.0, 85.0)
    for second in range(30):
        fleet.step(second, 300.0, 90, 85.0)
    fleet.resize(1, 30)
    assert fleet.ready == 1
    before = fleet.replica_seconds
    fleet.step(30, 0, 90, 85.0)
    assert fleet.replica_seconds - before == 2  # still paid for while it drains


def test_speeds_between_rows_and_beyond(build):
    speed = build.speed
    assert 1000 / speed.tokens_per_s(4) == pytest.approx(2.46)
    assert 1000 / speed.tokens_per_s(12) == pytest.approx((2.83 + 3.25) / 2)
    assert speed.tokens_per_s(1) == speed.tokens_per_s(4)
    throughput = [n * speed.tokens_per_s(n) for n in range(1, 1200)]
    assert np.all(np.diff(throughput) > -1e-6)
    # What it was drawn from: 57.9 requests a second of 85 tokens with 16 running.
    assert 16 * speed.tokens_per_s(16) / 85 == pytest.approx(57.9, rel=0.01)
    assert 512 * speed.tokens_per_s(512) / 85 == pytest.approx(398, rel=0.01)


def test_above_its_rows_a_table_goes_on_as_from_the_first_to_the_last():
    table = SpeedTable("two rows", (2.0, 10.0), (4.0, 8.0), 1000, ms_per_request=(10.0, 8.0))
    assert 1000 / table.tokens_per_s(20) == pytest.approx(13.0)
    assert table.request_s(20) == pytest.approx(0.008)
    one = SpeedTable("one row", (4.0,), (10.0,), 1000)
    assert 1000 / one.tokens_per_s(8) == pytest.approx(20.0)
