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
SHORTEST_SUM_H = 0.5
"""Hours that all processes of one role are watched, before their growth by the hour means something."""
MINUTE_S = 60.0
"""Growth is that of the median minute. Memory rises by steps where more is in use at once than ever before, and stays
there: a pod's with its first large answers, an operator's with the API's first outages (35 MB with twenty, none with
sixty more), a router's with the longest queue. In most minutes it does not change. A leak goes on in all of them."""
CONNECTION_MB = 0.025
"""Memory that a connection brings and the allocator keeps: a router with 900 of them has 18 MB more than with 50, and
no more for the next 900. A process may keep that of the highest number that it had."""


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
        absolute: In one process, from the first quarter of its samples to the last, at the rate of its median minute.
        ratio: The same as a share of the first quarter; the larger of the two holds.
        steps_ratio: The same, at any rate.
        per_hour: In the median minute of all processes of a role.
    """

    absolute: float
    ratio: float
    steps_ratio: float
    per_hour: float


LIMITS: Mapping[str, Limit] = {
    "rss_mb": Limit(absolute=12, ratio=0.15, steps_ratio=0.5, per_hour=6),
    "fds": Limit(absolute=40, ratio=0.5, steps_ratio=1.0, per_hour=30),
}
JUDGED = ("operator", "router", "pod")


@dataclass(frozen=True)
class Growth:
    """Of one measure in one process.

    Args:
        first: Median of the first quarter of its samples.
        last: Median of the last.
        hours: Between the middles of these quarters.
        by_minute: Differences from minute to minute.
    """

    first: float
    last: float
    hours: float
    by_minute: tuple[float, ...]

    @property
    def amount(self) -> float:
        """How much more the last quarter has."""
        return self.last - self.first

    @property
    def steady(self) -> float:
        """How much more it would have, had it grown in every minute as in the median one."""
        return per_hour(self.by_minute) * self.hours


def per_hour(by_minute: Sequence[float]) -> float:
    """Growth in an hour of median minutes."""
    return 60 * median(by_minute) if by_minute else 0.0


def growth(at_s: Sequence[float], values: Sequence[float]) -> Growth | None:
    """Growth of one process; None where it did not live long enough."""
    settled = [(at, value) for at, value in zip(at_s, values, strict=True) if at - at_s[0] >= WARM_UP_S]
    if len(settled) < 8 or settled[-1][0] - settled[0][0] < SHORTEST_S:
        return None
    quarter = len(settled) // 4
    head, tail = settled[:quarter], settled[-quarter:]
    hours = (median(at for at, _ in tail) - median(at for at, _ in head)) / 3600
    minutes = [
        median(value for _, value in each)
        for _, each in itertools.groupby(settled, lambda sample: sample[0] // MINUTE_S)
    ]
    by_minute = tuple(later - earlier for earlier, later in itertools.pairwise(minutes))
    return Growth(median(value for _, value in head), median(value for _, value in tail), hours, by_minute)


def grown(lifetimes: Iterable[Lifetime]) -> tuple[list[dict[str, Any]], list[str]]:
    """The growth by role and measure, and a sentence for each that is over its limit."""
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
            rate = per_hour([each for _, result in found for each in result.by_minute])
            rows.append(
                {
                    "role": role,
                    "measure": measure,
                    "processes": len(own),
                    "long_enough": len(found),
                    "hours": round(hours, 3),
                    "per_hour": round(rate, 2),
                    "largest": round(max((result.amount for _, result in found), default=0.0), 2),
                }
            )
            for name, result in found:
                allowed = max(limit.absolute, limit.ratio * result.first)
                steps = max(limit.absolute, limit.steps_ratio * result.first)
                if min(result.amount, result.steady) > allowed or result.amount > steps:
                    sentences.append(
                        f"{name}: {measure} grew from {result.first:.1f} to {result.last:.1f} "
                        f"in {60 * result.hours:.0f} min"
                    )
            if hours >= SHORTEST_SUM_H and rate > limit.per_hour:
                sentences.append(
                    f"{role} processes: {measure} grew by {rate:.1f} an hour in the median minute "
                    f"({len(found)} processes, {hours:.2f} h together)"
                )
    return rows, sentences
