"""Turns on a GPU that several pods share: the engine of one of them is awake at a time.

The pods agree through Redis or Valkey. The pod that has the turn renews it every `RENEW_S`; a turn that is not renewed
ends after `TURN_TTL_S`. The others wait in the order in which they came.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Histogram
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from dragoman_service.errors import StartError
from dragoman_service.metric_definitions import ENGINE_TURN_WAIT_SECONDS
from dragoman_system.command_line import location, redis_url

log = logging.getLogger(__name__)

POLL_S = 0.05
"""Between two attempts of a pod that waits."""
RENEW_S = 0.1
"""Between two renewals, which also show whether others wait."""
TURN_TTL_S = 15.0
"""After this time without a renewal the turn is another pod's. A start keeps the event loop busy for seconds."""
SAFE_S = TURN_TTL_S / 2
"""After this time without an answer of the server the pod that has the turn gives it up."""
TIMEOUT_S = 2.0
"""Of a connection, and of an answer."""
GRACE_S = 3.0
"""A server that has lost its data gives the turn to no other pod for this time: the pod that has it renews it then."""
LOG_EVERY_S = 30.0

WAIT_BUCKETS_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)

_COMMON = """
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local id, ttl, grace = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('SET', KEYS[4], string.format('%.3f', now), 'NX')
redis.call('EXPIRE', KEYS[4], 86400)
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now - ttl)) do
  redis.call('ZREM', KEYS[2], gone)
  redis.call('ZREM', KEYS[3], gone)
end
"""

TAKE = (
    _COMMON
    + """
if redis.call('GET', KEYS[1]) ~= id then
  redis.call('ZADD', KEYS[2], 'NX', now, id)
  redis.call('ZADD', KEYS[3], now, id)
  redis.call('PEXPIRE', KEYS[2], ttl * 2000)
  redis.call('PEXPIRE', KEYS[3], ttl * 2000)
  if now - redis.call('GET', KEYS[4]) < grace or redis.call('EXISTS', KEYS[1]) == 1
    or redis.call('ZRANGE', KEYS[2], 0, 0)[1] ~= id then return 0 end
end
redis.call('SET', KEYS[1], id, 'PX', ttl * 1000)
redis.call('ZREM', KEYS[2], id)
redis.call('ZREM', KEYS[3], id)
return 1
"""
)
"""KEYS: who has the turn; who waits, by arrival; who waits, by the last sign of life; the time of the first call.
ARGV: the pod, the TTL and the grace in seconds. 1 if the pod has the turn."""

RENEW = (
    _COMMON
    + """
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= id then return -1 end
redis.call('SET', KEYS[1], id, 'PX', ttl * 1000)
return redis.call('ZCARD', KEYS[2])
"""
)
"""The number of pods that wait, or -1 if another has the turn. A turn that the server lost is taken again."""

LEAVE = """
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
"""


class Turns:
    """The turn of this pod; used from one event loop.

    Args:
        url: `redis://`, `rediss://`, `valkey://` or `valkeys://` of a server that all pods of the device use.
        device: What they share, such as the UUID of a GPU.
        registry: Has the time of waiting.
    """

    def __init__(self, url: str, device: str, model_name: str, registry: CollectorRegistry) -> None:
        self._server = location(url)
        self._redis = Redis.from_url(
            redis_url(url),
            socket_timeout=TIMEOUT_S,
            socket_connect_timeout=TIMEOUT_S,
            retry=Retry(NoBackoff(), 0),
        )
        self._keys = tuple(
            f"dragoman:turns:{{{device}}}:{name}" for name in ("owner", "waiting", "alive", "since")
        )
        self._id = uuid.uuid4().hex
        self._renewed_s: float | None = None
        self._waiting = 0
        self._order = asyncio.Lock()
        """A renewal that reaches the server after the end of the turn would begin another."""
        self._logged_s = float("-inf")
        self._wait_s = Histogram(
            ENGINE_TURN_WAIT_SECONDS.name,
            ENGINE_TURN_WAIT_SECONDS.help,
            ["model_name"],
            buckets=WAIT_BUCKETS_S,
            registry=registry,
        ).labels(model_name)

    @property
    def is_wanted(self) -> bool:
        """Whether the pod has the turn and must give it back as soon as it can."""
        return self._renewed_s is not None and (
            self._waiting > 0 or time.monotonic() - self._renewed_s > SAFE_S
        )

    async def take(self) -> None:
        """Return once this pod has the turn. While the server does not answer, it waits."""
        began_s = time.monotonic()
        try:
            while not await self._run(TAKE):  # noqa: ASYNC110 - the server sets no event
                await asyncio.sleep(POLL_S)
        except BaseException:
            await self._run(LEAVE)
            raise
        self._renewed_s, self._waiting = time.monotonic(), 0
        self._wait_s.observe(time.monotonic() - began_s)

    async def give_back(self) -> None:
        """End the turn: the device's memory is free."""
        async with self._order:
            self._renewed_s, self._waiting = None, 0
            await self._run(LEAVE)

    async def watch(self) -> None:
        """Renew the turn while this pod has it; runs until it is cancelled."""
        while True:
            await asyncio.sleep(RENEW_S)
            async with self._order:
                if self._renewed_s is None:
                    continue
                waiting = await self._run(RENEW)
                if waiting is not None:
                    # A turn that another pod has is wanted, too: this one was cut off for longer than the TTL.
                    self._renewed_s, self._waiting = time.monotonic(), abs(waiting)

    async def aclose(self) -> None:
        """Give the turn back, and disconnect."""
        await self.give_back()
        await self._redis.aclose()

    async def _run(self, script: str) -> int | None:
        """The answer of a script; None if the server gave none."""
        try:
            arguments: list[str | float] = [*self._keys, self._id, TURN_TTL_S, GRACE_S]
            found = await self._redis.eval(script, len(self._keys), *arguments)
        except (RedisError, OSError, TimeoutError) as error:
            if time.monotonic() - self._logged_s > LOG_EVERY_S:
                self._logged_s = time.monotonic()
                log.warning("turns: %s does not answer: %s", self._server, error)
            return None
        return int(found)


def device_of(uuids: Sequence[str]) -> str:
    """The UUID of the one GPU of this pod.

    Args:
        uuids: `devices.gpu_uuids()`.

    Raises:
        StartError: There is none, or more than one.
    """
    if len(uuids) != 1:
        raise StartError(
            f"--turns-url needs one GPU, and this pod has {len(uuids)}: set --turns-device, or limit it"
        )
    return uuids[0]
