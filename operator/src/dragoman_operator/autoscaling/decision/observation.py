"""Aggregates samples, and adds them to the history."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dragoman_operator.autoscaling.decision.demand import (
    Trend,
    arrivals_lower_bound_per_s,
    arrivals_per_s,
    service_s,
    trend,
)
from dragoman_operator.autoscaling.decision.history import History, Point, Seen
from dragoman_operator.autoscaling.decision.policy import Policy
from dragoman_operator.autoscaling.decision.samples import ReplicaSample, Samples

STALE_TICKS = 3.0
"""Maximum age of a sample in ticks; a longer gap ends the observation."""


@dataclass(frozen=True, slots=True)
class ScrapedReplicas:
    """Replicas with fresh samples.

    Attributes:
        samples: Their samples.
        missing: Ready replicas without one.
        running: Sequences in their engines.
        waiting: Requests in their queues.
        finished_per_s: Finished requests per second; None unless all report it.
        kv_usage: Mean KV cache usage, 0 to 1; None if no replica reports it.
    """

    samples: tuple[ReplicaSample, ...]
    missing: int
    running: float
    waiting: float
    finished_per_s: float | None
    kv_usage: float | None


@dataclass(frozen=True, slots=True)
class Demand:
    """Estimated demand; see `demand`.

    Attributes:
        per_s: Requests per second over the last minute.
        lower_bound_per_s: Lower bound of the arrival rate, in requests per second.
        service_s: Service time of a request in seconds.
        trend: Trend of arrivals, without this tick.
    """

    per_s: float
    lower_bound_per_s: float
    service_s: float
    trend: Trend | None


def collect(samples: Samples, policy: Policy, now: float) -> ScrapedReplicas:
    """Sum the samples of the replicas, without those that are too old."""
    oldest = now - STALE_TICKS * policy.tick_s
    fresh = [sample for sample in samples.replicas if sample.at is not None and sample.at >= oldest]
    rates = [sample.finished_per_s for sample in fresh if sample.finished_per_s is not None]
    usages = [sample.kv_usage for sample in fresh if sample.kv_usage is not None]
    return ScrapedReplicas(
        samples=tuple(fresh),
        missing=samples.ready - len(fresh),
        running=sum(sorted(sample.running for sample in fresh)),
        waiting=sum(sorted(sample.waiting for sample in fresh)),
        finished_per_s=sum(sorted(rates)) if len(rates) == len(fresh) else None,
        kv_usage=sum(sorted(usages)) / len(usages) if usages else None,
    )


def record(
    history: History, samples: Samples, scraped: ScrapedReplicas, policy: Policy, now: float
) -> History:
    """The history with this tick, and with its arrivals if they are known.

    Arrivals are the finished requests plus the increase of requests in flight. If replicas were removed, or others
    report, only the finished requests count.
    """
    in_flight = scraped.running + scraped.waiting + samples.queued
    before = history.seen
    seen = Seen(now, in_flight, scraped.running, samples.ready, scraped.missing)
    active = in_flight > 0 or (scraped.finished_per_s or 0.0) > 0 or history.last_request_at is None
    history = replace(history, seen=seen, last_request_at=now if active else history.last_request_at)
    if before is None or not 0 < now - before.at <= STALE_TICKS * policy.tick_s:
        return replace(history, observed_since=now, points=(), last_request_at=now)
    if scraped.finished_per_s is None:
        return replace(history, points=())
    span_s = now - before.at
    comparable = samples.ready >= before.ready and scraped.missing == before.missing
    more = in_flight - before.in_flight if comparable else 0.0
    finished = scraped.finished_per_s * span_s
    running = (scraped.running + before.running) / 2 if comparable else scraped.running
    return history.with_point(Point(now, span_s, max(0.0, finished + more), running * span_s, finished))


def demand(history: History, scraped: ScrapedReplicas) -> Demand | None:
    """The demand; None without a counter of finished requests, or with too few of them.

    While no replica is ready the last known service time is used.
    """
    points = history.points
    service = service_s(points, queued=scraped.waiting > 0) if scraped.samples else history.service_s
    if not points or service is None:
        return None
    return Demand(arrivals_per_s(points), arrivals_lower_bound_per_s(points), service, trend(points[:-1]))
