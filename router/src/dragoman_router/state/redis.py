"""The connection to Redis or Valkey, and whether it answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, RedisError, ResponseError

from dragoman_router.errors import StateError, StateRefusedError
from dragoman_router.metric_definitions import STATE_ERRORS, STATE_PENDING_SECONDS, STATE_SECONDS, STATE_UP
from dragoman_system.command_line import location, redis_url

log = logging.getLogger(__name__)

Found = TypeVar("Found")

MAX_CONNECTIONS = 64
PING_S = 1.0
"""Interval of attempts while the server does not answer."""
START_S = 10.0
"""Maximum time that a start waits for the server."""
START_RETRY_S = 0.2
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5)


class StateMetrics:
    """How the shared state does."""

    def __init__(self) -> None:
        self.up = Gauge(STATE_UP.name, STATE_UP.help, registry=None)
        self.errors = Counter(STATE_ERRORS.name, STATE_ERRORS.help, STATE_ERRORS.labels, registry=None)
        self.seconds = Histogram(STATE_SECONDS.name, STATE_SECONDS.help, buckets=BUCKETS, registry=None)
        self.pending = Gauge(STATE_PENDING_SECONDS.name, STATE_PENDING_SECONDS.help, registry=None)

    def register(self, registry: CollectorRegistry) -> None:
        """Export them."""
        for metric in (self.up, self.errors, self.seconds, self.pending):
            registry.register(metric)


class StateClient:
    """A pool of connections to one server.

    Nothing is retried here: a reservation that is sent twice counts twice. After a failure no request tries again
    before the server has answered a PING of the background task.

    Args:
        url: `redis://`, `rediss://`, `valkey://` or `valkeys://`.
    """

    def __init__(self, url: str, prefix: str, timeout_s: float, metrics: StateMetrics) -> None:
        self.location = location(url)
        self.prefix, self.metrics = prefix, metrics
        self.redis = Redis.from_pool(
            BlockingConnectionPool.from_url(
                redis_url(url),
                max_connections=MAX_CONNECTIONS,
                timeout=timeout_s,
                socket_timeout=timeout_s,
                socket_connect_timeout=timeout_s,
                retry=Retry(NoBackoff(), 0),
                protocol=2,
                driver_info=None,
            )
        )
        self.answering = asyncio.Event()
        self._away = asyncio.Event()
        self._away.set()
        self._limit_s = 2 * timeout_s
        self._refused: dict[str, str] = {}
        """The error of each operation that fails, so that it is logged once."""
        self._chance = Random()

    @property
    def available(self) -> bool:
        """Whether the server answered the last time."""
        return self.answering.is_set()

    async def connect(self) -> None:
        """Wait for the server; the router starts without it after `START_S`.

        Raises:
            StateRefusedError: It refuses the password, the user or the database.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(START_S):
                while not await self._pinged(starting=True):  # noqa: ASYNC110 - the server sets no event
                    await asyncio.sleep(START_RETRY_S)
        if not self.available:
            log.warning("state is not shared for now: %s does not answer", self.location)
            return
        log.info("state is shared through %s", self.location)
        with suppress(StateError):
            memory = await self.call("info", lambda: self.redis.info("memory"))
            if (policy := memory.get("maxmemory_policy", "noeviction")) != "noeviction":
                log.warning(
                    "Redis may evict usage and glossaries: maxmemory-policy is %s, not noeviction", policy
                )

    async def run(self) -> None:
        """Send PING while the server does not answer, until cancelled."""
        while True:
            await self._away.wait()
            await asyncio.sleep(PING_S * self._chance.uniform(0.8, 1.2))
            await self.redis.connection_pool.disconnect(inuse_connections=False)
            if await self._pinged():
                log.info("%s answers again", self.location)

    async def call(self, operation: str, command: Callable[[], Awaitable[Found]]) -> Found:
        """The answer of one command.

        Raises:
            StateError: There was none; the command may have been executed.
            StateRefusedError: It was refused.
        """
        if not self.available:
            raise StateError(f"{self.location} does not answer")
        began_s = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(self._limit_s):
                found = await command()
        except ResponseError as error:
            self.metrics.errors.labels(operation).inc()
            if self._refused.get(operation) != str(error):
                log.warning("shared state: %s was refused: %s", operation, error)
            self._refused[operation] = str(error)
            raise StateRefusedError(f"{self.location}: {error}") from error
        except (RedisError, OSError, TimeoutError) as error:
            self.metrics.errors.labels(operation).inc()
            reason = f"{self.location}: {type(error).__name__} {error}".strip()
            if self.available:
                log.warning("state is not shared for now: %s", reason)
                self._set_available(False)
            raise StateError(reason) from error
        self._refused.pop(operation, None)
        self.metrics.seconds.observe(asyncio.get_running_loop().time() - began_s)
        return found

    async def aclose(self) -> None:
        """Close all connections."""
        with suppress(RedisError, OSError):
            await self.redis.aclose()
            await self.redis.connection_pool.disconnect()

    async def _pinged(self, starting: bool = False) -> bool:
        try:
            async with asyncio.timeout(self._limit_s):
                await self.redis.ping()
        except (AuthenticationError, ResponseError) as error:
            if starting:
                raise StateRefusedError(
                    f"--state-url: {self.location} refuses this router: {error}"
                ) from error
            return False
        except (RedisError, OSError, TimeoutError):
            return False
        self._set_available(True)
        return True

    def _set_available(self, available: bool) -> None:
        self.metrics.up.set(available)
        if available:
            self._away.clear()
            self.answering.set()
        else:
            self.answering.clear()
            self._away.set()
