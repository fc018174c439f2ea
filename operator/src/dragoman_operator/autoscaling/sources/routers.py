"""Follows what every router holds and has in flight, as it changes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping

import aiohttp
from pydantic import ValidationError

from dragoman_contract.http import ROUTER_ADMIN_PORT
from dragoman_contract.load import HEARTBEAT_S, LOAD_PATH, WATCH_PARAMETER, RouterLoad
from dragoman_operator.autoscaling.decision import TotalLoad
from dragoman_operator.observed.snapshot import Key

log = logging.getLogger(__name__)

SILENCE_S = 4 * HEARTBEAT_S
"""Without a line for this long a router's load is not known."""
FIRST_BACKOFF_S, LONGEST_BACKOFF_S = 0.2, 5.0
LINE_LIMIT_BYTES = 4 << 20
"""A line of a router that serves ten thousand deployments."""


class Routers:
    """One stream for each router pod.

    Args:
        http: The session.
        on_held: Told which deployments have held requests, each time a router says so.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        http: aiohttp.ClientSession,
        on_held: Callable[[Key], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._http = http
        self._on_held = on_held
        self._clock = clock
        self._heard: dict[tuple[str, str], tuple[float, RouterLoad]] = {}
        self._streams: dict[tuple[str, str], asyncio.Task[None]] = {}

    def follow(self, addresses: Mapping[str, str]) -> None:
        """Follow these routers and no others.

        Args:
            addresses: IP by the uid of a router's pod.
        """
        # By both: a pod whose sandbox was created anew has the uid that it had, and another IP.
        routers = addresses.items()
        for router in self._streams.keys() - routers:
            self._streams.pop(router).cancel()
            self._heard.pop(router, None)
        for router in routers - self._streams.keys():
            self._streams[router] = asyncio.create_task(self._stream(router))

    def load(self, key: Key) -> TotalLoad:
        """What all of them say of one deployment now."""
        oldest = self._clock() - SILENCE_S
        heard = map(self._heard.get, self._streams)
        return total_load((last[1] if last and last[0] >= oldest else None for last in heard), str(key))

    async def aclose(self) -> None:
        """Follow none any more."""
        streams = list(self._streams.values())
        self.follow({})
        await asyncio.gather(*streams, return_exceptions=True)

    async def _stream(self, router: tuple[str, str]) -> None:
        _, address = router
        host = f"[{address}]" if ":" in address else address
        url = f"http://{host}:{ROUTER_ADMIN_PORT}{LOAD_PATH}?{WATCH_PARAMETER}=1"
        backoff_s = FIRST_BACKOFF_S
        while True:
            began = self._clock()
            try:
                await self._lines(router, url)
                problem = "the stream ended"
            except (aiohttp.ClientError, OSError, ValueError) as error:
                problem = "no heartbeat" if isinstance(error, TimeoutError) else type(error).__name__
            except Exception:
                log.exception("unexpected failure while a router was followed")
                problem = "unexpected failure"
            if self._heard.get(router, (0.0, None))[0] >= began:
                backoff_s = FIRST_BACKOFF_S
            log.debug("router at %s: %s; again in %.1f s", address, problem, backoff_s)
            await asyncio.sleep(backoff_s)
            backoff_s = min(LONGEST_BACKOFF_S, backoff_s * 2)

    async def _lines(self, router: tuple[str, str], url: str) -> None:
        """Take in line after line.

        Raises:
            ValueError: A line is too long.
            TimeoutError: Nothing came for `SILENCE_S`.
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=SILENCE_S, sock_read=SILENCE_S)
        async with self._http.get(
            url, timeout=timeout, allow_redirects=False, read_bufsize=LINE_LIMIT_BYTES
        ) as response:
            response.raise_for_status()
            async for line in response.content:
                try:
                    load = RouterLoad.model_validate_json(line)
                except ValidationError:
                    raise ValueError("a line is no load") from None
                self._heard[router] = self._clock(), load
                for name, own in load.deployments.items():
                    namespace, _, deployment = name.partition("/")
                    if own.held and deployment:
                        self._on_held(Key(namespace, deployment))


def total_load(loads: Iterable[RouterLoad | None], name: str) -> TotalLoad:
    """Add up what the routers say.

    Args:
        loads: One for each router; None for one that is silent.
        name: The deployment as `namespace/name`.
    """
    held = in_flight = routers = silent = 0
    oldest_s = 0.0
    for load in loads:
        if load is None:
            silent += 1
            continue
        routers += 1
        if own := load.deployments.get(name):
            held, in_flight = held + own.held, in_flight + own.in_flight
            oldest_s = max(oldest_s, own.oldest_held_s)
    return TotalLoad(held, oldest_s, in_flight, routers, silent)
