"""Passes one request on until a replica has answered it: chooses, asks, asks another, holds.

Nothing is sent to the caller before a replica has answered, and nothing is retried after.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import msgspec

from dragoman_contract.glossaries import Packed
from dragoman_contract.routing import (
    GLOSSARY_MISSING,
    REFUSALS,
    REFUSED_HEADER,
    REPLICA_HEADER,
    TIMEOUT_HEADER,
)
from dragoman_router.errors import (
    NoReplicaError,
    QueueFullError,
    RateLimitedError,
    UnknownDeploymentError,
    UpstreamError,
    UpstreamTimeoutError,
)
from dragoman_router.fleet.backend import Backend, Endpoint, Place
from dragoman_router.fleet.fleet import Fleet
from dragoman_router.fleet.queue import Held
from dragoman_router.fleet.upstream import Connection, ExchangeError, Reply
from dragoman_router.http.attach_glossaries import MOST_BROUGHT, bring
from dragoman_router.metrics import Metrics
from dragoman_router.routing.replicas import split
from dragoman_router.routing.retry import Failure, RetryBudget, may_retry

REFUSED = REFUSED_HEADER.lower().encode()
REPLICA = REPLICA_HEADER.lower().encode()
TIMEOUT = TIMEOUT_HEADER.lower().encode()
LEAST_LEFT_S = 0.05
"""A request with less left is not sent: no replica could answer it."""
WHOLE_SHARE = 0.9
"""A replica that got less than this share of a request's time is not the reason that it was late."""
TIMED_OUT = 504
ANSWER_S = 1.0
"""A replica gives a request up at its deadline; so much later its own word of that has arrived."""
BUSY = (429, 503)
"""What APIs answer with when there is too much to do."""
RETRY_AFTER_HELD_S = 5
"""What a caller is told who waited in vain: a replica takes seconds to minutes to start."""


class _Refusal(msgspec.Struct):
    code: str = ""


class _RefusalBody(msgspec.Struct):
    error: _Refusal


_REFUSAL = msgspec.json.Decoder(_RefusalBody)


@dataclass(slots=True)
class Job:
    """One request on its way.

    Args:
        head: Request line and headers for a replica.
        body: Its body.
        keys: Deployments that may answer.
        caller: Who asks; callers take turns while they are held.
        deadline_s: When it is given up; time in which its deployment has no open replica is added.
        own_limit: Whether its client set that; nothing is added then.
        glossaries: What its head names, for replicas that lack it.
        budget_s: Seconds that it had when it came.
        tried: Replicas that were asked since it was last held.
        broken: Attempts that broke off.
        attempts: All attempts.
        held_s: For how long it was held.
        named: Whether the replica is told its tag.
        brought: How often its glossaries were brought.
    """

    head: bytes
    body: bytes
    keys: tuple[str, ...]
    caller: str
    deadline_s: float
    glossaries: tuple[Packed, ...] = ()
    budget_s: float = 0.0
    tried: list[Endpoint] = field(default_factory=list)
    broken: int = 0
    attempts: int = 0
    held_s: float = 0.0
    own_limit: bool = False
    named: bool = False
    brought: int = 0


@dataclass(slots=True)
class Answered:
    """A replica's answer, whole or begun. `close` it in any case.

    Args:
        reply: The answer.
        backend: The deployment.
        endpoint: The replica.
        connection: Where the rest comes from.
    """

    reply: Reply
    backend: Backend
    endpoint: Endpoint
    connection: Connection

    def close(self) -> None:
        """The request is no longer in flight; a connection whose answer has not ended is closed."""
        self.endpoint.pool.release(self.connection)
        self.backend.release(self.endpoint)


