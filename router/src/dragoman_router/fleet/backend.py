"""One deployment's replicas as this router has them now: what a source told, and what requests found out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from random import Random

from dragoman_contract.load import DeploymentLoad
from dragoman_router.fleet.pool import Pool
from dragoman_router.fleet.queue import Held, HoldLimits, HoldQueue
from dragoman_router.routing import health as healths
from dragoman_router.routing.deployments import Deployment, Replica
from dragoman_router.routing.health import HEALTHY, Health
from dragoman_router.routing.pace import Pace
from dragoman_router.routing.replicas import choose, weight

BACK_OFF_S = 0.25
"""A replica that says that it is overloaded is left alone for so long."""


SHARE_AFTER_REFUSAL = 0.9
"""A replica that refuses for load gets so much of what this router has in flight there. Additive increase and
multiplicative decrease share a replica between routers that do not know of each other (Chiu and Jain 1989,
https://doi.org/10.1016/0169-7552(89)90019-6)."""
MAX_LEARNED = 10_000.0


class Endpoint:
    """A replica's address that may be used, and what this router knows of it.

    Args:
        replica: What the source says.
        now_s: Monotonic seconds.
        waited: Whether it is new where others were there before, so that it starts with a small share.
    """

    __slots__ = (
        "health",
        "in_flight",
        "label",
        "limit",
        "pool",
        "ready_since_s",
        "replica",
        "rested_until_s",
        "tag",
        "weight",
    )

    def __init__(self, replica: Replica, now_s: float, *, waited: bool) -> None:
        self.replica = replica
        self.pool = Pool(replica.host, replica.port)
        self.in_flight = 0
        self.health: Health = HEALTHY
        self.ready_since_s = now_s if waited else float("-inf")
        self.rested_until_s = 0.0
        self.tag = replica.tag
        self.label = f"{replica.name}@{replica.address}".encode()
        self.limit = float("inf")
        """Requests that it takes from this router, as its refusals say: see `refused_for_load`."""
        self.weight = 1.0
        self.weigh(now_s)

    @property
    def open(self) -> bool:
        """Whether it may get a request."""
        return self.replica.ready and not self.replica.terminating and not self.health.ejected

    def refused_for_load(self) -> None:
        """It has as much as it takes, from all routers together; what this one has there was its share of that."""
        self.limit = max(1.0, min(self.limit, self.in_flight) * SHARE_AFTER_REFUSAL)

    def took(self) -> None:
        """It answered a request: a few more may be tried, about one for each `limit` answers."""
        if self.limit < MAX_LEARNED:
            self.limit += 1 / self.limit

    def weigh(self, now_s: float) -> None:
        """Work out its share anew."""
        self.weight = weight(now_s - self.ready_since_s, self.health.error_ratio)


Place = asyncio.Future[Endpoint]
"""What a held request waits for; the endpoint that it gets is already counted as having it in flight."""


class Backend:
    """One deployment with its replicas and the requests that wait for it.

    Args:
        deployment: What the source says.
        limits: Of its queue.
        chance: Randomness of choices.
        changed: Called when the number of held or in-flight requests changed.
        on_ejected: Called with a replica that gets nothing more until a probe succeeds.
        departed: Gets replicas that are gone while requests are in flight there.
    """

    def __init__(
        self,
        deployment: Deployment,
        limits: HoldLimits,
        chance: Random,
        changed: Callable[[], None],
        on_ejected: Callable[[Backend, Endpoint], None],
        departed: set[Endpoint],
    ) -> None:
        self.deployment = deployment
        self._departed = departed
        self.on_ejected = on_ejected
        self.endpoints: dict[str, Endpoint] = {}
        self.by_tag: dict[str, Endpoint] = {}
        self.queue: HoldQueue[Place] = HoldQueue(limits)
        self._pace = Pace()
        self.in_flight = 0
        self.label = deployment.key.encode()
        self._open: list[Endpoint] = []
        self._chance = chance
        self._changed = changed
        self._loop = asyncio.get_running_loop()
        self._rest_until_s = 0.0
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
        """What the autoscaler is told."""
        oldest_s = self.queue.oldest_since_s()
        return DeploymentLoad(
            held=len(self.queue),
            oldest_held_s=0.0 if oldest_s is None else round(max(0.0, self._loop.time() - oldest_s), 3),
            in_flight=self.in_flight,
        )

    def set_replicas(self, replicas: Iterable[Replica]) -> list[Endpoint]:
        """Take in what the source says; those that have begun to terminate or are gone since."""
        now_s = self._loop.time()
        before, first = self.endpoints, not self.endpoints
        self.endpoints, leaving = {}, []
        for replica in replicas:
            name = f"{replica.address}/{replica.uid}"
            known = before.pop(name, None)
            if known is None:
                known = Endpoint(replica, now_s, waited=not first)
                if replica.terminating:
                    leaving.append(known)
            else:
                if replica.terminating and not known.replica.terminating:
                    leaving.append(known)
                if replica.ready and not known.replica.ready:
                    known.ready_since_s = now_s
                    known.health = HEALTHY
                    known.weigh(now_s)
                known.replica = replica
            self.endpoints[name] = known
        self.by_tag = {endpoint.tag: endpoint for endpoint in self.endpoints.values()}
        for gone in before.values():
            self._depart(gone)
        self.reopen()
        return leaving

    def reopen(self) -> None:
        """Work out anew which replicas may get requests, and let waiting ones go there."""
        self._open = [endpoint for endpoint in self.endpoints.values() if endpoint.open]
        self.dispatch()

    def pick(self, tried: Collection[Endpoint] = ()) -> Endpoint | None:
        """Choose a replica and count the request as in flight there; None where none can take it."""
        candidates: Sequence[Endpoint] = self._open
        if tried or self._rest_until_s:
            now_s = self._loop.time()
            if now_s >= self._rest_until_s:
                self._rest_until_s = 0.0
            candidates = [each for each in candidates if each not in tried and each.rested_until_s <= now_s]
        random = self._chance.random
        at = choose(candidates, self.deployment.max_in_flight, random(), random())
        if at is None:
            return None
        endpoint = candidates[at]
        endpoint.in_flight += 1
        self.in_flight += 1
        self._changed()
        return endpoint

    def take(self, endpoint: Endpoint) -> None:
        """A request that no other replica can answer is in flight there, whatever the replica's state."""
        endpoint.in_flight += 1
        self.in_flight += 1
        self._changed()

    def release(self, endpoint: Endpoint) -> None:
        """A request is no longer in flight there."""
        endpoint.in_flight -= 1
        self.in_flight -= 1
        self._changed()
        if self.queue:
            self.dispatch()

    def hold(self, held: Held[Place], left_s: float = float("inf")) -> Held[Place] | None:
        """Let a request wait; the one that has no place, if any.

        Args:
            held: The request.
            left_s: Seconds until it is given up; infinite where a start of a replica is waited for.
        """
        time_s = max(left_s, self.queue.limits.time_s)
        pushed_out = self.queue.add(held, self._pace.room(time_s, self.in_flight))
        self._changed()
        self.dispatch()
        return pushed_out

    def leave(self, held: Held[Place]) -> None:
        """A request no longer waits."""
        if self.queue.remove(held):
            if not self.queue:
                self._pace.restart()
            self._changed()

    def dispatch(self) -> None:
        """Let waiting requests go as far as replicas can take them."""
        while self.queue:
            endpoint = self.pick()
            if endpoint is None:
                self._dispatch_after_rest()
                return
            held = self.queue.take()
            while held is not None and held.request.done():
                held = self.queue.take()
            if held is None:
                self.release(endpoint)
            else:
                self._pace.took(self._loop.time())
                held.request.set_result(endpoint)
        self._pace.restart()

    def rest(self, endpoint: Endpoint, for_s: float = BACK_OFF_S) -> None:
        """Leave a replica alone that is overloaded."""
        endpoint.refused_for_load()
        endpoint.rested_until_s = self._loop.time() + for_s
        self._rest_until_s = max(self._rest_until_s, endpoint.rested_until_s)

    def succeeded(self, endpoint: Endpoint) -> None:
        """It answered a request."""
        endpoint.took()
        if endpoint.health is not HEALTHY:
            self._judge(endpoint, healths.after_success(endpoint.health))

    def erred(self, endpoint: Endpoint) -> None:
        """It failed a request."""
        last = self._open == [endpoint]
        self._judge(endpoint, healths.after_error(endpoint.health, last=last))

    def refused(self, endpoint: Endpoint) -> None:
        """It cannot be reached, or takes nothing."""
        self._judge(endpoint, healths.after_refusal(endpoint.health))

    def probed(self, endpoint: Endpoint, answered: bool) -> None:
        """Its readiness probe was asked."""
        if answered:
            endpoint.ready_since_s = self._loop.time()
        self._judge(endpoint, healths.after_probe(endpoint.health, answered))

    def close(self) -> None:
        """The deployment is gone: its requests wait no longer, its connections close."""
        while (held := self.queue.take()) is not None:
            held.request.cancel()
        for endpoint in self.endpoints.values():
            self._depart(endpoint)
        self._changed()

    def _depart(self, endpoint: Endpoint) -> None:
        endpoint.pool.close()
        if endpoint.in_flight:
            self._departed.add(endpoint)

    def _judge(self, endpoint: Endpoint, health: Health) -> None:
        was_open, was_ejected = endpoint.open, endpoint.health.ejected
        endpoint.health = health
        endpoint.weigh(self._loop.time())
        if endpoint.open != was_open:
            self.reopen()
        if health.ejected and not was_ejected:
            self.on_ejected(self, endpoint)

    def _dispatch_after_rest(self) -> None:
        rest_s = self._rest_until_s - self._loop.time()
        if self._rest_until_s and self._later is None:
            self._later = self._loop.call_later(max(0.0, rest_s), self._dispatch_now)

    def _dispatch_now(self) -> None:
        self._later = None
        self.dispatch()
