"""Whether processes grow: from samples of their memory and file descriptors, without I/O."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

WARM_UP_S = 120.0
"""Of a process's life: caches fill, connections and threads come."""
SHORTEST_S = 240.0
"""Of its life after that: what lives for less says nothing about growth."""
SHORTEST_SUM_H = 0.75
"""Hours that all processes of one role are watched, before their growth by the hour means something: a pod's memory
rises by steps of a few MB in its first ten minutes, with the first large answers, and stays there."""
CONNECTION_MB = 0.025
"""Memory that a connection brings and the allocator keeps: a router with 900 of them has 18 MB more than with 50, and
no more for the next 900. A process may keep that of the highest number that it had."""
MOST_PAIRS_OF = 120
"""Samples that the slope is taken of; more are thinned out."""


@dataclass
class Lifetime:
    """One process from the first sample to the last.

    Args:
        role: `operator`, `router`, `pod`, or one that is not judged.
        name: Of the process or the pod.
        at_s: Times of the samples.
        rss_mb: Resident memory at each.
        fds: Open file descriptors at each, sockets included.
        sockets: Open sockets at each; none where it is empty. After the load there have to be none, which is
            checked apart: their number follows the load.
    """

    role: str
    name: str
    at_s: list[float] = field(default_factory=list)
    rss_mb: list[float] = field(default_factory=list)
    fds: list[float] = field(default_factory=list)
    sockets: list[float] = field(default_factory=list)

    def unexplained(self, measure: str) -> list[float]:
        """The values of `rss_mb` or `fds`, less what connections explain."""
        values: list[float] = getattr(self, measure)
        if not self.sockets:
            return values
        if measure == "fds":
            return [value - sockets for value, sockets in zip(values, self.sockets, strict=True)]
        highest = itertools.accumulate(self.sockets, max)
        return [value - CONNECTION_MB * most for value, most in zip(values, highest, strict=True)]


@dataclass(frozen=True)
class Limit:
    """How much one measure may grow.

    Args:
        absolute: In one process, from the first quarter of its samples to the last.
        ratio: The same as a share of the first quarter; the larger of the two holds.
        per_hour: In all processes of a role together, for each hour that they were watched.
    """

    absolute: float
    ratio: float
    per_hour: float


LIMITS: Mapping[str, Limit] = {
    "rss_mb": Limit(absolute=12, ratio=0.15, per_hour=24),
    "fds": Limit(absolute=40, ratio=0.5, per_hour=80),
}
JUDGED = ("operator", "router", "pod")


@dataclass(frozen=True)
class Growth:
    """Of one measure in one process.

    Args:
        hours: Between the middles of these quarters.
        slope_per_hour: Theil-Sen: the median of the slopes of all pairs of samples.
    """

    first: float
    last: float
    hours: float
    slope_per_hour: float

    @property
    def amount(self) -> float:
        """How much more the last quarter has."""
        return self.last - self.first


def growth(at_s: Sequence[float], values: Sequence[float]) -> Growth | None:
    """Growth of one process; None where it did not live long enough."""
    settled = [(at, value) for at, value in zip(at_s, values, strict=True) if at - at_s[0] >= WARM_UP_S]
    if len(settled) < 8 or settled[-1][0] - settled[0][0] < SHORTEST_S:
        return None
    quarter = len(settled) // 4
    head, tail = settled[:quarter], settled[-quarter:]
    hours = (median(at for at, _ in tail) - median(at for at, _ in head)) / 3600
    thinned = settled[:: -(-len(settled) // MOST_PAIRS_OF)]
    slopes = [(v2 - v1) / (t2 - t1) for (t1, v1), (t2, v2) in itertools.combinations(thinned, 2) if t2 > t1]
    return Growth(
        median(value for _, value in head), median(value for _, value in tail), hours, 3600 * median(slopes)
    )


def grown(lifetimes: Iterable[Lifetime]) -> tuple[list[dict[str, Any]], list[str]]:
    """The growth by role and measure, and a sentence for each that is over its limit.

    One process is over it where the last quarter is higher by the limit and the slope says the same; a role where its
    processes' growth together, by the hours that they were watched, is.
    """
    rows: list[dict[str, Any]] = []
    sentences: list[str] = []
    judged = [each for each in lifetimes if each.role in JUDGED]
    for role in JUDGED:
        for measure, limit in LIMITS.items():
            own = [each for each in judged if each.role == role]
            found = [
                (each.name, result)
                for each in own
                if (result := growth(each.at_s, each.unexplained(measure))) is not None
            ]
            hours = sum(result.hours for _, result in found)
            amount = sum(result.amount for _, result in found)
            per_hour = amount / hours if hours else 0.0
            rows.append(
                {
                    "role": role,
                    "measure": measure,
                    "processes": len(own),
                    "long_enough": len(found),
                    "hours": round(hours, 3),
                    "per_hour": round(per_hour, 2),
                    "largest": round(max((result.amount for _, result in found), default=0.0), 2),
                }
            )
            for name, result in found:
                allowed = max(limit.absolute, limit.ratio * result.first)
                if result.amount > allowed and result.slope_per_hour * result.hours > allowed / 2:
                    sentences.append(
                        f"{name}: {measure} grew from {result.first:.1f} to {result.last:.1f} "
                        f"in {60 * result.hours:.0f} min"
                    )
            if hours >= SHORTEST_SUM_H and per_hour > limit.per_hour:
                sentences.append(
                    f"{role} processes: {measure} grew by {per_hour:.1f} an hour "
                    f"({len(found)} processes, {hours:.2f} h together)"
                )
    return rows, sentences
