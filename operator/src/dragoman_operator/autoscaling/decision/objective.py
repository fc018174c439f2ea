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
from functools import cache, partial
from itertools import accumulate
from statistics import median

from dragoman_operator.autoscaling.decision.observation import (
    CANCEL_AFTER_S,
    DEVIATIONS,
    FULL_RATIO,
    RISE_S,
    SURPLUS,
    TOLERANCE,
    risen,
)
from dragoman_operator.autoscaling.decision.values import ARRIVALS_S, Expected, History, Policy

EVERY_S = 120.0
"""Time between two replays: their cost is spread over the ticks of two minutes."""

BUSIEST_MEMORY_S = 43_200.0
"""Time in which the service time under the highest load decays towards the present one by a factor of e: half a day,
as it is a property of the engine and of the texts, and most hours have no full load."""

RECENT = 12
"""Intervals of the longer mean of arrivals: a minute."""

WORTH = 0.1
"""Part of the replicas that another window than the default must save: each change has costs of its own."""

SHORT_START = 2
"""Startup time, as a multiple of the time over which a rise is measured, up to which rises are extrapolated before any
was observed."""

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
        rise: Longest time over which a rise is measured, at least 1.
    """

    capacity: float
    utilisation: float
    start: int
    wait: float
    max_replicas: int
    rise: int = 3


def with_arrivals(history: History, policy: Policy, service_s: float | None, now: float) -> History:
    """The history with the service time under load and, every two minutes, with what the objective needs."""
    if service_s is not None:
        keep = math.exp(-policy.tick_s / BUSIEST_MEMORY_S)
        history = replace(history, busiest_s=max(service_s, keep * (history.busiest_s or 0.0)))
    if policy.objective is None or not history.busiest_s or not history.arrivals:
        return replace(history, kept=0, extrapolates=False, expected=())
    if history.planned_at is not None and now - history.planned_at < EVERY_S - policy.tick_s / 2:
        return history
    fleet = Fleet(
        capacity=ARRIVALS_S * policy.max_num_seqs / history.busiest_s,
        utilisation=policy.concurrency / policy.max_num_seqs,
        start=max(1, round(history.start_s / ARRIVALS_S)),
        wait=policy.target_queue_time_s / ARRIVALS_S,
        max_replicas=policy.max_replicas,
        rise=max(1, round(RISE_S / ARRIVALS_S)),
    )
    late_ratio = 1 - policy.objective
    plan = cheapest(history.arrivals, fleet, late_ratio, policy.windows_s(history.start_s, history.doublings))
    unseen = median(history.arrivals) / fleet.capacity * unseen_burst(late_ratio, history.learned_s)
    kept = min(math.floor(unseen + 0.5), policy.max_replicas)
    if kept > plan.kept:
        load = Load.of(history.arrivals, fleet, max(1, round(plan.window_s / ARRIVALS_S)), plan.extrapolates)
        plan = replace(plan, expected=(expect(load, fleet, kept), expect(load, fleet, kept - 1)))
    return replace(
        history,
        kept=plan.kept,
        expected=plan.expected,
        window_s=plan.window_s,
        extrapolates=plan.extrapolates,
        planned_at=now,
    )


@dataclass(frozen=True, slots=True)
class Plan:
    """What the objective needs.

    Attributes:
        expected: With the replicas to keep, and with one less.
        window_s: Stabilization window.
        extrapolates: Whether rises are extrapolated.
        cost: Replicas on average, more by `WORTH` for another window than the default.
    """

    expected: tuple[Expected, ...]
    window_s: float
    extrapolates: bool
    cost: float

    def price(self, late_ratio: float) -> float:
        """The cost, more by up to `WORTH` for late requests, as far as `late_ratio` allows them."""
        return self.cost * (1 + WORTH * self.expected[0].late_ratio / late_ratio)

    @property
    def kept(self) -> int:
        """Replicas to keep."""
        return self.expected[0].replicas


def cheapest(arrivals: Sequence[float], fleet: Fleet, late_ratio: float, windows_s: Sequence[float]) -> Plan:
    """The cheapest stabilization window, each with the least number of replicas that meets the objective.

    With it, rises are extrapolated if that is cheaper. If it costs the same, because there was no rise, they are
    extrapolated if a start is short: a rise over seconds says little about minutes. If nothing meets the objective,
    because the maximum is too low or a start takes too long, the plan with the fewest late requests.
    """
    highest = max(1, min(fleet.max_replicas, math.ceil(max(arrivals) / fleet.capacity) + 1))

    def planned(window_s: float, extrapolates: bool, worth: float) -> Plan:
        load = Load.of(arrivals, fleet, max(1, round(window_s / ARRIVALS_S)), extrapolates)
        late = cache(partial(expect, load, fleet))
        kept = 1 + bisect_left(
            range(1, highest), True, key=lambda number: late(number).late_ratio <= late_ratio
        )
        fewer = (late(kept - 1),) if kept > 1 else ()
        cost = replay(load, fleet, kept).cost * worth
        return Plan((late(kept), *fewer), window_s, extrapolates, cost)

    def lateness(plan: Plan) -> float:
        return max(plan.expected[0].late_ratio, late_ratio)

    plans = [planned(each, False, 1.0 if each == windows_s[0] else 1 + WORTH) for each in windows_s]
    best = min(plans, key=lambda plan: (lateness(plan), plan.cost))
    worth = 1.0 if best.window_s == windows_s[0] else 1 + WORTH
    ahead = planned(best.window_s, True, worth)
    first, second = (ahead, best) if fleet.start <= SHORT_START * fleet.rise else (best, ahead)
    return min(first, second, key=lambda plan: (lateness(plan), plan.price(late_ratio)))


def expect(load: Load, fleet: Fleet, kept: int) -> Expected:
    """What is expected with at least `kept` replicas."""
    return Expected(kept, replay(load, fleet, kept).late_ratio)


def unseen_burst(late_ratio: float, learned_s: float) -> float:
    """The multiple of the median demand that is kept for bursts like none before; 0 once enough was observed."""
    ratio = math.sqrt(PRIOR_RATIO / late_ratio * PRIOR_S / (PRIOR_S + learned_s))
    return ratio if ratio > 1 else 0.0


@dataclass(frozen=True, slots=True)
class Load:
    """Arrivals by interval, in replicas: what a full replica serves in an interval is 1.

    Attributes:
        certain: Lower bound of the arrivals, without what chance alone may add: of the last interval
            or the last minute.
        ahead: Arrivals expected after a start, by the rise of the last intervals; 0 if rises are not extrapolated.
        rule: Replicas that the load rule wants, not rounded, by interval.
        required: The maximum of the stabilization window, rounded up.
    """

    work: list[float]
    certain: list[float]
    ahead: list[float]
    rule: list[float]
    required: list[int]

    @classmethod
    def of(cls, arrivals: Sequence[float], fleet: Fleet, window: int, extrapolates: bool = False) -> Load:
        """From requests per interval, and a window in intervals."""
        certain = []
        recent = 0.0
        for now, arrived in enumerate(arrivals):
            recent += arrived - (arrivals[now - RECENT] if now >= RECENT else 0)
            last, mean = _lower_bound(arrived), _lower_bound(recent) / min(now + 1, RECENT)
            certain.append(max(last, mean) / fleet.capacity)
        rule: list[float] = []
        required = []
        peaks: deque[tuple[int, int]] = deque()
        for now, load in enumerate(certain):
            needed = math.ceil(load / fleet.utilisation - 1e-9)
            rule.append(load / fleet.utilisation)
            while peaks and peaks[-1][1] <= needed:
                peaks.pop()
            peaks.append((now, needed))
            if peaks[0][0] <= now - window:
                peaks.popleft()
            required.append(peaks[0][1])
        work = [arrived / fleet.capacity for arrived in arrivals]
        ahead = _ahead(arrivals, fleet) if extrapolates else [0.0] * len(work)
        return cls(work, certain, ahead, rule, required)


def _ahead(arrivals: Sequence[float], fleet: Fleet) -> list[float]:
    """See `Load.ahead`."""
    total = [0.0, *accumulate(arrivals)]
    found = []
    for end in range(1, len(total)):
        best = 0.0
        for span in range(1, min(fleet.rise, end // 2) + 1):
            late = total[end] - total[end - span]
            early = total[end - span] - total[end - 2 * span]
            if late > early:
                best = max(best, risen(late, early, span, fleet.start + 1))
        found.append(best / fleet.capacity)
    return found


def _lower_bound(count: float) -> float:
    """What is left of a count without what chance alone may add."""
    return max(0.0, count - DEVIATIONS * math.sqrt(max(0.0, count)))


@dataclass(frozen=True, slots=True)
class Replayed:
    """Result of a replay: ratio of late requests, and replicas on average."""

    late_ratio: float
    cost: float


def replay(load: Load, fleet: Fleet, kept: int) -> Replayed:
    """Serve these arrivals with at least `kept` replicas.

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
    late = cost = 0.0
    for now, (work, certain, ahead, rule, required) in enumerate(
        zip(load.work, load.certain, load.ahead, load.rule, load.required, strict=True)
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
        wanted = required if required <= there or rule > there * (1 + TOLERANCE) else there
        wanted = max(wanted, kept)
        if ahead > certain:
            certain = ahead
            if certain > there:
                wanted = max(wanted, math.ceil(certain / FULL_RATIO - 1e-9))
        if slow:
            wanted = max(wanted, slow + math.ceil(SURPLUS * certain / FULL_RATIO - 1e-9))
        wanted = min(wanted, most)
        cost += there
        if wanted > there:
            starting.append((now + start, wanted - there))
            started, scaled_up = started + wanted - there, now
        elif started and (now - scaled_up) * ARRIVALS_S >= CANCEL_AFTER_S:
            started -= _cancel(starting, there - wanted)
        elif wanted < there and not started and not behind:
            free = wanted
    return Replayed(late / (sum(load.work) or 1.0), cost / len(load.work))


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
