"""A request that waits for a replica takes no slot that it does not give back, whichever way its wait ends."""

import asyncio
from random import Random
from typing import Any

import pytest

from dragoman_protocols.errors import NoReplicaError, RequestError, UnknownDeploymentError
from dragoman_router.fleet.backend import Backend, ReplicaEndpoint
from dragoman_router.fleet.connections import Connection, ExchangeError, Reply
from dragoman_router.fleet.fleet import Fleet
from dragoman_router.fleet.queue import QueueLimits
from dragoman_router.http.job import Answered, Job
from dragoman_router.http.proxy import RESPONSE_S, Proxy
from dragoman_router.metrics import Metrics
from dragoman_router.routing.deployments import Deployment, Replica

KEY = "default/one"


class Answers:
    """A pool whose replica answers at once."""

    async def send(self, *_: Any, **__: Any) -> tuple[Reply, Connection]:
        connection = Connection(asyncio.get_running_loop())
        reply = Reply(connection)
        reply.status, reply.body = 200, b"{}"
        return reply, connection

    def release(self, connection: Connection) -> None:
        """Nothing to keep."""

    def close(self) -> None:
        """Nothing to close."""


class Fails(Answers):
    """A pool whose replica fails a request once its time is over."""

    def __init__(self, connected: bool) -> None:
        self._connected = connected

    async def send(self, _head: bytes, _body: bytes, deadline_s: float, **_: Any) -> tuple[Reply, Connection]:
        await asyncio.sleep(max(0.0, deadline_s - RESPONSE_S - asyncio.get_running_loop().time()))
        raise ExchangeError("no connection in time", connected=self._connected)


def full_backend(age_s: float) -> tuple[Proxy, Backend, ReplicaEndpoint]:
    """A deployment of one replica, which has as many requests as it may have."""
    fleet = Fleet(QueueLimits(10, 1000, age_s), Random(1))
    backend = fleet.put(Deployment(KEY, max_in_flight=1))
    fleet.set_replicas(KEY, [Replica("a", "127.0.0.1", 1)])
    taken = backend.pick()
    assert taken is not None
    taken.pool = Answers()  # type: ignore[assignment]
    return Proxy(fleet, Metrics(fleet), Random(1)), backend, taken


def make_job() -> Job:
    return Job(b"", b"", (KEY,), "caller", asyncio.get_running_loop().time() + 60)


async def queued(proxy: Proxy, backend: Backend) -> asyncio.Task[Answered]:
    """A request that waits; one turn of the loop after this, its time is up where `age_s` is 0."""
    request = asyncio.create_task(proxy.answer(make_job()))
    await asyncio.sleep(0)
    assert len(backend.queue) == 1
    return request


def assert_idle(backend: Backend, endpoint: ReplicaEndpoint) -> None:
    assert (backend.in_flight, endpoint.in_flight, len(backend.queue)) == (0, 0, 0)


async def test_a_slot_granted_in_the_turn_of_the_time_out_is_used() -> None:
    proxy, backend, endpoint = full_backend(age_s=0)
    request = await queued(proxy, backend)
    backend.release(endpoint)
    answered = await request
    Proxy.close(answered)
    assert_idle(backend, endpoint)


async def test_a_slot_granted_in_the_turn_of_a_cancellation_is_given_back() -> None:
    proxy, backend, endpoint = full_backend(age_s=60)
    request = await queued(proxy, backend)
    backend.release(endpoint)
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    assert_idle(backend, endpoint)


async def test_a_slot_granted_in_the_turn_of_time_out_and_cancellation_is_given_back() -> None:
    proxy, backend, endpoint = full_backend(age_s=0)
    request = await queued(proxy, backend)
    await asyncio.sleep(0)
    backend.release(endpoint)
    request.cancel()
    with pytest.raises((asyncio.CancelledError, RequestError)):
        await request
    assert_idle(backend, endpoint)


async def test_a_client_that_allows_little_time_pushes_out_no_other() -> None:
    proxy, backend, endpoint = full_backend(age_s=60)
    greedy = [asyncio.create_task(proxy.answer(make_job())) for _ in range(8)]
    await asyncio.sleep(0)
    # One a second is answered: in 30 s all of them, in one second none.
    for second in range(10):
        backend._drain_rate.took(float(second))
    hurried = make_job()
    hurried.caller, hurried.deadline_s = "other", asyncio.get_running_loop().time() + 0.1

    with pytest.raises(NoReplicaError):
        await proxy.answer(hurried)

    assert len(backend.queue) == len(greedy)
    for each in greedy:
        each.cancel()
    await asyncio.gather(*greedy, return_exceptions=True)
    backend.release(endpoint)
    assert_idle(backend, endpoint)


async def test_a_wait_in_vain_ends_with_its_reason() -> None:
    proxy, backend, endpoint = full_backend(age_s=0)
    with pytest.raises(NoReplicaError):
        await proxy.answer(make_job())
    backend.release(endpoint)
    assert_idle(backend, endpoint)


async def test_a_deployment_that_goes_ends_its_waits() -> None:
    proxy, backend, endpoint = full_backend(age_s=60)
    request = await queued(proxy, backend)
    backend.close()
    with pytest.raises(UnknownDeploymentError):
        await request
    backend.release(endpoint)
    assert_idle(backend, endpoint)


@pytest.mark.parametrize("connected", [False, True])
async def test_a_request_whose_time_ends_at_a_replica_that_fails_may_be_sent_again(connected: bool) -> None:
    proxy, backend, endpoint = full_backend(age_s=60)
    backend.release(endpoint)
    endpoint.pool = Fails(connected)  # type: ignore[assignment]
    job = make_job()
    job.deadline_s = asyncio.get_running_loop().time() + 0.2

    with pytest.raises(NoReplicaError) as refused:
        await proxy.answer(job)

    assert refused.value.retry_after_s >= 1
    assert_idle(backend, endpoint)
