"""Forwards a request: writes its head, chooses a replica, sends, retries, queues.

Nothing is sent to the client before a replica has responded; nothing is retried afterwards.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from random import Random

from dragoman_contract.routing import (
    CHARACTERS_LEFT_HEADER,
    DEPLOYMENT_HEADER,
    GLOSSARIES_HEADER,
    GLOSSARY_MISSING,
    REFUSALS,
    REFUSED_HEADER,
    REPLICA_HEADER,
    ROUTER_HEADER,
    TIMEOUT_HEADER,
)
from dragoman_protocols.errors import (
    NoReplicaError,
    QueueFullError,
    RateLimitedError,
    UnknownDeploymentError,
    UpstreamError,
    UpstreamTimeoutError,
)
from dragoman_protocols.glossaries.packed import Packed, named
from dragoman_protocols.keys import MARKING_HEADERS, SECRET_HEADERS, split_query
from dragoman_router.fleet.backend import Backend, ReplicaEndpoint, SlotFuture
from dragoman_router.fleet.connections import ExchangeError, Reply
from dragoman_router.fleet.fleet import Fleet
from dragoman_router.fleet.queue import QueuedRequest
from dragoman_router.http.attach_glossaries import MAX_ATTACHMENTS, attach
from dragoman_router.http.job import Answered, Job
from dragoman_router.metrics import Metrics
from dragoman_router.request import RoutedRequest
from dragoman_router.routing.placement import DOCUMENT, Placement
from dragoman_router.routing.replicas import split
from dragoman_router.routing.retry import Failure, RetryBudget, may_retry

REFUSED = REFUSED_HEADER.lower().encode()
REPLICA = REPLICA_HEADER.lower().encode()
TIMEOUT = TIMEOUT_HEADER.lower().encode()
FORWARDED_FOR = b"x-forwarded-for"
MIN_REMAINING_S = 0.05
"""A request with less time is not sent: no replica could answer it."""
FULL_BUDGET_RATIO = 0.9
"""A replica that got less than this share of the request's time did not cause its timeout."""
TIMED_OUT = 504
RESPONSE_S = 1.0
"""A replica ends a request at its deadline; its error arrives within this time."""
HOP_BY_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te"}
    | {b"trailer", b"transfer-encoding", b"upgrade"}
)
"""RFC 9110 section 7.6.1: headers of one connection, which are not forwarded."""
OURS = frozenset(
    name.lower().encode()
    for name in (
        *(CHARACTERS_LEFT_HEADER, DEPLOYMENT_HEADER, GLOSSARIES_HEADER),
        *(REPLICA_HEADER, ROUTER_HEADER, TIMEOUT_HEADER),
    )
) | {
    b"content-length",
    b"expect",
    b"traceparent",
    FORWARDED_FOR,
}
"""Headers that the router writes itself."""
DROPPED_HEADERS = HOP_BY_HOP | OURS | SECRET_HEADERS

