"""The rules that ask for more replicas. Growing is at once: a wait that has begun is not undone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dragoman_operator.autoscaling.decision.history import History
from dragoman_operator.autoscaling.decision.observe import Demand, Heard
from dragoman_operator.autoscaling.decision.policy import Policy
from dragoman_operator.autoscaling.decision.samples import Rule, Samples

TOLERANCE = 0.1
"""A tenth over the target adds nothing: it is within what a replica more or less would change."""

SURGE_S = 60.0
SURGE_FACTOR, SURGE_REPLICAS = 10, 16
"""Within a minute at most to ten times the replicas that were there, or sixteen more: a wrong figure must not ask
for a thousand GPUs. HPA's default, four doublings a minute, is as wide."""

FULL = 0.95
"""Share of `max_num_seqs` up to which a replica is reckoned to take new requests without a queue."""


@dataclass(frozen=True, slots=True)
class Wish:
    """Replicas that one rule wants, and why in a sentence."""

    replicas: int
    rule: Rule
    reason: str


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything that a rule may look at.

    Attributes:
        policy: Bounds and targets.
        samples: The deployment as it is.
        heard: The replicas that were heard of.
        demand: What the arrivals ask for; None where that cannot be told.
        by_memory: Replicas that the KV caches ask for, not rounded; None without that metric.
        history: With this tick in it.
        now: Unix seconds.
    """

    policy: Policy
    samples: Samples
    heard: Heard
    demand: Demand | None
    by_memory: float | None
    history: History
    now: float

    @property
    def in_flight(self) -> float:
        """Requests running, waiting or held."""
        return self.heard.running + self.heard.waiting + self.samples.held


def grow(situation: Situation) -> Wish | None:
    """The rule that wants most, where it wants more than there are."""
    samples = situation.samples
    there = max(samples.desired, samples.ready + samples.pending)
    wishes = [_load(situation, there), _memory(situation, there)]
    if not samples.ready:
        wishes.append(_wake(situation))
    elif situation.demand is not None:
        wishes.append(ahead(situation, situation.demand, there))
    best = max((wish for wish in wishes if wish), key=lambda wish: wish.replicas, default=None)
    if best is None or best.replicas <= there:
        return None
    best = _bounded(situation, best)
    return best if best.replicas > samples.desired else None


def _load(situation: Situation, there: int) -> Wish | None:
    """Enough replicas for each to have no more than the target concurrency.

    What the arrivals keep running counts, where that is known, and else what is in flight.
    """
    policy, demand = situation.policy, situation.demand
    if demand is not None:
        at_once = demand.sure_per_s * demand.service_s
        what = f"{in_words(demand.sure_per_s, demand.service_s)} are {at_once:.0f} at once"
    elif situation.samples.ready:
        at_once = situation.in_flight
        what = f"{at_once:.0f} requests are running or waiting"
    else:
        return None
    wanted = at_once / policy.concurrency
    if wanted <= there * (1 + TOLERANCE):
        return None
    replicas = round_up(wanted)
    return Wish(replicas, Rule.LOAD, f"{replicas} replicas: {what}, at {policy.concurrency:g} a replica")


def _memory(situation: Situation, there: int) -> Wish | None:
    """Enough replicas for the KV caches to be no fuller than their target."""
    wanted = situation.by_memory
    if wanted is None or wanted <= there * (1 + TOLERANCE):
        return None
    replicas = round_up(wanted)
    reason = (
        f"{replicas} replicas: the KV caches are {situation.heard.kv_usage:.0%} full, "
        f"the target is {situation.policy.target_kv_cache_usage:.0%}"
    )
    return Wish(replicas, Rule.MEMORY, reason)


def _wake(situation: Situation) -> Wish | None:
    """From zero: somebody waits at the router.

    As many as those held ask for, but where it is known how long a request takes no more than what comes keeps busy,
    and one for those who will have waited.
    """
    samples, policy, demand = situation.samples, situation.policy, situation.demand
    if samples.desired or samples.held <= 0:
        return None
    replicas = max(1, round_up(samples.held / policy.concurrency))
    if demand is not None:
        busy = round_up(demand.sure_per_s * demand.service_s / (FULL * policy.max_num_seqs))
        replicas = min(replicas, 1 + busy)
    return Wish(replicas, Rule.WAKE, f"{replicas} replicas: the router holds {samples.held:.0f} requests")


def _bounded(situation: Situation, wish: Wish) -> Wish:
    """No more than the maximum, nor than one minute may add."""
    highest = situation.policy.max_replicas
    if wish.replicas > highest:
        wish = Wish(highest, wish.rule, f"{wish.reason}; maxReplicas is {highest}")
    began = min([situation.samples.desired, *(count for _, count in situation.history.grown)])
    surge = max(SURGE_FACTOR * began, began + SURGE_REPLICAS)
    if wish.replicas > surge:
        return Wish(
            surge, Rule.SURGE, f"{wish.reason}; within a minute no further than from {began} to {surge}"
        )
    return wish


def ahead(situation: Situation, demand: Demand, there: int) -> Wish | None:
    """Replicas for new requests not to queue once more can be ready, if `there` are too few for that.

    A replica behind with its queue works off the past; it is not counted on. What comes is at least what comes
    now, and where arrivals grow steadily, what that leads to in the time a replica takes to start.
    """
    policy, start_s = situation.policy, situation.samples.start_s
    per_s = demand.sure_per_s
    if demand.trend is not None:
        per_s = max(per_s, demand.trend.ahead(situation.now, start_s + policy.tick_s))
    late = policy.target_wait_s * policy.max_num_seqs / demand.service_s
    behind = sum(1 for sample in situation.heard.samples if sample.waiting > late)
    at_once = per_s * demand.service_s
    others = round_up(at_once / (FULL * policy.max_num_seqs))
    work = in_words(per_s, demand.service_s)
    if behind:
        reason = (
            f"{behind + others} replicas: {behind} of {situation.samples.ready} are more than "
            f"{policy.target_wait_s:g} s behind with their queues, and {work} keep {others} others busy"
        )
        return Wish(behind + others, Rule.BACKLOG, reason)
    if at_once <= policy.max_num_seqs * there:
        return None
    return Wish(others, Rule.TREND, f"{others} replicas: arrivals reach {work} by the time another is ready")


def in_words(per_s: float, service_s: float) -> str:
    """Arrivals for a reason."""
    return f"{per_s:.3g} requests a second of {service_s:.2g} s each"


def round_up(replicas: float) -> int:
    """The next whole number, forgiving what floating point adds."""
    return math.ceil(replicas - 1e-9)