class Proxy:
    """Finds an answer for a request.

    Args:
        fleet: The deployments.
        metrics: Counts.
        chance: Randomness of choices.
    """

    def __init__(self, fleet: Fleet, metrics: Metrics, chance: Random) -> None:
        self._fleet = fleet
        self._metrics = metrics
        self._chance = chance
        self._loop = asyncio.get_running_loop()
        self._budget = RetryBudget(self._loop.time())

    async def answer(self, job: Job) -> Answered:
        """Ask replicas until one answers.

        Raises:
            CapacityError: None could take it, and it could not wait, or not longer.
            UpstreamError: All that were asked failed.
        """
        self._budget.deposit()
        while True:
            backend, endpoint = self._pick(job)
            if endpoint is None:
                endpoint = await self._held(job, backend)
            try:
                found = await self._attempt(job, backend, endpoint)
            except BaseException:
                backend.release(endpoint)
                raise
            if found is not None:
                return found
            backend.release(endpoint)

    async def _attempt(
        self, job: Job, backend: Backend, endpoint: Endpoint, *, brought: bool = False
    ) -> Answered | None:
        """Ask one replica; None where another is to be asked.

        Args:
            job: What is asked.
            backend: The deployment.
            endpoint: The replica.
            brought: Whether it has just got the glossaries that it lacked.
        """
        job.attempts += 1
        left_s = job.deadline_s - self._loop.time()
        if left_s < LEAST_LEFT_S:
            raise self._too_late(backend)
        cut_short = left_s < WHOLE_SHARE * job.budget_s
        head = _telling(job.head, left_s, endpoint.tag if job.named else None)
        try:
            reply, connection = await endpoint.pool.ask(
                head, job.body, job.deadline_s + ANSWER_S, fresh=endpoint.health.errors_in_a_row > 0
            )
        except ExchangeError as error:
            if error.timed_out:
                self._note(backend, endpoint, Failure.TIMED_OUT)
                if cut_short:
                    raise self._too_late(backend, job.held_s) from None
                raise UpstreamTimeoutError("the replica did not answer in time; send less text") from None
            failure = Failure.BROKEN if error.connected else Failure.UNREACHED
            self._again(job, backend, endpoint, failure, str(error))
            return None
        if reply.status in BUSY and (refusal := refusal_of(reply)):
            endpoint.pool.release(connection)
            if refusal == GLOSSARY_MISSING and not brought and await self._brought(job, endpoint):
                job.attempts -= 1  # It goes on where it was.
                return await self._attempt(job, backend, endpoint, brought=True)
            if refusal == "overloaded":
                backend.rest(endpoint)
            rests = refusal in ("overloaded", GLOSSARY_MISSING)
            self._again(job, backend, endpoint, Failure.REFUSED, f"it is {refusal}", rests=rests)
            return None
        if reply.status == TIMED_OUT and cut_short:
            endpoint.pool.release(connection)
            raise self._too_late(backend, job.held_s)
        if reply.status >= 500 and reply.status not in BUSY:
            backend.erred(endpoint)
        else:
            backend.succeeded(endpoint)
        return Answered(reply, backend, endpoint, connection)

    async def _brought(self, job: Job, endpoint: Endpoint) -> bool:
        """Whether a replica has got the glossaries that it lacked.

        Raises:
            UpstreamError: Enough others got them in vain.
        """
        if job.brought >= MOST_BROUGHT:
            raise UpstreamError(
                "the replicas do not hold the glossary that they are brought; their logs may say why"
            )
        job.brought += 1
        return await bring(endpoint.pool, endpoint.replica.address, job.glossaries, job.deadline_s)

    def _pick(self, job: Job) -> tuple[Backend, Endpoint | None]:
        """A deployment and a replica of it; no replica where the request has to wait for that deployment."""
        known = self._fleet.backends
        if len(job.keys) == 1 and (only := known.get(job.keys[0])) is not None:
            return only, None if only.queue else only.pick(job.tried)
        backends = [known[key] for key in job.keys if key in known]
        if not backends:
            raise UnknownDeploymentError("the deployment is gone")
        first = self._share(backends)
        for backend in (first, *(each for each in backends if each is not first)):
            if (
                backend.deployment.weight
                and not backend.queue
                and (found := backend.pick(job.tried)) is not None
            ):
                return backend, found
        return first, None

    def _share(self, backends: Sequence[Backend]) -> Backend:
        weights = [backend.deployment.weight for backend in backends]
        at = split(weights, [backend.open for backend in backends], self._chance.random())
        return backends[at or 0]

    async def _held(self, job: Job, backend: Backend) -> Endpoint:
        """Wait for a replica that can take the request."""
        began_s = self._loop.time()
        place: Place = self._loop.create_future()
        held = Held(job.caller, len(job.body), began_s, place)
        # Busy replicas: the queue is part of the budget. No replica: it is not, for a start takes minutes.
        waking = not backend.open and not job.own_limit
        pushed_out = backend.hold(held, float("inf") if waking else job.deadline_s - began_s)
        if pushed_out is held:
            raise QueueFullError(
                f"{len(backend.queue)} requests wait for {backend.deployment.key} already, as many as can be answered"
                " in time or may wait",
                RETRY_AFTER_HELD_S,
            )
        if pushed_out is not None and not pushed_out.request.done():
            pushed_out.request.set_exception(
                RateLimitedError("too many requests of yours wait, and others want in", RETRY_AFTER_HELD_S)
            )
        age_s = backend.queue.limits.age_s - job.held_s
        if not waking:
            age_s = min(age_s, job.deadline_s - began_s - LEAST_LEFT_S)
        try:
            # Not `asyncio.timeout`: a slot that is granted in the turn of the time-out would belong to no request.
            await asyncio.wait((place,), timeout=max(0.0, age_s))
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.exception() is None:
                backend.release(place.result())
            raise
        finally:
            backend.leave(held)
            waited_s = self._loop.time() - began_s
            job.held_s += waited_s
            if waking:
                job.deadline_s += waited_s
            self._metrics.waited(backend.deployment.key, waited_s)
        if not place.done():
            raise self._too_late(backend, waited_s)
        if place.cancelled():
            raise UnknownDeploymentError("the deployment is gone")
        endpoint = place.result()
        job.tried.clear()
        return endpoint

    @staticmethod
    def _too_late(backend: Backend, waited_s: float = 0.0) -> NoReplicaError:
        return NoReplicaError(
            f"no replica of {backend.deployment.key} could answer the request in its time"
            + (f"; it was queued for {waited_s:.1f} s" if waited_s else ""),
            RETRY_AFTER_HELD_S,
        )

    def _again(
        self,
        job: Job,
        backend: Backend,
        endpoint: Endpoint,
        failure: Failure,
        why: str,
        *,
        rests: bool = False,
    ) -> None:
        """Take note of a failed attempt.

        Raises:
            UpstreamError: No other may follow.
        """
        job.tried.append(endpoint)
        job.broken += failure is Failure.BROKEN
        if not rests:
            self._note(backend, endpoint, failure)
        now_s = self._loop.time()
        if not may_retry(failure, job.broken, self._budget, now_s, job.deadline_s):
            if failure is Failure.REFUSED or now_s >= job.deadline_s:
                raise self._too_late(backend, job.held_s)
            raise UpstreamError(f"{job.attempts} attempts failed, the last one because {why}")

    def _note(self, backend: Backend, endpoint: Endpoint, failure: Failure) -> None:
        self._metrics.failed(backend.deployment.key, failure.value)
        if failure in (Failure.UNREACHED, Failure.REFUSED):
            backend.refused(endpoint)
        else:
            backend.erred(endpoint)


def _telling(head: bytes, left_s: float, tag: str | None) -> bytes:
    """A head with the seconds that are left, and with the replica's tag where it needs it."""
    lines = b"%s: %.3f\r\n" % (TIMEOUT, left_s)
    if tag is not None:
        lines += b"%s: %s\r\n" % (REPLICA, tag.encode())
    return head[:-2] + lines + b"\r\n"


def refusal_of(reply: Reply) -> str:
    """Why a replica did not begin a request; empty where it did not say so.

    By the header, or by the error code in a short body, as pods that do not know the header have it.
    """
    for name, value in reply.headers:
        if name == REFUSED:
            said = value.decode("latin-1")
            return said if said in REFUSALS else ""
    if reply.body is None or len(reply.body) > 4096:
        return ""
    try:
        code = _REFUSAL.decode(reply.body).error.code
    except msgspec.DecodeError:
        return ""
    return code if code in REFUSALS else ""
