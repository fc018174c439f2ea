"""Replays one trace under one policy: its cost, and the waits of the requests."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

from dragoman_simulate.fleet import Fleet
from dragoman_simulate.speed import SpeedTable
from dragoman_simulate.trace import Trace
from dragoman_simulate.view import FleetPolicy, ScalingLimits, View
from dragoman_simulate.waits import Waits

CURVE_S = 10
"""Seconds between two points of the curves."""


class Pods(Protocol):
    """A model of engine pods: the fluid `Fleet`, or the exact one that checks it."""

    waits: Waits
    replica_seconds: float

    def resize(self, desired: int, now_s: float) -> None:
        """Set the desired number of replicas."""

    def step(self, now_s: float, count: float, source_tokens: float, target_tokens: float) -> None:
        """Let one second pass."""

    def view(self, now_s: float, blind: bool) -> View:
        """What an autoscaler may see."""

    def close(self, now_s: float) -> None:
        """End the replay."""


@dataclass
class Curves:
    """What happened when: a point each `CURVE_S` seconds."""

    time_s: list[float] = field(default_factory=list)
    ready: list[int] = field(default_factory=list)
    queued: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class ReplayOutcome:
    """One policy on one trace.

    Attributes:
        replica_hours: Ready, starting and draining replicas over time: what is paid for.
        over_target_share: Share of requests that waited longer than the target, 0 to 1.
        wait_p50_s, wait_p95_s, wait_p99_s: Wait from arrival to the begin of generation.
        changes_per_hour: Changes of the desired number of replicas, per hour.
        replicas_max: Maximum of desired replicas.
        removed_blind: Replicas that were removed while metrics were unavailable.
    """

    replica_hours: float
    over_target_share: float
    wait_p50_s: float
    wait_p95_s: float
    wait_p99_s: float
    changes_per_hour: float
    replicas_max: int
    removed_blind: int
    requests: float
    curves: Curves


def replay(trace: Trace, policy: FleetPolicy, pods: Pods, limits: ScalingLimits) -> ReplayOutcome:
    """Run a trace from its first second to its last."""
    curves = Curves()
    counts, sources, targets = (
        array.tolist() for array in (trace.counts, trace.source_tokens, trace.target_tokens)
    )
    changes = removed_blind = highest = 0
    for second, count in enumerate(counts):
        if second % policy.tick_s == 0:
            view = pods.view(second, trace.blind(second))
            desired = policy.decide(view)
            highest = max(highest, desired)
            if desired != view.desired:
                changes += 1
                if view.metrics is None:
                    removed_blind += max(0, view.desired - desired)
                pods.resize(desired, second)
        if second % CURVE_S == 0:
            _draw(curves, pods.view(second, blind=False), second)
        pods.step(second, count, sources[second], targets[second])
    pods.close(trace.duration_s)
    p50, p95, p99 = pods.waits.percentiles((0.5, 0.95, 0.99))
    return ReplayOutcome(
        replica_hours=pods.replica_seconds / 3600,
        over_target_share=pods.waits.over(limits.target_wait_s),
        wait_p50_s=p50,
        wait_p95_s=p95,
        wait_p99_s=p99,
        changes_per_hour=changes / (trace.duration_s / 3600),
        replicas_max=highest,
        removed_blind=removed_blind,
        requests=float(trace.counts.sum()),
        curves=curves,
    )


def fluid(trace: Trace, policy: FleetPolicy, limits: ScalingLimits, speed: SpeedTable) -> ReplayOutcome:
    """Replay on the fluid fleet.

    It begins with the replicas that the trace's first minute needs, loaded as that minute loads them, so that
    no policy begins with a cold start.
    """
    minute = slice(0, min(60, trace.duration_s))
    requests = float(trace.counts[minute].sum())
    arrivals = requests / min(60, trace.duration_s)
    tokens = float((trace.counts[minute] * trace.target_tokens[minute]).sum()) / max(1.0, requests)
    each = limits.target_concurrency * speed.tokens_per_s(limits.target_concurrency)
    replicas = min(max(math.ceil(arrivals * tokens / each), limits.minimum), limits.maximum)
    return replay(trace, policy, Fleet(limits, speed, replicas, arrivals, tokens), limits)


def _draw(curves: Curves, view: View, second: int) -> None:
    curves.time_s.append(second)
    curves.ready.append(view.ready)
    curves.queued.append(view.queued + (view.metrics.waiting if view.metrics else 0.0))
