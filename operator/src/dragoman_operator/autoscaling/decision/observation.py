"""Aggregates samples, and adds them to the history."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dragoman_operator.autoscaling.decision.rises import DEVIATIONS, certain, with_intervals
from dragoman_operator.autoscaling.decision.values import History, Point, Policy, ReplicaSample, Samples, Seen

STALE_TICKS = 3.0
"""Maximum age of a sample in ticks; a longer gap ends the observation."""


@dataclass(frozen=True, slots=True)
class ScrapedReplicas:
    """Replicas with fresh samples.

    Attributes:
        missing: Ready replicas without one.
        counted: Running requests of the replicas that report how many they have finished. A replica does so from its
            second sample on.
        finished_per_s: Finished requests per second of these replicas; None if samples are fresh and none has it.
        kv_usage: Mean KV cache usage, 0 to 1; None if no replica reports it.
    """

    samples: tuple[ReplicaSample, ...]
    missing: int
    running: float
    waiting: float
    counted: float
    finished_per_s: float | None
    kv_usage: float | None


@dataclass(frozen=True, slots=True)
class Demand:
    """Estimated demand; see `demand`.

    Attributes:
        per_s: Requests per second over the last minute.
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
        counted=sum(sorted(sample.running for sample in fresh if sample.finished_per_s is not None)),
        finished_per_s=sum(sorted(rates)) if rates or not fresh else None,
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
    running = (scraped.counted + before.running) / 2 if comparable else scraped.counted
    point = Point(now, span_s, max(0.0, finished + more), running * span_s, finished)
    return with_intervals(history.with_point(point), point)


def demand(history: History, scraped: ScrapedReplicas) -> Demand | None:
    """The demand; None without a counter of finished requests, or with too few of them.

    While no replica is ready the last known service time is used.
    """
    points = history.points
    service = service_s(points, queued=scraped.waiting > 0) if scraped.samples else history.service_s
    if not points or service is None:
        return None
    return Demand(arrivals_per_s(points), arrivals_lower_bound_per_s(points), service, trend(points[:-1]))


RECENT_S = 60.0
"""Window of the mean arrival rate."""

QUEUED_SERVICE_S = 30.0
"""Shorter window of the service time while requests wait: full engines are slower than a minute ago."""

PERIODS_S = QUEUED_SERVICE_S, 90.0
"""Lengths of the periods of the lasting service time: the history has three minutes."""

NEARLY = 0.9
"""Ratio of a period that is enough: ticks are not exactly periodic, and the history has just two of the longer ones."""

ENOUGH_FINISHED = 20
"""Minimum number of finished requests for a mean service time."""

TOLERANCE = 0.1
"""Excess over the target that does not add a replica, as in HPA."""

FULL_RATIO = 0.95
"""Ratio of `max_num_seqs` up to which a replica is expected to accept new requests without a queue."""

CANCEL_AFTER_S = 30.0
"""Time since the last scale-up from which starts are cancelled that the load no longer requires: without it, a load
that changes within seconds would create and delete pods at each tick."""

SURPLUS = 1.5
"""Capacity for new requests as a multiple of the arrivals, once replicas have too long a queue: with exactly as much
as arrives no queue gets shorter, and a flash crowd has grown by the time the replicas are ready."""

REFUSED_RATIO = 0.1
"""Ratio of refused requests above which a replica has too few of its kind: a single large request may be refused."""

TREND_POINTS = 6
TREND_FIT = 0.85
TREND_CHANCE = 2.0
"""An increase is a trend if a straight line explains this ratio of the arrivals' variation (a step explains 0.75), or
leaves at most this multiple of the variation expected by chance."""


@dataclass(frozen=True, slots=True)
class Trend:
    """Linear trend of arrivals: requests per second at a time, and their increase per second."""

    per_s: float
    at: float
    growth: float

    def forecast(self, now: float, horizon_s: float) -> float:
        """Requests per second `horizon_s` from now, at most twice the value for now."""
        today = max(0.0, self.per_s + self.growth * (now - self.at))
        return today + min(self.growth * horizon_s, today)


