"""The same fleet request by request: slow, and without approximation, to hold the fluid one against.

Every request arrives at a moment of its own, goes to the least loaded replica, waits for a seat, and runs at the
speed that the number beside it allows. Sequences of one replica advance together, so their ends are kept as the
work that the replica will then have done for each, and one heap per replica finds the next.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from dataclasses import dataclass, field

from dragoman_simulate.speed import SpeedTable
from dragoman_simulate.view import Alike, Limits, Metrics, View
from dragoman_simulate.waits import Waits


@dataclass
class _Replica:
    """One engine pod.

    Attributes:
        done: Tokens that a sequence which always ran would have written by `at`.
        at: When the replica was last advanced.
        ends: For each running sequence the value of `done` at which it is finished.
        queue: When each waiting request came, and its tokens.
    """

    at: float
    done: float = 0.0
    ends: list[float] = field(default_factory=list)
    queue: deque[tuple[float, float]] = field(default_factory=deque)
    finished: int = 0

    @property
    def load(self) -> int:
        """Requests running and waiting."""
        return len(self.ends) + len(self.queue)


class ExactFleet:
    """Replays like `fleet.Fleet`, with arrivals of each second spread at random over it.

    Args:
        limits: As for `Fleet`.
        speed: As for `Fleet`.
        replicas: Ready at first, and idle.
        seed: Of the arrivals' moments and lengths.
        spread: Deviation of a request's length over its mean; 0 for all alike.
    """

    def __init__(
        self, limits: Limits, speed: SpeedTable, replicas: int, seed: int = 0, spread: float = 0.0
    ) -> None:
        self._limits, self._speed, self._spread = limits, speed, spread
        self._draw = random.Random(seed)
        self._ready = [_Replica(0.0) for _ in range(replicas)]
        self._starting: list[float] = []
        self._draining: list[_Replica] = []
        self._queued: deque[tuple[float, float]] = deque()
        self._lengths = (1.0, 1.0)
        self.desired = replicas
        self.waits = Waits()
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
            self._ready.append(_Replica(now_s))
        while self._queued and self._ready:
            self._arrive(now_s, *self._queued.popleft())
        if count:
            self._lengths = source_tokens, target_tokens
        for moment in sorted(self._draw.random() for _ in range(round(count))):
            factor = self._draw.gammavariate(self._spread**-2, self._spread**2) if self._spread else 1.0
            self._arrive(now_s + moment, now_s + moment, target_tokens * factor)
        for replica in (*self._ready, *self._draining):
            self._advance(replica, now_s + 1)
        self._draining = [replica for replica in self._draining if replica.load]
        self.replica_seconds += len(self._ready) + len(self._starting) + len(self._draining)

    def view(self, now_s: float, blind: bool) -> View:
        """What an autoscaler may see now."""
        ready, queued = len(self._ready), float(len(self._queued))
        return View(
            now_s, self.desired, ready, len(self._starting), queued, None if blind else self._metrics()
        )

    def close(self, now_s: float) -> None:
        """End the replay: requests without a seat have waited until now."""
        queues = [replica.queue for replica in (*self._ready, *self._draining)]
        for came_s, _tokens in (request for queue in (*queues, self._queued) for request in queue):
            self.waits.add(1.0, now_s - came_s, now_s - came_s)

    def _metrics(self) -> Metrics:
        source, target = self._lengths
        used = (source + target / 2) / self._limits.kv_cache_tokens
        alike = tuple(
            Alike(1, len(replica.ends), len(replica.queue), min(1.0, len(replica.ends) * used))
            for replica in self._ready
        )
        finished = sum(replica.finished for replica in self._ready)
        return Metrics(alike, finished, source, target)

    def _arrive(self, now_s: float, came_s: float, tokens: float) -> None:
        if not self._ready:
            self._queued.append((came_s, tokens))
            return
        for replica in self._ready:
            self._advance(replica, now_s)
        idlest = min(self._ready, key=lambda replica: replica.load)
        idlest.queue.append((came_s, tokens))
        self._seat(idlest)

    def _seat(self, replica: _Replica) -> None:
        while replica.queue and len(replica.ends) < self._limits.max_num_seqs:
            came_s, tokens = replica.queue.popleft()
            self.waits.add(1.0, replica.at - came_s, replica.at - came_s)
            heapq.heappush(replica.ends, replica.done + tokens)

    def _advance(self, replica: _Replica, until_s: float) -> None:
        while replica.ends:
            speed = self._speed.tokens_per_s(len(replica.ends))
            next_s = replica.at + (replica.ends[0] - replica.done) / speed
            if next_s > until_s:
                replica.done += (until_s - replica.at) * speed
                break
            replica.at, replica.done = next_s, heapq.heappop(replica.ends)
            replica.finished += 1
            self._seat(replica)
        replica.at = until_s
