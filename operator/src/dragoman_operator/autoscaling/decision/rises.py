"""Sudden rises of the arrivals: what they let expect by the time a new replica is ready."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from dragoman_operator.autoscaling.decision.values import ARRIVALS, ARRIVALS_S, History, Point

DEVIATIONS = 3.0
"""Standard deviations of a Poisson count by which arrivals must exceed the capacity for a scale-up."""

RISE_S = 15.0
RISE = round(RISE_S / ARRIVALS_S)
"""Longest time over which a rise is measured, also in intervals."""

MIN_RISE, CLEAR_RISE = 1.2, 1.5
"""A rise is at least to 1.2 times the arrivals before; slower ones are for `trend`. Only clear rises
count as growths."""

RISE_FACTOR, MAX_RISE = 2.0, 8.0
"""A rise counts twice, as a crowd gathers faster and faster. At most eight times the arrivals are expected. More
replicas than required cost little, as their starts are cancelled."""

GROWTHS, ENOUGH_GROWTHS = 60, 3
"""Growths that are stored, and how many are enough for their median."""

MIN_GROWTH = 1.2
"""Median growth from which rises are extrapolated. It is 1.3 to 1.8 if crowds gather within a minute and replicas start
in 20 s, and at most 1.1 if bursts reach their peak at once or the load is self-similar."""

ROUNDING_S = 1e-6
"""Shorter times are rounding errors."""

SHORT_START_S = 2 * RISE_S
"""Startup time up to which rises are extrapolated before enough growths were observed."""


def certain(count: float) -> float:
    """A count of arrivals without what chance alone may add."""
    return max(0.0, count - DEVIATIONS * math.sqrt(max(0.0, count)))


def is_rise(late: float, early: float, least: float) -> bool:
    """Whether arrivals rose from one interval to the next of the same length, to at least `least` times.

    Chance alone must not explain it.
    """
    return late >= least * early and late - early > DEVIATIONS * math.sqrt(max(0.0, late + early))


def risen(late: float, early: float, span: float, ahead: float) -> float:
    """Arrivals expected some time ahead, by the rise from one interval to the next; 0 without a rise.

    Args:
        late: Arrivals of the last interval.
        early: Those of the one before, which is as long.
        span: Length of an interval; the result is per unit of it.
        ahead: Time ahead, in the same unit.
    """
    if not is_rise(late, early, MIN_RISE):
        return 0.0
    sure = late - early - DEVIATIONS * math.sqrt(late + early)
    mean = late / span
    return min(mean + RISE_FACTOR * sure / span**2 * (ahead + span / 2), MAX_RISE * mean)


def arrivals_after_rise_per_s(points: tuple[Point, ...], ahead_s: float) -> float:
    """Arrivals per second expected some time ahead: the maximum by the rise over the last tick, two ticks and so on."""
    best = 0.0
    for count in range(1, len(points) // 2 + 1):
        late, early = points[-count:], points[-2 * count : -count]
        span_s, early_s = (sum(point.span_s for point in each) for each in (late, early))
        if count > 1 and span_s > RISE_S:
            break
        before = sum(point.arrived for point in early) * span_s / early_s
        best = max(best, risen(sum(point.arrived for point in late), before, span_s, ahead_s))
    return best


def growth(arrivals: Sequence[float], start: int) -> float | None:
    """What a clear rise was followed by: arrivals when a replica would have been ready, by those of the rise.

    Args:
        arrivals: By interval; the last two are those after the start.
        start: Intervals that a replica takes to start, at least 1.

    Returns:
        None if there was no rise so long ago.
    """
    end = len(arrivals) - 1 - start
    mean = 0.0
    for span in range(1, min(RISE, end // 2) + 1):
        late, early = sum(arrivals[end - span : end]), sum(arrivals[end - 2 * span : end - span])
        if is_rise(late, early, CLEAR_RISE):
            mean = max(mean, late / span)
    return sum(arrivals[-2:]) / 2 / mean if mean else None


def with_intervals(history: History, point: Point) -> History:
    """The history with the arrivals of a tick, counted in intervals, and with the growths that they complete."""
    arrivals, growths = list(history.arrivals), list(history.growths)
    arrived, arrived_s = history.arrived, history.arrived_s
    start = max(1, round(history.start_s / ARRIVALS_S))
    left_s = point.span_s
    while left_s > 0:
        part_s = min(left_s, ARRIVALS_S - arrived_s)
        arrived, arrived_s = arrived + point.arrived * part_s / point.span_s, arrived_s + part_s
        left_s -= part_s
        if arrived_s > ARRIVALS_S - ROUNDING_S:
            arrivals.append(round(arrived))
            arrived = arrived_s = 0.0
            if (grown := growth(arrivals, start)) is not None:
                growths.append(round(grown, 3))
    return replace(
        history,
        arrivals=tuple(arrivals[-ARRIVALS:]),
        arrived=arrived,
        arrived_s=arrived_s,
        learned_s=history.learned_s + point.span_s,
        growths=tuple(growths[-GROWTHS:]),
    )


def extrapolates(history: History) -> bool:
    """Whether rises are extrapolated: where they mostly continue for a startup time, not where bursts jump."""
    if len(history.growths) < ENOUGH_GROWTHS:
        return history.start_s <= SHORT_START_S
    return median(history.growths) >= MIN_GROWTH
