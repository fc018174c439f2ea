"""How much work comes in, told from what stands in line and what leaves.

Requests in flight say how much is in hand, and that is the demand only while nothing queues: behind a queue it
counts the past. Arrivals say what comes: what finished, and by how much more is in flight than before. Times the
seconds that a request spends running (Little's law) they are the sequences that must run at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dragoman_operator.autoscaling.decision.history import Point

RECENT_S = 60.0
"""Arrivals are averaged over a minute where a moment more or less does not matter."""

QUEUED_SERVICE_S = 30.0
"""Behind a queue the time in the engine is read over this long: full engines are slower than a minute ago."""

ENOUGH_FINISHED = 20
"""Requests that must have finished before their mean time in the engine means something."""

SURE = 3.0
"""Standard deviations of a Poisson count by which arrivals must exceed the capacity before we grow for them."""

TREND_POINTS = 6
TREND_FIT = 0.85
TREND_CHANCE = 2.0
"""Growth is a trend where a straight line explains this share of the arrivals' variation (a step explains 0.75), or
leaves no more of it than this many times what chance does."""


@dataclass(frozen=True, slots=True)
class Trend:
    """A line through the arrivals: requests per second at a moment, and their growth per second."""

    per_s: float
    at: float
    growth: float

    def ahead(self, now: float, horizon_s: float) -> float:
        """Requests per second `horizon_s` from now, but at most twice what the line says for now."""
        today = max(0.0, self.per_s + self.growth * (now - self.at))
        return today + min(self.growth * horizon_s, today)


def service_s(points: tuple[Point, ...], queued: bool) -> float | None:
    """Seconds that a request spends running: time spent over requests finished, in the last minute.

    Args:
        points: Ticks, oldest first.
        queued: Whether anything waits; the last half minute then counts where it says more.

    Returns:
        None where too few requests have finished to tell, or none was ever seen running.
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


def sure_arrivals_per_s(points: tuple[Point, ...]) -> float:
    """Arrivals per second that chance does not explain: of the last tick, the last two, up to a minute, the most.

    Each count is taken `SURE` deviations low, so that a sudden rise counts at once and noise does not.
    """
    arrived = span = best = 0.0
    for point in reversed(points):
        if span >= RECENT_S - 1e-6:
            break
        arrived, span = arrived + point.arrived, span + point.span_s
        best = max(best, (arrived - SURE * math.sqrt(max(0.0, arrived))) / span)
    return best


def trend(points: tuple[Point, ...]) -> Trend | None:
    """A steady growth of arrivals, by least squares; None where there is none, or where it is no line."""
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
    if not line or growth < SURE * math.sqrt(chance / across):
        return None
    return Trend(mean, middle, growth)
