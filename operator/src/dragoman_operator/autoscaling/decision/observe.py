"""From samples to figures: who was heard of, what they carry, and what that adds to the history."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dragoman_operator.autoscaling.decision.demand import (
    Trend,
    arrivals_per_s,
    service_s,
    sure_arrivals_per_s,
    trend,
)
from dragoman_operator.autoscaling.decision.history import History, Point, Seen
from dragoman_operator.autoscaling.decision.policy import Policy
from dragoman_operator.autoscaling.decision.samples import ReplicaSample, Samples

STALE_TICKS = 3.0
"""A sample older than this many ticks is none; a gap this long breaks off the watching."""


@dataclass(frozen=True, slots=True)
class Heard:
    """The replicas whose samples are fresh.

    Attributes:
        samples: Theirs.
        missing: Ready replicas without.
        running: Sequences in their engines.
        waiting: Requests in their queues.
        finished_per_s: Requests that they finish per second; None where one of them cannot say.
        kv_usage: Mean share of their KV caches in use; None where none says.
    """

    samples: tuple[ReplicaSample, ...]
    missing: int
    running: float
    waiting: float
    finished_per_s: float | None
    kv_usage: float | None


@dataclass(frozen=True, slots=True)
class Demand:
    """What the arrivals ask for; see `demand`.

    Attributes:
        per_s: Requests per second over the last minute.
        sure_per_s: Requests per second that chance does not explain.
        service_s: Seconds that a request runs.
        trend: Their growth, without this tick.
    """

    per_s: float
    sure_per_s: float
    service_s: float
    trend: Trend | None


def listen(samples: Samples, policy: Policy, now: float) -> Heard:
    """Add up what the replicas say, leaving out those whose samples are too old."""
    oldest = now - STALE_TICKS * policy.tick_s
    fresh = [sample for sample in samples.replicas if sample.at is not None and sample.at >= oldest]
    rates = [sample.finished_per_s for sample in fresh if sample.finished_per_s is not None]
    usages = [sample.kv_usage for sample in fresh if sample.kv_usage is not None]
    return Heard(
        samples=tuple(fresh),
        missing=samples.ready - len(fresh),
        running=sum(sorted(sample.running for sample in fresh)),
        waiting=sum(sorted(sample.waiting for sample in fresh)),
        finished_per_s=sum(sorted(rates)) if len(rates) == len(fresh) else None,
        kv_usage=sum(sorted(usages)) / len(usages) if usages else None,
    )


def remember(history: History, samples: Samples, heard: Heard, policy: Policy, now: float) -> History:
    """Add this tick to the history: what arrived in it, where that can be told.

    What arrived is what finished and what is in flight on top of before. Where replicas left, or were heard of
    differently, the difference in flight says nothing, and what finished is taken alone.
    """
    in_flight = heard.running + heard.waiting + samples.held
    before = history.seen
    seen = Seen(now, in_flight, heard.running, samples.ready, heard.missing)
    asked = in_flight > 0 or (heard.finished_per_s or 0.0) > 0 or history.asked_at is None
    history = replace(history, seen=seen, asked_at=now if asked else history.asked_at)
    if before is None or not 0 < now - before.at <= STALE_TICKS * policy.tick_s:
        return replace(history, watched_since=now, points=(), asked_at=now)
    if heard.finished_per_s is None:
        return replace(history, points=())
    span_s = now - before.at
    comparable = samples.ready >= before.ready and heard.missing == before.missing
    more = in_flight - before.in_flight if comparable else 0.0
    finished = heard.finished_per_s * span_s
    running = (heard.running + before.running) / 2 if comparable else heard.running
    return history.with_point(Point(now, span_s, max(0.0, finished + more), running * span_s, finished))


def demand(history: History, heard: Heard) -> Demand | None:
    """What the arrivals ask for, or None where they cannot be told: no counter, or too little finished yet.

    While no replica is ready the time in the engine is the one last known.
    """
    points = history.points
    service = service_s(points, queued=heard.waiting > 0) if heard.samples else history.service_s
    if not points or service is None:
        return None
    return Demand(arrivals_per_s(points), sure_arrivals_per_s(points), service, trend(points[:-1]))
