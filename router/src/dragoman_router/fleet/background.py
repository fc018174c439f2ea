"""Background tasks: probe ejected and unresponsive replicas, confirm drains, close idle connections."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from dragoman_contract.http import READY_PATH
from dragoman_contract.routing import DRAINED_PATH, ROUTER_HEADER
from dragoman_router.fleet.backend import Backend, ReplicaEndpoint
from dragoman_router.fleet.connections import ExchangeError
from dragoman_router.fleet.fleet import Fleet

log = logging.getLogger(__name__)

SWEEP_S = 1.0
PROBE_TIMEOUT_S = 2.0
UNRESPONSIVE_S = 2.0
"""After this time without any response while requests wait, the readiness probe of a replica is sent: it may be
computing, its process may be stopped, or its node lost."""
UNRESPONSIVE_PROBES = 2
"""Probes without any response after which its requests are retried elsewhere."""
CONFIRM_ATTEMPTS = 3
CONFIRM_PAUSE_S = 0.3


class BackgroundTasks:
    """Background tasks, until closed."""

    def __init__(self, fleet: Fleet, router_id: str) -> None:
        self._fleet = fleet
        self._router = router_id
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._examined: set[ReplicaEndpoint] = set()
        fleet.on_ejected = lambda backend, endpoint: self._start(self._probe(backend, endpoint))
        fleet.on_terminating = lambda backend, endpoint: self._start(self._confirm(backend, endpoint))
        self._start(self._sweep())

    async def aclose(self) -> None:
        """End all tasks."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _probe(self, backend: Backend, endpoint: ReplicaEndpoint) -> None:
        """Send an ejected replica's readiness probe until it succeeds, or the replica is removed."""
        log.info("%s: %s ejected", backend.deployment.key, endpoint.label.decode())
        while endpoint.health.ejected and endpoint in backend.endpoints.values():
            await asyncio.sleep(endpoint.health.probe_in_s)
            backend.probed(endpoint, await self._probe_request(endpoint, "GET", READY_PATH) == 200)
        if not endpoint.health.ejected:
            log.info("%s: %s readmitted", backend.deployment.key, endpoint.label.decode())

    async def _examine(self, endpoint: ReplicaEndpoint, backend: Backend | None) -> None:
        """Probe an unresponsive replica; without a response its requests are retried elsewhere.

        Args:
            endpoint: The replica.
            backend: Its deployment; None where the replica was removed from it.
        """
        try:
            for _ in range(UNRESPONSIVE_PROBES):
                if await self._probe_request(endpoint, "GET", READY_PATH) is not None:
                    return
            if not endpoint.pool.unresponsive_s():
                return
            if backend is not None:
                backend.refused(endpoint)
            moved = endpoint.pool.fail_waiting("the replica does not respond")
            log.warning(
                "%s does not respond, its readiness probe neither; %d requests are retried elsewhere",
                endpoint.label.decode(),
                moved,
            )
        finally:
            self._examined.discard(endpoint)

    def _examine_if_unresponsive(self, endpoint: ReplicaEndpoint, backend: Backend | None) -> None:
        if (
            endpoint.in_flight
            and endpoint not in self._examined
            and endpoint.pool.unresponsive_s() >= UNRESPONSIVE_S
        ):
            self._examined.add(endpoint)
            self._start(self._examine(endpoint, backend))

    async def _confirm(self, backend: Backend, endpoint: ReplicaEndpoint) -> None:
        """Confirm to a terminating replica that it gets no new requests; it may not support this, or have ended."""
        for _ in range(CONFIRM_ATTEMPTS):
            status = await self._probe_request(endpoint, "POST", DRAINED_PATH)
            if status is not None:
                log.debug(
                    "%s: %s drain confirmed (%d)", backend.deployment.key, endpoint.label.decode(), status
                )
                return
            await asyncio.sleep(CONFIRM_PAUSE_S)

    async def _probe_request(self, endpoint: ReplicaEndpoint, method: str, path: str) -> int | None:
        head = (
            f"{method} {path} HTTP/1.1\r\nhost: {endpoint.replica.address}\r\n"
            f"{ROUTER_HEADER}: {self._router}\r\ncontent-length: 0\r\n\r\n"
        )
        try:
            async with asyncio.timeout(PROBE_TIMEOUT_S):
                reply, connection = await endpoint.pool.send(
                    head.encode("latin-1", "replace"), b"", float("inf"), fresh=True
                )
        except (TimeoutError, ExchangeError):
            return None
        connection.abort()
        endpoint.pool.release(connection)
        return reply.status

    async def _sweep(self) -> None:
        """Close idle connections, and update the shares of new replicas."""
        while True:
            await asyncio.sleep(SWEEP_S)
            for removed in list(self._fleet.departed):
                removed.pool.sweep()
                self._examine_if_unresponsive(removed, None)
                if not removed.in_flight:
                    self._fleet.departed.discard(removed)
            for backend in list(self._fleet.backends.values()):
                now_s = self._loop.time()
                for endpoint in backend.endpoints.values():
                    if endpoint.weight < 1:
                        endpoint.weigh(now_s)
                    endpoint.pool.sweep()
                    self._examine_if_unresponsive(endpoint, backend)
                await asyncio.sleep(0)  # Ten thousand replicas at once would block requests.
