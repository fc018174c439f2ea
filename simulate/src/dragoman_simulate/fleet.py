"""A fleet of engine pods as a fluid: replicas that are alike are one cohort, requests are a quantity.

A replica runs up to `max_num_seqs` sequences, each at the measured speed for that many, and queues the rest
first come, first served. The router sends every request to the least loaded replica, so replicas that started
together stay alike and those that fill up join them: the number of cohorts, not of replicas, sets the cost of a
step. A wait needs no bookkeeping: a full replica finishes requests at a constant rate, so a request's wait is
known when it joins the queue. `exact.ExactFleet` is the same fleet request by request; tests compare both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dragoman_simulate.speed import SpeedTable
from dragoman_simulate.view import Alike, Metrics, ScalingLimits, View
from dragoman_simulate.waits import Waits

ALIKE = 0.02
"""Cohorts join once their loads differ by less than this share of `max_num_seqs`: below one request."""

LEFT_OVER = 0.01
"""A replica without arrivals is idle when less than this much of a request is left on it: a fluid never empties."""

SETTLE_S = 120
"""Seconds of arrivals that the first replicas have behind them when a replay begins."""

LENGTHS_SHARE = 0.02
"""Weight of one second in the mean lengths that metrics show: most of a minute is remembered."""

SUBSTEPS = 3
"""Most pieces of one step: towards full, full, and from full."""


@dataclass(slots=True)
class Cohort:
    """Replicas that are alike.

    Attributes:
        load: Requests on each, running and waiting.
        tokens: Mean target length of those requests.
    """

    replicas: int
    load: float = 0.0
    tokens: float = 1.0


class Fleet:
    """Ready, starting and draining replicas, stepped second by second."""

    def __init__(
        self, limits: ScalingLimits, speed: SpeedTable, replicas: int, arrivals_per_s: float, tokens: float
    ) -> None:
        """Begin with `replicas` ready, as loaded as these arrivals of this mean length keep them."""
        self._limits = limits
        self._speed = speed
        self._seats = float(limits.max_num_seqs)
        self._full_tokens_per_s = self._seats * speed.tokens_per_s(self._seats)
        self._ready = [Cohort(replicas, tokens=max(1.0, tokens))] if replicas else []
        self._starting: list[tuple[float, int]] = []
        self._draining: list[Cohort] = []
        self._queued: list[tuple[float, float, float]] = []
        self._finished = 0.0
        self._lengths = (tokens, tokens)
        self.desired = replicas
        self.waits = Waits()
        self.replica_seconds = 0.0
        for cohort in self._ready:
            for _ in range(SETTLE_S):
                self._serve(cohort, arrivals_per_s / replicas)
            cohort.load = min(cohort.load, self._seats)
        self.waits, self._finished = Waits(), 0.0

    @property
    def ready(self) -> int:
        """Replicas that serve."""
        return sum(cohort.replicas for cohort in self._ready)

    @property
    def pending(self) -> int:
        """Replicas that start."""
        return sum(replicas for _, replicas in self._starting)

    @property
    def queued(self) -> float:
        """Requests at the router."""
        return sum(count for _, count, _ in self._queued)

    def resize(self, desired: int, now_s: float) -> None:
        """Set the desired replicas: new ones start, the youngest starting and then the least busy ones are removed."""
        self.desired = desired
        missing = desired - self.ready - self.pending
        if missing > 0:
            self._starting.append((now_s + self._limits.start_up_s, missing))
        while missing < 0 and self._starting:
            ready_at, replicas = self._starting.pop()
            missing += replicas
            if missing > 0:
                self._starting.append((ready_at, missing))
        while missing < 0:
            idlest = min(self._ready, key=lambda cohort: cohort.load)
            leaving = min(-missing, idlest.replicas)
            idlest.replicas -= leaving
            missing += leaving
            self._draining.append(Cohort(leaving, idlest.load, idlest.tokens))
            self._ready = [cohort for cohort in self._ready if cohort.replicas]

    def step(self, now_s: float, count: float, source_tokens: float, target_tokens: float) -> None:
        """Let one second pass, in which `count` requests of these mean lengths arrive evenly."""
        self._start(now_s)
        if count:
            source, target = self._lengths
            source += LENGTHS_SHARE * (source_tokens - source)
            target += LENGTHS_SHARE * (target_tokens - target)
            self._lengths = source, target
        if self._ready:
            self._spread(count, target_tokens)
        elif count:
            self._queued.append((now_s, count, target_tokens))
        for cohort in self._draining:
            self._serve(cohort, 0.0)
        self._draining = [cohort for cohort in self._draining if cohort.load]
        leaving = sum(cohort.replicas for cohort in self._draining)
        self.replica_seconds += self.ready + self.pending + leaving

    def view(self, now_s: float, blind: bool) -> View:
        """What an autoscaler may see now."""
        metrics = None if blind else self._metrics()
        return View(now_s, self.desired, self.ready, self.pending, self.queued, metrics)

    def close(self, now_s: float) -> None:
        """End the replay: requests that are still queued have waited until now."""
        for arrived_s, count, _ in self._queued:
            self.waits.add(count, now_s - arrived_s, now_s - arrived_s)

    def _metrics(self) -> Metrics:
        source, target = self._lengths
        alike = []
        for cohort in self._ready:
            running = min(cohort.load, self._seats)
            kv_tokens = running * (source + target / 2)  # half written, on average
            alike.append(
                Alike(
                    cohort.replicas,
                    running,
                    cohort.load - running,
                    min(1.0, kv_tokens / self._limits.kv_cache_tokens),
                )
            )
        return Metrics(tuple(alike), self._finished, source, target)

    def _start(self, now_s: float) -> None:
        started = sum(replicas for ready_at, replicas in self._starting if ready_at <= now_s)
        if not started:
            return
        self._starting = [entry for entry in self._starting if entry[0] > now_s]
        self._ready.append(Cohort(started))
        queued, self._queued = self._queued, []
        total = self.ready
        before = 0.0
        for arrived_s, count, tokens in queued:
            queue = self._queue_s(before / total, tokens), self._queue_s((before + count) / total, tokens)
            self.waits.add(count, now_s - arrived_s + queue[0], now_s - arrived_s + queue[1])
            before += count
            self._pour(count, tokens, lambda _cohort, _count: None)

    def _spread(self, count: float, tokens: float) -> None:
        before = {id(cohort): cohort.load for cohort in self._ready}
        arrivals = dict.fromkeys(before, 0.0)

        def arrived(cohort: Cohort, poured: float) -> None:
            arrivals[id(cohort)] += poured / cohort.replicas

        if count:
            if len(self._ready) == 1:
                only = self._ready[0]
                arrivals[id(only)] = count / only.replicas
                _mix(only, count / only.replicas, tokens)
            else:
                self._pour(count, tokens, arrived)
        for cohort in self._ready:
            rate = arrivals.get(id(cohort), 0.0)
            cohort.load = before.get(id(cohort), cohort.load)
            self._finished += cohort.replicas * self._serve(cohort, rate)
        if len(self._ready) > 1:
            self._join()

    def _pour(self, count: float, tokens: float, arrived: Callable[[Cohort, float], None]) -> None:
        """Raise the lowest loads first, as a router does that picks the least loaded replica."""
        cohorts = sorted(self._ready, key=lambda cohort: cohort.load)
        for index, lowest in enumerate(cohorts):
            filled = cohorts[: index + 1]
            level = lowest.load
            above = cohorts[index + 1].load if index + 1 < len(cohorts) else math.inf
            replicas = sum(cohort.replicas for cohort in filled)
            poured = min(count, (above - level) * replicas)
            for cohort in filled:
                each = poured / replicas
                _mix(cohort, each, tokens)
                arrived(cohort, each * cohort.replicas)
                cohort.load = level + each
            count -= poured
            if count <= 0:
                return

    def _queue_s(self, load: float, tokens: float) -> float:
        """Wait of a request that joins a replica with this load."""
        return max(0.0, load - self._seats) * tokens / self._full_tokens_per_s

    def _serve(self, cohort: Cohort, arrivals: float) -> float:
        """One second on one replica of a cohort. Returns the requests that it finished."""
        left_s, begin = 1.0, cohort.load
        for _ in range(SUBSTEPS):
            load, passed_s = self._flow(cohort, arrivals, left_s)
            self.waits.add(
                arrivals * passed_s * cohort.replicas,
                self._queue_s(cohort.load, cohort.tokens),
                self._queue_s(load, cohort.tokens),
            )
            cohort.load = load
            left_s -= passed_s
            if left_s <= 1e-9:
                break
        if not arrivals and cohort.load < LEFT_OVER:
            cohort.load = 0.0
        return begin + arrivals - cohort.load

    def _flow(self, cohort: Cohort, arrivals: float, left_s: float) -> tuple[float, float]:
        """Load after at most `left_s` of steady arrivals, and how long that took.

        The time ends where the queue begins or ends: the rate of finishing follows another law on either side.
        """
        load, seats = cohort.load, self._seats
        full_rate = self._full_tokens_per_s / cohort.tokens
        if load > seats or (load == seats and arrivals >= full_rate):
            net = arrivals - full_rate
            if net >= 0 or load + net * left_s >= seats:
                return load + net * left_s, left_s
            return seats, (load - seats) / -net
        middle = load
        for _ in range(2):  # the speed at the middle of the step, found by trying twice
            rate = self._speed.tokens_per_s(max(1.0, middle)) / cohort.tokens
            rest = arrivals / rate
            after = rest + (load - rest) * math.exp(-rate * left_s)
            middle = min(seats, (load + after) / 2)
        if after <= seats:
            return after, left_s
        return seats, min(left_s, math.log((rest - load) / (rest - seats)) / rate)

    def _join(self) -> None:
        joined: list[Cohort] = []
        for cohort in sorted(self._ready, key=lambda cohort: cohort.load):
            last = joined[-1] if joined else None
            if last is None or cohort.load - last.load > ALIKE * self._seats:
                joined.append(cohort)
                continue
            both = last.replicas + cohort.replicas
            share = cohort.replicas / both
            last.load += share * (cohort.load - last.load)
            last.tokens += share * (cohort.tokens - last.tokens)
            last.replicas = both
        self._ready = joined


def _mix(cohort: Cohort, arrivals: float, tokens: float) -> None:
    """Requests of another length join those that are there."""
    total = cohort.load + arrivals
    if total > 0:
        cohort.tokens += arrivals / total * (tokens - cohort.tokens)
