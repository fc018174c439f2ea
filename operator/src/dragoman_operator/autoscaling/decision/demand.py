"""Estimates the arrival rate and service time.

Requests in flight overestimate demand behind a queue. Arrivals are the finished requests plus the increase of
requests in flight; by Little's law, arrivals × service time is the concurrency needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dragoman_operator.autoscaling.decision.history import Point

RECENT_S = 60.0
"""Window of the mean arrival rate."""

QUEUED_SERVICE_S = 30.0
"""Shorter window of the service time while requests wait: full engines are slower than a minute ago."""

ENOUGH_FINISHED = 20
"""Minimum number of finished requests for a mean service time."""

DEVIATIONS = 3.0
"""Standard deviations of a Poisson count by which arrivals must exceed the capacity for a scale-up."""

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

    Args:
        points: Ticks, oldest first.
        queued: Whether requests wait; the last half minute is then used if it gives more.

    Returns:
        None without enough finished requests, or without any running.
    """
    whole = _service_s(points, RECENT_S)
    if whole is None:
        return _service_s(points, math.inf)
    return max(whole, _service_s(points, QUEUED_SERVICE_S) or 0.0) if queued else whole


def _service_s(points: tuple[Point, ...], over_s: float) -> float | None:
    busy = finished = span = 0.0
    for point in reversed(points):
        if span >= over_s - 1e-6:
            break
        busy, finished, span = busy + point.busy_s, finished + point.finished, span + point.span_s
    return busy / finished if finished >= ENOUGH_FINISHED and busy > 0 else None


def arrivals_per_s(points: tuple[Point, ...]) -> float:
    """Mean arrivals per second over the last minute."""
    arrived = span = 0.0
    for point in reversed(points):
        if span >= RECENT_S - 1e-6:
            break
        arrived, span = arrived + point.arrived, span + point.span_s
    return arrived / span if span else 0.0


def arrivals_lower_bound_per_s(points: tuple[Point, ...]) -> float:
    """Lower bound of the arrival rate: the maximum over the last tick, the last two, up to a minute.

    Each count is reduced by `DEVIATIONS` deviations, so that a sudden rise counts at once and noise does not.
    """
    arrived = span = best = 0.0
    for point in reversed(points):
        if span >= RECENT_S - 1e-6:
            break
        arrived, span = arrived + point.arrived, span + point.span_s
        best = max(best, (arrived - DEVIATIONS * math.sqrt(max(0.0, arrived))) / span)
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
