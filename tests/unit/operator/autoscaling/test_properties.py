"""What holds for every deployment that hypothesis can think of."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_operator.autoscaling.decision.recommend import recommend
from dragoman_operator.autoscaling.decision.values import History, Policy, ReplicaSample, Rule, Samples

NOW = 1_700_000_000.0
TICK_S = 5.0

requests = st.integers(0, 400).map(float)
shares = st.none() | st.floats(0, 1)
rates = st.none() | st.floats(0, 500)


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    low = draw(st.integers(0, 5))
    return Policy(
        min_replicas=low,
        max_replicas=draw(st.integers(max(1, low), 40)),
        max_num_seqs=draw(st.integers(1, 256)),
        target_concurrency=draw(st.none() | st.floats(0.5, 300)),
        idle_s=draw(st.integers(0, 2000).map(float)),
        tick_s=TICK_S,
    )


@st.composite
def replica_samples(draw: st.DrawFn, now: float, counted: bool = False) -> ReplicaSample:
    age_s = draw(st.none() | st.integers(0, 40))
    return ReplicaSample(
        at=None if age_s is None else now - age_s,
        running=draw(st.integers(0, 300).map(float)),
        waiting=draw(requests),
        kv_usage=draw(shares),
        finished_per_s=draw(st.floats(0, 500)) if counted else draw(rates),
    )


@st.composite
def deployments(draw: st.DrawFn, now: float) -> Samples:
    counted = draw(st.booleans())
    ready = tuple(draw(st.lists(replica_samples(now, counted), max_size=6)))
    pending = draw(st.integers(0, 4))
    return Samples(
        desired=draw(st.just(len(ready) + pending) | st.integers(0, 50)),
        replicas=ready,
        pending=pending,
        pending_s=draw(st.sampled_from([0.0, 30.0, 5000.0])),
        queued=draw(st.sampled_from([0.0, 1.0, 100.0, 5000.0])),
        time_to_ready_s=draw(st.none() | st.sampled_from([5.0, 60.0, 966.0])),
    )


@st.composite
def runs(draw: st.DrawFn, longest: int = 8) -> list[tuple[float, Samples]]:
    """A few ticks in a row, with gaps in some."""
    now, ticks = NOW, []
    for _ in range(draw(st.integers(1, longest))):
        now += draw(st.sampled_from([TICK_S, TICK_S, TICK_S, 12.0, 400.0, 4000.0]))
        ticks.append((now, draw(deployments(now))))
    return ticks


def history_after(policy: Policy, ticks: list[tuple[float, Samples]]) -> History:
    history = History()
    for now, samples in ticks:
        history = recommend(policy, samples, history, now).history
    return history


def busier(samples: Samples, more: float, index: int, held: bool) -> Samples:
    """The same with more work in one place."""
    if held or not samples.replicas:
        return replace(samples, queued=samples.queued + more)
    place = index % len(samples.replicas)
    changed = replace(samples.replicas[place], waiting=samples.replicas[place].waiting + more)
    return replace(samples, replicas=(*samples.replicas[:place], changed, *samples.replicas[place + 1 :]))


@given(policies(), runs())
def test_always_between_the_bounds_and_with_a_reason(policy, ticks):
    history = History()
    for now, samples in ticks:
        decision = recommend(policy, samples, history, now)
        assert policy.min_replicas <= decision.replicas <= policy.max_replicas
        assert decision.reason[0] in "0123456789k"
        history = decision.history


@given(policies(), runs(), st.floats(0, 2000), st.integers(0, 5), st.booleans())
def test_more_load_never_requires_fewer(policy, ticks, more, index, held):
    *past, (now, samples) = ticks
    history = history_after(policy, past)
    before = recommend(policy, samples, history, now)
    after = recommend(policy, busier(samples, more, index, held), history, now)
    assert after.replicas >= before.replicas


@given(policies(), runs())
def test_never_fewer_while_a_ready_replica_does_not_report(policy, ticks):
    history = History()
    for now, samples in ticks:
        decision = recommend(policy, samples, history, now)
        if decision.signals.missing:
            assert decision.replicas >= policy.bounded(samples.desired)
        if decision.signals.missing * 2 > samples.ready:
            assert not decision.metrics_available
            assert decision.replicas == policy.bounded(samples.desired)
        history = decision.history


@given(policies(), runs(), st.randoms(use_true_random=False))
def test_the_order_of_samples_does_not_matter(policy, ticks, random):
    *past, (now, samples) = ticks
    history = history_after(policy, past)
    shuffled = list(samples.replicas)
    random.shuffle(shuffled)
    assert recommend(policy, samples, history, now) == recommend(
        policy, replace(samples, replicas=tuple(shuffled)), history, now
    )


@given(policies(), runs(longest=12))
def test_a_restart_changes_nothing(policy, ticks):
    history = restarted = History()
    for now, samples in ticks:
        decision = recommend(policy, samples, history, now)
        text = restarted.to_json()
        again = recommend(policy, samples, History.from_json(text), now)
        assert len(text) < 16_000
        # Numbers are stored to a thousandth, which can tip a number that lies on an edge by one.
        assert again.replicas == pytest.approx(decision.replicas, abs=1)
        assert again.metrics_available == decision.metrics_available
        history, restarted = decision.history, again.history


@given(policies(), runs(), st.integers(0, 60))
def test_a_lost_history_never_scales_down_at_once(policy, ticks, later):
    now, samples = ticks[-1]
    decision = recommend(policy, samples, History(), now + later)
    if policy.idle_s > 0 or policy.min_replicas > 0:
        assert decision.replicas >= policy.bounded(samples.desired)


@given(
    seqs=st.integers(2, 128),
    per_replica=st.floats(0.05, 0.95),
    replicas=st.integers(1, 30),
    service_s=st.floats(0.1, 20),
)
def test_what_is_settled_stays(seqs, per_replica, replicas, service_s):
    """Constant work that is followed comes to rest, and then nothing is ever changed again."""
    policy = Policy(min_replicas=1, max_replicas=40, max_num_seqs=seqs, tick_s=TICK_S)
    at_once = per_replica * seqs * replicas
    history, desired, changes = History(), replicas, []
    for tick in range(500):
        now = NOW + tick * TICK_S
        each = min(at_once / desired, seqs)
        one = ReplicaSample(now, each, 0.0, None, at_once / service_s / desired)
        decision = recommend(policy, Samples(desired, (one,) * desired, time_to_ready_s=60.0), history, now)
        if decision.replicas != desired:
            changes.append(tick)
        history, desired = decision.history, decision.replicas
    assert len(changes) <= 3
    assert not [tick for tick in changes if tick > 300]


@given(policies(), st.lists(st.sampled_from([0, 1]), min_size=1, max_size=20))
def test_no_requests_never_scale_up(policy, gaps):
    history, desired, now = History(), max(1, policy.min_replicas), NOW
    desired = policy.bounded(desired)
    for gap in gaps:
        now += TICK_S * (1 + gap)
        one = ReplicaSample(now, 0.0, 0.0, 0.0, 0.0)
        decision = recommend(policy, Samples(desired, (one,) * desired), history, now)
        assert decision.replicas <= desired
        assert decision.rule in {Rule.STEADY, Rule.STABILIZED, Rule.SCALE_DOWN, Rule.IDLE}
        history, desired = decision.history, decision.replicas
