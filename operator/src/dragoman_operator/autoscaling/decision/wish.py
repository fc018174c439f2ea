"""What a rule wants, and the situation that it is asked in."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dragoman_operator.autoscaling.decision.history import History
from dragoman_operator.autoscaling.decision.observe import Demand, Heard
from dragoman_operator.autoscaling.decision.policy import Policy
from dragoman_operator.autoscaling.decision.samples import Rule, Samples

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