FORM = re.compile(rb"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_NOT_ZERO = 1 << 64 | 1
"""Neither the trace's id nor the span's may be all zeros."""

BUSY = (429, 503)
"""Statuses of the APIs for overload."""
RETRY_AFTER_QUEUED_S = 5
"""`Retry-After` after a timeout in the queue: a replica takes seconds to minutes to start."""


class HeadWriter:
    """Writes the heads of forwarded requests, without credentials: replicas check none."""

    def __init__(self, router_id: str, chance: Random) -> None:
        self._router = b"x-dragoman-router: " + router_id.encode("ascii", "replace")
        self._chance = chance

    def write(
        self,
        request: RoutedRequest,
        placement: Placement,
        glossaries: tuple[Packed, ...] = (),
        characters_left: int | None = None,
    ) -> bytes:
        """The request line and headers for a replica.

        Raises:
            MalformedRequestError: The query may have a key, and has too many fields.
        """
        # llhttp lets neither blanks nor control characters into a target, nor line ends into a header.
        target = request.raw_path
        if request.query and (query := split_query(request.query)[1]):
            target += b"?" + query
        header, dropped = request.header, self._dropped(request)
        lines = [b"%b %b HTTP/1.1" % (request.method.encode(), target)]
        lines += [name + b": " for name in MARKING_HEADERS if header(name) is not None]
        lines += [name + b": " + value for name, value in request.headers if name not in dropped]
        lines.append(b"traceparent: " + traceparent(header(b"traceparent"), self._chance))
        hops = [request.peer.encode()]
        if header(FORWARDED_FOR) is not None:
            hops[:0] = [value for name, value in request.headers if name == FORWARDED_FOR]
        lines.append(b"x-forwarded-for: " + b", ".join(hops))
        if placement.reason != DOCUMENT:
            lines.append(self._router)
        if characters_left is not None:
            lines.append(f"{CHARACTERS_LEFT_HEADER}: {characters_left}".encode())
        if glossaries:
            lines.append(f"{GLOSSARIES_HEADER}: {named(glossaries)}".encode())
        if request.body or request.method not in ("GET", "HEAD", "DELETE"):
            lines.append(b"content-length: %d" % len(request.body))
        lines.append(b"\r\n")
        return b"\r\n".join(lines)

    @staticmethod
    def _dropped(request: RoutedRequest) -> frozenset[bytes]:
        dropped = DROPPED_HEADERS
        connection = request.header(b"connection")
        if connection is not None and connection.lower() not in (b"keep-alive", b"close"):
            dropped |= {each.strip().lower() for each in connection.split(b",")}
        return dropped


def traceparent(given: bytes | None, chance: Random) -> bytes:
    """The W3C trace context to forward (https://www.w3.org/TR/trace-context/)."""
    if given is not None and FORM.fullmatch(given):
        return given
    ids = (chance.getrandbits(192) | _NOT_ZERO).to_bytes(24, "big").hex()
    return f"00-{ids[:32]}-{ids[32:]}-00".encode()


class Proxy:
    """Forwards requests."""

    def __init__(self, fleet: Fleet, metrics: Metrics, chance: Random) -> None:
        self._fleet = fleet
        self._metrics = metrics
        self._chance = chance
        self._loop = asyncio.get_running_loop()
        self._requests = 0
        self._budget = RetryBudget(self._loop.time())

    async def answer(self, job: Job) -> Answered:
        """Send the request to replicas until one responds.

        Raises:
            CapacityError: None had capacity, and the request could not be queued, or not longer.
            UpstreamError: All attempts failed.
        """
        self._requests += 1
        while True:
            backend, endpoint = self._pick(job)
            if endpoint is None:
                endpoint = await self._wait_in_queue(job, backend)
            try:
                found = await self._attempt(job, backend, endpoint)
            except BaseException:
                backend.release(endpoint)
                raise
            if found is not None:
                return found
            backend.release(endpoint)

    @staticmethod
    def close(answered: Answered) -> None:
        """The request is no longer in flight; a connection whose response has not ended is closed."""
        answered.endpoint.pool.release(answered.connection)
        answered.backend.release(answered.endpoint)

    async def _attempt(
        self, job: Job, backend: Backend, endpoint: ReplicaEndpoint, *, attached: bool = False
    ) -> Answered | None:
        """Send the request to one replica; None where another is to be tried."""
        job.attempts += 1
        left_s = job.deadline_s - self._loop.time()
        if left_s < MIN_REMAINING_S:
            raise self._too_late(backend)
        cut_short = left_s < FULL_BUDGET_RATIO * job.budget_s
        head = _with_timeout(job.head, left_s, endpoint.tag if job.sends_tag else None)
        try:
            reply, connection = await endpoint.pool.send(
                head, job.body, job.deadline_s + RESPONSE_S, fresh=endpoint.health.errors_in_a_row > 0
            )
        except ExchangeError as error:
            if error.timed_out:
                self._count_failure(backend, endpoint, Failure.TIMED_OUT)
                if cut_short:
                    raise self._too_late(backend, job.queued_s) from None
                raise UpstreamTimeoutError("the replica did not answer in time; send less text") from None
            failure = Failure.CONNECTION_LOST if error.connected else Failure.CONNECT_FAILED
            self._record_failure(job, backend, endpoint, failure, str(error))
            return None
        if reply.status in BUSY and (refusal := refusal_of(reply)):
            endpoint.pool.release(connection)
            if refusal == GLOSSARY_MISSING and not attached and await self._attach(job, endpoint):
                job.attempts -= 1  # The same attempt continues.
                return await self._attempt(job, backend, endpoint, attached=True)
            if refusal == "overloaded":
                backend.back_off(endpoint)
            healthy = refusal in ("overloaded", GLOSSARY_MISSING)
            self._record_failure(job, backend, endpoint, Failure.REFUSED, f"it is {refusal}", healthy=healthy)
            return None
        if reply.status == TIMED_OUT and cut_short:
            endpoint.pool.release(connection)
            raise self._too_late(backend, job.queued_s)
        if reply.status >= 500 and reply.status not in BUSY:
            backend.erred(endpoint)
        else:
            backend.succeeded(endpoint)
        return Answered(reply, backend, endpoint, connection)

    async def _attach(self, job: Job, endpoint: ReplicaEndpoint) -> bool:
        """Attach glossaries; whether the replica accepted them.

        Raises:
            UpstreamError: They were attached to enough others without effect.
        """
        if job.attached >= MAX_ATTACHMENTS:
            raise UpstreamError(
                "the replicas do not keep the glossary that is attached; their logs may have the reason"
            )
        job.attached += 1
        return await attach(endpoint.pool, endpoint.replica.address, job.glossaries, job.deadline_s)

    def _pick(self, job: Job) -> tuple[Backend, ReplicaEndpoint | None]:
        """A deployment and a replica of it; no replica where the request has to be queued."""
        known = self._fleet.backends
        if len(job.keys) == 1 and (only := known.get(job.keys[0])) is not None:
            return only, None if only.queued else only.pick(job.tried)
        backends = [known[key] for key in job.keys if key in known]
        if not backends:
            raise UnknownDeploymentError("the deployment was deleted")
        first = self._share(backends)
        for backend in (first, *(each for each in backends if each is not first)):
            if (
                backend.deployment.weight
                and not backend.queued
                and (found := backend.pick(job.tried)) is not None
            ):
                return backend, found
        return first, None

    def _share(self, backends: Sequence[Backend]) -> Backend:
        weights = [backend.deployment.weight for backend in backends]
        at = split(weights, [backend.open for backend in backends], self._chance.random())
        return backends[at or 0]

    async def _wait_in_queue(self, job: Job, backend: Backend) -> ReplicaEndpoint:
        """Wait for a replica with capacity."""
        began_s = self._loop.time()
        slot: SlotFuture = self._loop.create_future()
        queued = QueuedRequest(job.caller, len(job.body), began_s, slot)
        # With busy replicas the queue is part of the budget. Without any it is not, because a start takes minutes.
        waking = not backend.open and not job.own_limit
        evicted = backend.enqueue(queued, float("inf") if waking else job.deadline_s - began_s)
        if evicted is queued:
            raise QueueFullError(
                f"{backend.queued} requests are queued for {backend.deployment.key} already, as many as can be answered"
                " in time or may be queued",
                RETRY_AFTER_QUEUED_S,
            )
        if evicted is not None and not evicted.request.done():
            evicted.request.set_exception(
                RateLimitedError("too many queued requests of this client", RETRY_AFTER_QUEUED_S)
            )
        age_s = backend.queue.limits.age_s - job.queued_s
        if not waking:
            age_s = min(age_s, job.deadline_s - began_s - MIN_REMAINING_S)
        try:
            # Not `asyncio.timeout`: a slot that is granted in the turn of the timeout would belong to no request.
            await asyncio.wait((slot,), timeout=max(0.0, age_s))
        except asyncio.CancelledError:
            if slot.done() and not slot.cancelled() and slot.exception() is None:
                backend.release(slot.result())
            raise
        finally:
            backend.dequeue(queued)
            waited_s = self._loop.time() - began_s
            job.queued_s += waited_s
            if waking:
                job.deadline_s += waited_s
            self._metrics.waited(backend.deployment.key, waited_s)
        if not slot.done():
            raise self._too_late(backend, waited_s)
        if slot.cancelled():
            raise UnknownDeploymentError("the deployment was deleted")
        endpoint = slot.result()
        job.tried.clear()
        return endpoint

    @staticmethod
    def _too_late(backend: Backend, waited_s: float = 0.0) -> NoReplicaError:
        return NoReplicaError(
            f"no replica of {backend.deployment.key} could answer the request in its time"
            + (f"; it was queued for {waited_s:.1f} s" if waited_s else ""),
            RETRY_AFTER_QUEUED_S,
        )

    def _record_failure(
        self,
        job: Job,
        backend: Backend,
        endpoint: ReplicaEndpoint,
        failure: Failure,
        why: str,
        *,
        healthy: bool = False,
    ) -> None:
        """Record a failed attempt.

        Raises:
            UpstreamError: No retry may follow.
        """
        job.tried.append(endpoint)
        job.broken += failure is Failure.CONNECTION_LOST
        if not healthy:
            self._count_failure(backend, endpoint, failure)
        now_s = self._loop.time()
        if not may_retry(failure, job.broken, self._budget, self._requests, now_s, job.deadline_s):
            if failure is Failure.REFUSED or now_s >= job.deadline_s:
                raise self._too_late(backend, job.queued_s)
            raise UpstreamError(f"{job.attempts} attempts failed, the last one because {why}")

    def _count_failure(self, backend: Backend, endpoint: ReplicaEndpoint, failure: Failure) -> None:
        self._metrics.failed(backend.deployment.key, failure.value)
        if failure in (Failure.CONNECT_FAILED, Failure.REFUSED):
            backend.refused(endpoint)
        else:
            backend.erred(endpoint)


def _with_timeout(head: bytes, left_s: float, tag: str | None) -> bytes:
    """The head with the remaining seconds, and with the replica's tag where it needs it."""
    lines = b"%s: %.3f\r\n" % (TIMEOUT, left_s)
    if tag is not None:
        lines += b"%s: %s\r\n" % (REPLICA, tag.encode())
    return head[:-2] + lines + b"\r\n"


def refusal_of(reply: Reply) -> str:
    """The reason for which a replica did not start a request; empty where it gave none."""
    for name, value in reply.headers:
        if name == REFUSED:
            reason = value.decode("latin-1")
            return reason if reason in REFUSALS else ""
    return ""
