"""A fleet request by request, without the approximations of `fleet.Fleet`: for one deployment, and to check that one.

Every request arrives at a moment of its own, goes to the least loaded replica, waits for a slot, and runs at the
speed that the number beside it allows: first the time beside its tokens, then its tokens. Sequences of one replica
advance together, so their ends are kept as the work that the replica will then have done for each.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from dragoman_simulate.speed import SpeedTable
from dragoman_simulate.view import Alike, Metrics, ScalingLimits, View
from dragoman_simulate.waits import Waits


class Arrival(NamedTuple):
    """A request: when it arrives, in seconds, and its output tokens."""

    at_s: float
    tokens: float


class Served(NamedTuple):
    """A finished request: its arrival, its wait for a slot, and the time until its answer."""

    arrival: Arrival
    wait_s: float
    latency_s: float


class Replica:
    """One engine pod.

    Args:
        at: When it starts.
        seats: Sequences that it runs at once.
        served: Called with each request as it finishes.
    """

    def __init__(self, at: float, seats: int, speed: SpeedTable, served: Callable[[Served], None]) -> None:
        self.at = at
        self.queue: deque[Arrival] = deque()
        self.finished = 0
        self._seats, self._served = seats, served
        self._overhead_s = speed.overhead_ms / 1000
        self._pace = [(speed.request_s(n), 1 / speed.tokens_per_s(n)) for n in range(1, seats + 1)]
        self._begun = self._written = 0.0
        self._first: deque[tuple[float, float, Arrival]] = deque()
        self._writing: list[tuple[float, float, Arrival]] = []

    @property
    def running(self) -> int:
        """Sequences that have a slot."""
        return len(self._first) + len(self._writing)

    @property
    def load(self) -> int:
        """Requests running and waiting."""
        return self.running + len(self.queue)

    def arrive(self, arrival: Arrival, now_s: float) -> None:
        """A request joins the queue, or gets a slot; the replica must be advanced to `now_s`."""
        self.queue.append(arrival)
        self.at = max(self.at, now_s)
        self._seat()

    def advance(self, until_s: float) -> None:
        """Work until then."""
        while running := self.running:
            request_s, token_s = self._pace[running - 1]
            first_s = (self._first[0][0] - self._begun) * request_s if self._first else float("inf")
            end_s = (self._writing[0][0] - self._written) * token_s if self._writing else float("inf")
            passed_s = min(first_s, end_s, until_s - self.at)
            self._begun += passed_s / request_s if request_s else 1.0
            self._written += passed_s / token_s
            self.at += passed_s
            if passed_s == first_s:
                self._begun, wait_s, arrival = self._first.popleft()
                heapq.heappush(self._writing, (self._written + arrival.tokens, wait_s, arrival))
            elif passed_s == end_s:
                self._written, wait_s, arrival = heapq.heappop(self._writing)
                self.finished += 1
                self._served(Served(arrival, wait_s, self.at - arrival.at_s + self._overhead_s))
                self._seat()
            else:
                break
        self.at = max(self.at, until_s)

    def _seat(self) -> None:
        while self.queue and self.running < self._seats:
            arrival = self.queue.popleft()
            self._first.append((self._begun + 1, self.at - arrival.at_s, arrival))


def served_by(arrivals: Iterable[Arrival], replicas: int, seats: int, speed: SpeedTable) -> list[Served]:
    """The requests as replicas that are ready throughout serve them, in the order in which they finish."""
    found: list[Served] = []
    fleet = [Replica(0.0, seats, speed, found.append) for _ in range(replicas)]
    for arrival in sorted(arrivals):
        for replica in fleet:
            replica.advance(arrival.at_s)
        min(fleet, key=lambda replica: replica.load).arrive(arrival, arrival.at_s)
    for replica in fleet:
        replica.advance(float("inf"))
    return found


class ExactFleet:
    """Replays like `fleet.Fleet`, with arrivals of each second spread at random over it.

    Args:
        limits: As for `Fleet`.
        speed: As for `Fleet`.
        replicas: Ready at first, and idle.
        seed: Of the arrivals' moments and lengths.
        spread: Deviation of a request's length over its mean; 0 for all alike.

    Attributes:
        latencies: Times from arrival to answer of the requests that were answered.
    """

    def __init__(
        self, limits: ScalingLimits, speed: SpeedTable, replicas: int, seed: int = 0, spread: float = 0.0
    ) -> None:
        self._limits, self._speed, self._spread = limits, speed, spread
        self._draw = random.Random(seed)
        self._ready = [self._replica(0.0) for _ in range(replicas)]
        self._starting: list[float] = []
        self._draining: list[Replica] = []
        self._queued: deque[Arrival] = deque()
        self._lengths = (1.0, 1.0)
        self.desired = replicas
        self.waits, self.latencies = Waits(), Waits()
        self.replica_seconds = 0.0

    def resize(self, desired: int, now_s: float) -> None:
        """Set the desired replicas; the youngest starting and then the least loaded ones are removed."""
        self.desired = desired
        while len(self._ready) + len(self._starting) < desired:
            self._starting.append(now_s + self._limits.start_up_s)
        while len(self._ready) + len(self._starting) > desired and self._starting:
            self._starting.pop()
        while len(self._ready) > desired:
            idlest = min(self._ready, key=lambda replica: replica.load)
            self._ready.remove(idlest)
            self._draining.append(idlest)

    def step(self, now_s: float, count: float, source_tokens: float, target_tokens: float) -> None:
        """Let one second pass."""
        for ready_at in [at for at in self._starting if at <= now_s]:
            self._starting.remove(ready_at)
            self._ready.append(self._replica(now_s))
        while self._queued and self._ready:
            self._arrive(self._queued.popleft(), now_s)
        if count:
            self._lengths = source_tokens, target_tokens
        for moment in sorted(self._draw.random() for _ in range(round(count))):
            factor = self._draw.gammavariate(self._spread**-2, self._spread**2) if self._spread else 1.0
            self._arrive(Arrival(now_s + moment, target_tokens * factor), now_s + moment)
        for replica in (*self._ready, *self._draining):
            replica.advance(now_s + 1)
        self._draining = [replica for replica in self._draining if replica.load]
        self.replica_seconds += len(self._ready) + len(self._starting) + len(self._draining)

    def view(self, now_s: float, blind: bool) -> View:
        """What an autoscaler may see now."""
        ready, queued = len(self._ready), float(len(self._queued))
        return View(
            now_s, self.desired, ready, len(self._starting), queued, None if blind else self._metrics()
        )

    def close(self, now_s: float) -> None:
        """End the replay: requests without an answer finish, those without a replica have waited until now."""
        for replica in (*self._ready, *self._draining):
            replica.advance(float("inf"))
        for arrival in self._queued:
            self.waits.add(1.0, now_s - arrival.at_s, now_s - arrival.at_s)

    def _metrics(self) -> Metrics:
        source, target = self._lengths
        used = (source + target / 2) / self._limits.kv_cache_tokens
        alike = tuple(
            Alike(1, replica.running, len(replica.queue), min(1.0, replica.running * used))
            for replica in self._ready
        )
        finished = sum(replica.finished for replica in self._ready)
        return Metrics(alike, finished, source, target)

    def _replica(self, at: float) -> Replica:
        return Replica(at, self._limits.max_num_seqs, self._speed, self._count)

    def _count(self, served: Served) -> None:
        self.waits.add(1.0, served.wait_s, served.wait_s)
        self.latencies.add(1.0, served.latency_s, served.latency_s)

    def _arrive(self, arrival: Arrival, now_s: float) -> None:
        if not self._ready:
            self._queued.append(arrival)
            return
        for replica in self._ready:
            replica.advance(now_s)
        min(self._ready, key=lambda replica: replica.load).arrive(arrival, now_s)
