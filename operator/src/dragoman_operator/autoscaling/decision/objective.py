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
from statistics import median

from dragoman_operator.autoscaling.decision.observation import DEVIATIONS
from dragoman_operator.autoscaling.decision.values import Expected, History, Policy

EVERY_S = 60.0
"""Time between two replays: their cost is spread over the ticks of a minute."""

BUSIEST_MEMORY_S = 3600.0
"""Time in which the service time under the highest load decays towards the present one by a factor of e."""

PRIOR_RATIO, PRIOR_S = 0.05, 1800.0
"""Bursts before any was observed: demand is assumed to be above x times its median for 0.05 / x² of the time (a tail
as heavy as that of known traffic), with the weight of half an hour of observation."""

FULL_RATIO = 0.95
"""As in the rules: the part of a replica's capacity that new requests may use without a queue."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """What a replay knows of the replicas. Time is counted in ticks.

    Attributes:
        capacity: Requests that a full replica finishes in a tick.
        utilisation: Part of it that the load rule aims at, 0 to 1.
        start: Time until a replica is ready, at least 1.
        hold: Time for which the number of replicas stays at its maximum.
        wait: Wait above which a request is late.
    """

    capacity: float
    utilisation: float
    start: int
    hold: int
    wait: float
    max_replicas: int


def with_arrivals(history: History, policy: Policy, service_s: float | None, now: float) -> History:
    """The history with the service time under load and, once a minute, with the replicas that the objective needs."""
    if service_s is not None:
        keep = math.exp(-policy.tick_s / BUSIEST_MEMORY_S)
        history = replace(history, busiest_s=max(service_s, keep * (history.busiest_s or 0.0)))
    if policy.objective is None or history.busiest_s is None or not history.arrivals:
        return replace(history, kept=0, expected=())
    if history.planned_at is not None and now - history.planned_at < EVERY_S - policy.tick_s / 2:
        return history
    fleet = Fleet(
        capacity=policy.tick_s * policy.max_num_seqs / history.busiest_s,
        utilisation=min(1.0, policy.concurrency / policy.max_num_seqs),
        start=max(1, round(history.start_s / policy.tick_s)),
        hold=max(1, round(history.window_s / policy.tick_s)),
        wait=policy.target_queue_time_s / policy.tick_s,
        max_replicas=policy.max_replicas,
    )
    late_ratio = 1 - policy.objective
    expected = least_kept(history.arrivals, fleet, late_ratio)
    unseen = median(history.arrivals) / fleet.capacity * unseen_burst(late_ratio, history.learned_s)
    kept = min(max(expected[0].replicas, math.floor(unseen + 0.5)), policy.max_replicas)
    if kept > expected[0].replicas:
        expected = tuple(
            Expected(number, late_share(history.arrivals, fleet, number)) for number in (kept, kept - 1)
        )
    return replace(history, kept=kept, expected=expected, planned_at=now)


def unseen_burst(late_ratio: float, learned_s: float) -> float:
    """The multiple of the median demand that is kept for bursts like none before; 0 once enough was observed."""
    ratio = math.sqrt(PRIOR_RATIO / late_ratio * PRIOR_S / (PRIOR_S + learned_s))
    return ratio if ratio > 1 else 0.0


def least_kept(arrivals: Sequence[float], fleet: Fleet, late_ratio: float) -> tuple[Expected, ...]:
    """The least number of replicas to keep with at most this ratio of late requests, and one less, as expected."""
    highest = min(fleet.max_replicas, math.ceil(max(arrivals) / fleet.capacity) + 1)
    found: dict[int, float] = {}

    def met(kept: int) -> bool:
        found[kept] = late_share(arrivals, fleet, kept)
        return found[kept] <= late_ratio

    kept = bisect_left(range(highest), True, key=met)
    for number in {kept, max(0, kept - 1)} - found.keys():
        met(number)
    return tuple(Expected(number, found[number]) for number in sorted({kept, max(0, kept - 1)}, reverse=True))


def late_share(arrivals: Sequence[float], fleet: Fleet, kept: int) -> float:
    """The ratio of these arrivals, one number for each tick, that are late with at least `kept` replicas.

    The fleet scales up as the rules do: to the load, and by the replicas whose queue is too long. New requests go to
    the shortest queue, so those of new replicas do not wait behind the backlog of the old ones.
    """
    total = sum(arrivals)
    if not total:
        return 0.0
    capacity, wait, most = fleet.capacity, fleet.wait, fleet.max_replicas
    kept = max(1, kept)
    peaks: deque[tuple[int, int]] = deque()
    starting: deque[tuple[int, int]] = deque()
    started = 0
    free, queue = max(kept, min(most, math.ceil(arrivals[0] / capacity))), 0.0
    behind, backlog = 0, 0.0  # replicas with a longer queue, which new requests avoid
    late = 0.0
    for now, arrived in enumerate(arrivals):
        while starting and starting[0][0] <= now:
            _, added = starting.popleft()
            started -= added
            if queue > wait * free / 2:
                behind, backlog, free, queue = behind + free, backlog + queue, added, 0.0
            else:
                free += added
        work = arrived / capacity
        before = queue / free
        queue = max(0.0, queue + work - free)
        after = queue / free
        if after > wait or before > wait:
            part = 1.0 if min(before, after) >= wait else (max(before, after) - wait) / abs(after - before)
            late += part * arrived
        if behind:
            backlog -= behind
            if backlog <= after * behind:
                free, queue, behind, backlog = free + behind, queue + max(0.0, backlog), 0, 0.0
        certain = max(0.0, arrived - DEVIATIONS * math.sqrt(arrived)) / capacity
        needed = math.ceil(certain / fleet.utilisation - 1e-9)
        while peaks and peaks[-1][1] <= needed:
            peaks.pop()
        peaks.append((now, needed))
        if peaks[0][0] <= now - fleet.hold:
            peaks.popleft()
        wanted = max(kept, peaks[0][1])
        slow = behind + (free if queue > wait * free else 0)
        if slow:
            wanted = max(wanted, slow + math.ceil(certain / FULL_RATIO - 1e-9))
        wanted = min(wanted, most)
        there = free + behind + started
        if wanted > there:
            starting.append((now + fleet.start, wanted - there))
            started += wanted - there
        elif wanted < there and not started and not behind:
            free = wanted
    return late / total
