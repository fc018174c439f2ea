"""State of one deployment at this router: its replicas, their health and load, and its queue."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from random import Random

from dragoman_contract.reports import DeploymentLoad
from dragoman_router.fleet.connections import Pool
from dragoman_router.fleet.queue import FairQueue, QueuedRequest, QueueLimits
from dragoman_router.routing import health as healths
from dragoman_router.routing.deployments import Deployment, Replica
from dragoman_router.routing.health import HEALTHY, Health
from dragoman_router.routing.pace import QueueDrainRate
from dragoman_router.routing.replicas import choose, weight

BACK_OFF_S = 0.25
"""Time without requests for a replica that reported overload."""
SHARE_AFTER_REFUSAL = 0.9
"""After a refusal for overload, the limit of this router at the replica is this share of what it had in flight.
Additive increase and multiplicative decrease share a replica between independent routers (Chiu and Jain 1989,
https://doi.org/10.1016/0169-7552(89)90019-6)."""
MAX_LEARNED = 10_000.0
DURATION_BUCKETS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class ReplicaEndpoint:
    """A replica, and what this router measures of it.

    Args:
        waited: Whether it joins others, so that it starts with a small share.
    """

    __slots__ = (
        "backoff_until_s",
        "health",
        "in_flight",
        "label",
        "limit",
        "pool",
        "ready_since_s",
        "replica",
        "tag",
        "weight",
    )

    def __init__(self, replica: Replica, now_s: float, *, waited: bool) -> None:
        self.replica = replica
        self.pool = Pool(replica.host, replica.port)
        self.in_flight = 0
        self.health: Health = HEALTHY
        self.ready_since_s = now_s if waited else float("-inf")
        self.backoff_until_s = 0.0
        self.tag = replica.tag
        self.label = f"{replica.name}@{replica.address}".encode()
        self.limit = float("inf")
        """Requests that it accepts from this router, learned from its refusals: see `refused_for_load`."""
        self.weight = 1.0
        self.weigh(now_s)

    @property
    def open(self) -> bool:
        """Whether it may get a request."""
        return self.replica.ready and not self.replica.terminating and not self.health.ejected

    def refused_for_load(self) -> None:
        """It is full with the requests of all routers; what this one has there was its share."""
        self.limit = max(1.0, min(self.limit, self.in_flight) * SHARE_AFTER_REFUSAL)

    def took(self) -> None:
        """It answered a request: the limit rises by about one for each `limit` responses."""
        if self.limit < MAX_LEARNED:
            self.limit += 1 / self.limit

    def weigh(self, now_s: float) -> None:
        """Update its share."""
        self.weight = weight(now_s - self.ready_since_s, self.health.error_ratio)


class ResponseCounts:
    """Responses of one deployment; prometheus_client's own counters would take five times as long."""

    __slots__ = ("buckets", "characters", "responses", "seconds")

    def __init__(self) -> None:
        self.responses: defaultdict[tuple[str, int], int] = defaultdict(int)
        """By API and status."""
        self.buckets = [0] * (len(DURATION_BUCKETS_S) + 1)
        self.seconds = 0.0
        self.characters = 0
        """That were translated."""

    def add(self, api: str, status: int, seconds: float) -> None:
        """One more."""
        self.responses[api, status] += 1
        self.buckets[bisect_left(DURATION_BUCKETS_S, seconds)] += 1
        self.seconds += seconds


SlotFuture = asyncio.Future[ReplicaEndpoint]
"""A queued request waits for it; its endpoint already counts the request as in flight."""
Waiting = QueuedRequest[SlotFuture]


class Backend:
    """One deployment with its replicas and its queue.

    Args:
        on_ejected: Called with a replica that was ejected.
        departed: Gets removed replicas with requests in flight.
    """

    def __init__(
        self,
        deployment: Deployment,
        limits: QueueLimits,
        chance: Random,
        on_ejected: Callable[[Backend, ReplicaEndpoint], None],
        departed: set[ReplicaEndpoint],
    ) -> None:
        self.deployment = deployment
        self._departed = departed
        self.on_ejected = on_ejected
        self.endpoints: dict[str, ReplicaEndpoint] = {}
        self.by_tag: dict[str, ReplicaEndpoint] = {}
        self.queue: FairQueue[SlotFuture] = FairQueue(limits)
        self.queued = 0
        """Length of the queue: reading it costs a request no call."""
        self._drain_rate = QueueDrainRate()
        self.in_flight = 0
        self.responses = ResponseCounts()
        self.label = deployment.key.encode()
        self._open: list[ReplicaEndpoint] = []
        self._chance = chance
        self._loop = asyncio.get_running_loop()
        self._backoff_until_s = 0.0
        self._later: asyncio.TimerHandle | None = None

    @property
    def open(self) -> bool:
        """Whether a replica may get requests."""
        return bool(self._open)

    @property
    def open_count(self) -> int:
        """Replicas that may get requests."""
        return len(self._open)

    def load(self) -> DeploymentLoad:
        """The load that is reported to the autoscaler."""
        oldest_s = self.queue.oldest_since_s()
        return DeploymentLoad(
            queued=self.queued,
            oldest_queued_s=0.0 if oldest_s is None else round(max(0.0, self._loop.time() - oldest_s), 3),
            in_flight=self.in_flight,
        )

    def set_replicas(self, replicas: Iterable[Replica]) -> list[ReplicaEndpoint]:
        """Apply the source's list; returns the replicas that started to terminate."""
        now_s = self._loop.time()
        before, first = self.endpoints, not self.endpoints
        self.endpoints, terminating = {}, []
        for replica in replicas:
            name = f"{replica.address}/{replica.uid}"
            known = before.pop(name, None)
            if known is None:
                known = ReplicaEndpoint(replica, now_s, waited=not first)
                if replica.terminating:
                    terminating.append(known)
            else:
                if replica.terminating and not known.replica.terminating:
                    terminating.append(known)
                if replica.ready and not known.replica.ready:
                    known.ready_since_s = now_s
                    known.health = HEALTHY
                    known.weigh(now_s)
                known.replica = replica
            self.endpoints[name] = known
        self.by_tag = {endpoint.tag: endpoint for endpoint in self.endpoints.values()}
        for removed in before.values():
            self._depart(removed)
        self.refresh_available()
        return terminating

    def refresh_available(self) -> None:
        """Update which replicas may get requests, and dispatch queued ones."""
        self._open = [endpoint for endpoint in self.endpoints.values() if endpoint.open]
        self.dispatch()

    def pick(self, tried: Collection[ReplicaEndpoint] = ()) -> ReplicaEndpoint | None:
        """Choose a replica and count the request as in flight there; None where none has capacity."""
        candidates: Sequence[ReplicaEndpoint] = self._open
        if tried or self._backoff_until_s:
            now_s = self._loop.time()
            if now_s >= self._backoff_until_s:
                self._backoff_until_s = 0.0
            candidates = [each for each in candidates if each not in tried and each.backoff_until_s <= now_s]
        random = self._chance.random
        at = choose(candidates, self.deployment.max_in_flight, random(), random())
        if at is None:
            return None
        endpoint = candidates[at]
        endpoint.in_flight += 1
        self.in_flight += 1
        return endpoint

    def take(self, endpoint: ReplicaEndpoint) -> None:
        """Count a request as in flight there, in any state of the replica: no other can answer it."""
        endpoint.in_flight += 1
        self.in_flight += 1

    def release(self, endpoint: ReplicaEndpoint) -> None:
        """A request is no longer in flight there."""
        endpoint.in_flight -= 1
        self.in_flight -= 1
        if self.queued:
            self.dispatch()

    def enqueue(self, queued: Waiting, left_s: float = float("inf")) -> Waiting | None:
        """Queue a request; returns the one that was evicted, if any.

        Args:
            queued: The request.
            left_s: Seconds until its deadline; infinite while no replica is available.
        """
        time_s = max(left_s, self.queue.limits.time_s)
        evicted = self.queue.add(queued, self._drain_rate.capacity(time_s, self.in_flight))
        self.queued = len(self.queue)
        self.dispatch()
        return evicted

    def dequeue(self, queued: Waiting) -> None:
        """Remove a request from the queue, if it is there."""
        if self.queue.remove(queued):
            self.queued = len(self.queue)
            if not self.queued:
                self._drain_rate.restart()

    def dispatch(self) -> None:
        """Send queued requests to replicas with capacity."""
        while self.queued:
            endpoint = self.pick()
            if endpoint is None:
                self._dispatch_after_back_off()
                return
            queued = self.queue.take()
            while queued is not None and queued.request.done():
                queued = self.queue.take()
            self.queued = len(self.queue)
            if queued is None:
                self.release(endpoint)
            else:
                self._drain_rate.took(self._loop.time())
                queued.request.set_result(endpoint)
        self._drain_rate.restart()

    def back_off(self, endpoint: ReplicaEndpoint, for_s: float = BACK_OFF_S) -> None:
        """Send an overloaded replica nothing for a while."""
        endpoint.refused_for_load()
        endpoint.backoff_until_s = self._loop.time() + for_s
        self._backoff_until_s = max(self._backoff_until_s, endpoint.backoff_until_s)

    def succeeded(self, endpoint: ReplicaEndpoint) -> None:
        """It answered a request."""
        endpoint.took()
        if endpoint.health is not HEALTHY:
            self._set_health(endpoint, healths.after_success(endpoint.health))

    def erred(self, endpoint: ReplicaEndpoint) -> None:
        """It failed a request."""
        last = self._open == [endpoint]
        self._set_health(endpoint, healths.after_error(endpoint.health, last=last))

    def refused(self, endpoint: ReplicaEndpoint) -> None:
        """It cannot be reached, or refuses all requests."""
        self._set_health(endpoint, healths.after_refusal(endpoint.health))

    def probed(self, endpoint: ReplicaEndpoint, answered: bool) -> None:
        """Its readiness probe was sent."""
        if answered:
            endpoint.ready_since_s = self._loop.time()
        self._set_health(endpoint, healths.after_probe(endpoint.health, answered))

    def close(self) -> None:
        """The deployment was deleted: cancel queued requests, close connections."""
        while (queued := self.queue.take()) is not None:
            queued.request.cancel()
        self.queued = 0
        for endpoint in self.endpoints.values():
            self._depart(endpoint)

    def _depart(self, endpoint: ReplicaEndpoint) -> None:
        endpoint.pool.close()
        if endpoint.in_flight:
            self._departed.add(endpoint)

    def _set_health(self, endpoint: ReplicaEndpoint, health: Health) -> None:
        was_open, was_ejected = endpoint.open, endpoint.health.ejected
        endpoint.health = health
        endpoint.weigh(self._loop.time())
        if endpoint.open != was_open:
            self.refresh_available()
        if health.ejected and not was_ejected:
            self.on_ejected(self, endpoint)

    def _dispatch_after_back_off(self) -> None:
        wait_s = self._backoff_until_s - self._loop.time()
        if self._backoff_until_s and self._later is None:
            self._later = self._loop.call_later(max(0.0, wait_s), self._dispatch_now)

    def _dispatch_now(self) -> None:
        self._later = None
        self.dispatch()
