"""Builders for the autoscaler's tests: a policy, a deployment's samples, and a clock that ticks."""

from dataclasses import dataclass, field
from typing import Any

from dragoman_operator.autoscaling.decision.recommend import recommend
from dragoman_operator.autoscaling.decision.values import Decision, History, Policy, ReplicaSample, Samples

START = 1_700_000_000.0


def make_policy(**changes: Any) -> Policy:
    """Replicas of 10 sequences, 8 of which are the target; one to twenty of them, a decision each 5 s.

    The stabilization window is 5 min.
    """
    fields: dict[str, Any] = {"min_replicas": 1, "max_replicas": 20, "max_num_seqs": 10, "tick_s": 5.0}
    return Policy(**fields | {"scale_down_window_s": 300.0} | changes)


def make_samples(
    replicas: int,
    *,
    now: float = START,
    running: float = 0.0,
    waiting: float = 0.0,
    finished_per_s: float | None = None,
    refused_per_s: float | None = None,
    kv_usage: float | None = None,
    missing: int = 0,
    **changes: Any,
) -> Samples:
    """`replicas` that share `running`, `waiting` and the rates evenly; the last `missing` report no metrics."""
    each = max(1, replicas)
    rate = None if finished_per_s is None else finished_per_s / each
    refused = None if refused_per_s is None else refused_per_s / each
    scraped = ReplicaSample(now, running / each, waiting / each, kv_usage, rate, refused)
    reported = (scraped,) * (replicas - missing) + (ReplicaSample(None),) * missing
    fields: dict[str, Any] = {"desired": replicas, "replicas": reported, "time_to_ready_s": 60.0}
    return Samples(**fields | changes)


@dataclass
class Clock:
    """A deployment that follows each decision at once, with one decision per tick."""

    policy: Policy
    replicas: int
    now: float = START
    history: History = field(default_factory=History)
    decisions: list[Decision] = field(default_factory=list)

    def tick(self, times: int = 1, /, follow: Any = True, **changes: Any) -> Decision:
        """Decide `times` times under the same load, `policy.tick_s` apart."""
        for _ in range(times):
            self.now += self.policy.tick_s
            samples = make_samples(self.replicas, now=self.now, **changes)
            decision = recommend(self.policy, samples, self.history, self.now)
            self.history = decision.history
            self.decisions.append(decision)
            if follow:
                self.replicas = decision.replicas
        return decision


def make_clock(replicas: int, **policy: Any) -> Clock:
    """A clock over a fresh deployment."""
    return Clock(make_policy(**policy), replicas)
