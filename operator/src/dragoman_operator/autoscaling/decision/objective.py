"""Replicas that the objective needs: the recent arrivals, replayed against fleets of different minimum sizes.

A burst that is over before a replica has started is served only by replicas that were there before. How many those
have to be is what the arrivals of the last hour say: they are replayed with each number of replicas kept, with
scale-ups that take as long as measured, and the smallest number is used at which few enough requests wait too long.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from statistics import median

from dragoman_operator.autoscaling.decision.observation import (
    CANCEL_AFTER_S,
    FULL_RATIO,
    QUEUED_SERVICE_S,
    SURPLUS,
    TOLERANCE,
    lasting_service_s,
)
from dragoman_operator.autoscaling.decision.rises import RISE, certain, extrapolates, risen
from dragoman_operator.autoscaling.decision.values import ARRIVALS_S, Expected, History, Policy

EVERY_S = 120.0
"""Time between two replays: their cost is spread over the ticks of two minutes."""

BUSIEST_MEMORY_S = 43_200.0
"""Time in which the service time under the highest load decays towards the present one by a factor of e: half a day,
as it is a property of the engine and of the texts, and most hours have no full load."""

RECENT = 12
"""Intervals of the longer mean of arrivals: a minute."""

PRIOR_RATIO, PRIOR_S = 0.05, 7200.0
"""Bursts before any was observed: demand is assumed to be above x times its median for 0.05 / x² of the time (a tail
as heavy as that of known traffic), with the weight of two hours of observation."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """What a replay knows of the replicas. Time is counted in intervals of `ARRIVALS_S`.

    Attributes:
        capacity: Requests that a full replica finishes in an interval.
        utilisation: Part of it that the load rule aims at, above 0.
        start: Time until a replica is ready, at least 1.
        wait: Wait above which a request is late.
    """

    capacity: float
    utilisation: float
    start: int
    wait: float
    max_replicas: int


def with_kept(history: History, policy: Policy, service_s: float | None, now: float) -> History:
    """The history with the service time under load and, every two minutes, with what the objective needs."""
    if service_s is not None:
        history = replace(history, busiest_s=_busiest_s(history, policy.tick_s, service_s))
    if policy.objective is None or not history.busiest_s or not history.arrivals:
        return replace(history, kept=0, expected=())
    if history.planned_at is not None and now - history.planned_at < EVERY_S - policy.tick_s / 2:
        return history
    fleet = Fleet(
        capacity=ARRIVALS_S * policy.max_num_seqs / history.busiest_s,
        utilisation=policy.concurrency / policy.max_num_seqs,
        start=max(1, round(history.start_s / ARRIVALS_S)),
        wait=policy.target_queue_time_s / ARRIVALS_S,
        max_replicas=policy.max_replicas,
    )
    late_ratio = 1 - policy.objective
    window = max(1, round(policy.window_s(history.start_s) / ARRIVALS_S))
    load = Load.of(history.arrivals, fleet, window, extrapolates(history))
    unseen = median(history.arrivals) / fleet.capacity * unseen_burst(late_ratio, history.learned_s)
    expected = needed(load, fleet, late_ratio, math.floor(unseen + 0.5))
    return replace(history, kept=expected[0].replicas, expected=expected, planned_at=now)


def _busiest_s(history: History, tick_s: float, service_s: float) -> float:
    """The longest lasting service time in seconds; the present one until there is one.

    That of the first minute is not kept: few requests have finished in the first seconds of a load, so it may be wrong.
    """
    lasting_s = lasting_service_s(history.points)
    if history.busiest_s is None or history.learned_s < 2 * QUEUED_SERVICE_S + tick_s / 2:
        return lasting_s or service_s
    return max(lasting_s or 0.0, math.exp(-tick_s / BUSIEST_MEMORY_S) * history.busiest_s)


def needed(load: Load, fleet: Fleet, late_ratio: float, least: int = 1) -> tuple[Expected, ...]:
    """What is expected with the least number of replicas that meets the objective, and with one less.

    The maximum, or enough for the highest arrivals, if no number meets it.

    Args:
        load: Arrivals of the past.
        fleet: What serves them.
        late_ratio: Ratio of requests that may be late, 0 to 1.
        least: Minimum of the result.
    """

    @cache
    def expect(number: int) -> Expected:
        return Expected(number, replay(load, fleet, number))

    highest = max(1, min(fleet.max_replicas, math.ceil(max(load.work)) + 1))
    met = bisect_left(range(1, highest), True, key=lambda number: expect(number).late_ratio <= late_ratio)
    kept = min(max(met + 1, least), fleet.max_replicas)
    return tuple(expect(number) for number in (kept, kept - 1) if number)


def unseen_burst(late_ratio: float, learned_s: float) -> float:
    """The multiple of the median demand that is kept for bursts like none before; 0 once enough was observed."""
    ratio = math.sqrt(PRIOR_RATIO / late_ratio * PRIOR_S / (PRIOR_S + learned_s))
    return ratio if ratio > 1 else 0.0


@dataclass(frozen=True, slots=True)
class Load:
    """Arrivals by interval, in replicas: what a full replica serves in an interval is 1.

    Attributes:
        lowest: Lower bound of the arrivals, without what chance alone may add: of the last interval
            or the last minute.
        ahead: Arrivals expected after a start, by the rise of the last intervals; 0 if rises are not extrapolated.
        required: Replicas below which there is no scale-down: the maximum of the mean load in the stabilization window.
    """

    work: list[float]
    lowest: list[float]
    ahead: list[float]
    required: list[int]

    @classmethod
    def of(cls, arrivals: Sequence[float], fleet: Fleet, window: int, extrapolates: bool = False) -> Load:
        """From requests per interval, and a window in intervals."""
        lowest: list[float] = []
        required: list[int] = []
        peaks: deque[tuple[int, int]] = deque()
        recent = 0.0
        for now, arrived in enumerate(arrivals):
            recent += arrived - (arrivals[now - RECENT] if now >= RECENT else 0)
            span = min(now + 1, RECENT)
            lowest.append(max(certain(arrived), certain(recent) / span) / fleet.capacity)
            mean = math.ceil(recent / span / fleet.capacity / fleet.utilisation - 1e-9)
            while peaks and peaks[-1][1] <= mean:
                peaks.pop()
            peaks.append((now, mean))
            if peaks[0][0] <= now - window:
                peaks.popleft()
            required.append(peaks[0][1])
        work = [arrived / fleet.capacity for arrived in arrivals]
        ahead = _ahead(arrivals, fleet) if extrapolates else [0.0] * len(work)
        return cls(work, lowest, ahead, required)


def _ahead(arrivals: Sequence[float], fleet: Fleet) -> list[float]:
    """See `Load.ahead`."""
    total = [0.0, *accumulate(arrivals)]
    found = []
    for end in range(1, len(total)):
        best = 0.0
        for span in range(1, min(RISE, end // 2) + 1):
            late = total[end] - total[end - span]
            early = total[end - span] - total[end - 2 * span]
            best = max(best, risen(late, early, span, fleet.start + 1))
        found.append(best / fleet.capacity)
    return found


def replay(load: Load, fleet: Fleet, kept: int) -> float:
    """The ratio of late requests, 0 to 1, if these arrivals are served with at least `kept` replicas.

    The fleet scales up as the rules do: to the load, and by the replicas whose queue is too long. While replicas start,
    only these are removed, not before `CANCEL_AFTER_S`. New requests go to the shortest queue, so those of new
    replicas do not wait behind the backlog of the old ones.
    """
    wait, most, start = fleet.wait, fleet.max_replicas, fleet.start
    kept = max(1, kept)
    starting: deque[tuple[int, int]] = deque()
    started, scaled_up = 0, 0
    free, queue = max(kept, min(most, math.ceil(load.work[0]))), 0.0
    behind, backlog = 0, 0.0  # replicas with a longer queue, which new requests avoid
    late = 0.0
    for now, (work, lowest, ahead, required) in enumerate(
        zip(load.work, load.lowest, load.ahead, load.required, strict=True)
    ):
        while starting and starting[0][0] <= now:
            _, added = starting.popleft()
            started -= added
            if queue > wait * free / 2:
                behind, backlog, free, queue = behind + free, backlog + queue, added, 0.0
            else:
                free += added
        before = queue / free
        queue += work - free
        if queue < 0:
            queue = 0.0
        after = queue / free
        if after > wait or before > wait:
            low, high = (before, after) if before < after else (after, before)
            late += work if low >= wait else work * (high - wait) / (high - low)
        if behind:
            backlog -= behind
            if backlog <= after * behind:
                free, queue, behind, backlog = free + behind, queue + max(0.0, backlog), 0, 0.0
        slow = behind + (free if after > wait else 0)
        there = free + behind + started
        wanted = max(min(required, there), kept)
        if lowest > there * fleet.utilisation * (1 + TOLERANCE):
            wanted = max(wanted, math.ceil(lowest / fleet.utilisation - 1e-9))
        if ahead > lowest:
            lowest = ahead
            if lowest > there:
                wanted = max(wanted, math.ceil(lowest / FULL_RATIO - 1e-9))
        if slow:
            wanted = max(wanted, slow + math.ceil(SURPLUS * lowest / FULL_RATIO - 1e-9))
        wanted = min(wanted, most)
        if wanted > there:
            starting.append((now + start, wanted - there))
            started, scaled_up = started + wanted - there, now
        elif started and (now - scaled_up) * ARRIVALS_S >= CANCEL_AFTER_S:
            started -= _cancel(starting, there - wanted)
        elif wanted < there and not started and not behind:
            free = wanted
    return late / (sum(load.work) or 1.0)


def _cancel(starting: deque[tuple[int, int]], surplus: int) -> int:
    """Cancel up to `surplus` starts, the latest first. Returns how many."""
    left = surplus
    while starting and left:
        ready_at, added = starting.pop()
        fewer = min(added, left)
        left -= fewer
        if fewer < added:
            starting.append((ready_at, added - fewer))
    return surplus - left