def service_s(points: tuple[Point, ...], queued: bool) -> float | None:
    """Service time of a request in seconds: running time by finished requests, over the last minute.

    If requests are queued, the last half minute is used if it gives more.

    Returns:
        None without enough finished requests, or without any running.
    """
    whole = _service_s(points, RECENT_S)
    if whole is None:
        return _service_s(points, math.inf)
    return max(whole, _service_s(points, QUEUED_SERVICE_S) or 0.0) if queued else whole


def lasting_service_s(points: tuple[Point, ...]) -> float | None:
    """The service time, in seconds, that a request had in each of the last two periods: the lower one of the two.

    The periods are half minutes, or one and a half minutes if few requests finish. A single one is not enough: hardly a
    request finishes while an engine stalls, which looks like a long service time.

    Returns:
        None without two periods.
    """
    for period_s in PERIODS_S:
        last = list(_latest(points, period_s))
        before = list(_latest(points[: len(points) - len(last)], period_s))
        if sum(point.span_s for point in before) < NEARLY * period_s:
            return None
        both = _mean_service_s(last), _mean_service_s(before)
        if both[0] is not None and both[1] is not None:
            return min(both[0], both[1])
    return None


def _service_s(points: tuple[Point, ...], over_s: float) -> float | None:
    return _mean_service_s(list(_latest(points, over_s)))


def _mean_service_s(recent: Sequence[Point]) -> float | None:
    busy_s, finished = sum(point.busy_s for point in recent), sum(point.finished for point in recent)
    return busy_s / finished if finished >= ENOUGH_FINISHED and busy_s > 0 else None


def _latest(points: tuple[Point, ...], over_s: float) -> Iterator[Point]:
    """The last ticks, newest first, until they cover this time."""
    span_s = 0.0
    for point in reversed(points):
        if span_s >= over_s - 1e-6:
            return
        span_s += point.span_s
        yield point


def arrivals_per_s(points: tuple[Point, ...]) -> float:
    """Mean arrivals per second over the last minute."""
    recent = list(_latest(points, RECENT_S))
    span_s = sum(point.span_s for point in recent)
    return sum(point.arrived for point in recent) / span_s if span_s else 0.0


def arrivals_lower_bound_per_s(points: tuple[Point, ...]) -> float:
    """Lower bound of the arrival rate: the maximum over the last tick, the last two, up to a minute.

    Each count is reduced by `DEVIATIONS` deviations, so that a sudden rise counts at once and noise does not.
    """
    arrived = span = best = 0.0
    for point in _latest(points, RECENT_S):
        arrived, span = arrived + point.arrived, span + point.span_s
        best = max(best, certain(arrived) / span)
    return best


def trend(points: tuple[Point, ...]) -> Trend | None:
    """A steady increase of arrivals, by least squares; None without one, or if it is not linear."""
    count = len(points)
    if count < TREND_POINTS:
        return None
    times = [point.at - point.span_s / 2 for point in points]
    rates = [point.arrived / point.span_s for point in points]
    middle, mean = sum(times) / count, sum(rates) / count
    across = sum((time - middle) ** 2 for time in times)
    variation = sum((rate - mean) ** 2 for rate in rates)
    together = sum((time - middle) * (rate - mean) for time, rate in zip(times, rates, strict=True))
    if together <= 0 or variation <= 0:
        return None
    growth = together / across
    chance = sum(max(1.0, point.arrived) / point.span_s**2 for point in points) / count
    left = variation - growth * together
    line = left <= (1 - TREND_FIT) * variation or left <= TREND_CHANCE * chance * count
    if not line or growth < DEVIATIONS * math.sqrt(chance / across):
        return None
    return Trend(mean, middle, growth)
