"""Streams of load reports from the routers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable

import aiohttp
from pydantic import ValidationError

from dragoman_contract.http import ROUTER_ADMIN_PORT
from dragoman_contract.reports import HEARTBEAT_S, LOAD_PATH, WATCH_PARAMETER, RouterLoad
from dragoman_kube.objects import Key, uid_of
from dragoman_operator.observed.snapshot import Manifest
from dragoman_operator.scraping.values import TotalLoad

log = logging.getLogger(__name__)

REPORT_TIMEOUT_S = 4 * HEARTBEAT_S
"""A router without a report for this long counts as not reporting."""
FIRST_BACKOFF_S, MAX_BACKOFF_S = 0.2, 5.0
MAX_LINE_BYTES = 4 << 20
"""A report with ten thousand deployments fits."""


class Routers:
    """One stream for each router pod.

    Args:
        on_queued: Called for each deployment with queued requests in a report.
    """

    def __init__(
        self,
        http: aiohttp.ClientSession,
        on_queued: Callable[[Key], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._http = http
        self._on_queued = on_queued
        self._clock = clock
        self._reports: dict[tuple[str, str], tuple[float, RouterLoad]] = {}
        self._streams: dict[tuple[str, str], asyncio.Task[None]] = {}

    def follow(self, pods: Iterable[Manifest]) -> None:
        """Follow the routers among these pods that run, whether ready or not, and no others.

        One that drains may still have queued requests.
        """
        # By both: a pod with a new sandbox has the same uid and another IP.
        running = [pod for pod in pods if (pod.get("status") or {}).get("phase") == "Running"]
        routers = {(uid_of(pod), pod["status"]["podIP"]) for pod in running if pod["status"].get("podIP")}
        for router in self._streams.keys() - routers:
            self._streams.pop(router).cancel()
            self._reports.pop(router, None)
        for router in routers - self._streams.keys():
            self._streams[router] = asyncio.create_task(self._stream(router))

    def load(self, key: Key) -> TotalLoad:
        """The current load of one deployment."""
        oldest = self._clock() - REPORT_TIMEOUT_S
        reports = map(self._reports.get, self._streams)
        return total_load((last[1] if last and last[0] >= oldest else None for last in reports), str(key))

    async def aclose(self) -> None:
        """Stop all streams."""
        streams = list(self._streams.values())
        self.follow(())
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
                log.exception("unexpected error while following a router")
                problem = "unexpected error"
            if self._reports.get(router, (0.0, None))[0] >= began:
                backoff_s = FIRST_BACKOFF_S
            log.debug("router at %s: %s; reconnecting in %.1f s", address, problem, backoff_s)
            await asyncio.sleep(backoff_s)
            backoff_s = min(MAX_BACKOFF_S, backoff_s * 2)

    async def _lines(self, router: tuple[str, str], url: str) -> None:
        """Read reports until the stream ends.

        Raises:
            ValueError: A line is too long.
            TimeoutError: No line for `REPORT_TIMEOUT_S`.
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=REPORT_TIMEOUT_S, sock_read=REPORT_TIMEOUT_S)
        async with self._http.get(
            url, timeout=timeout, allow_redirects=False, read_bufsize=MAX_LINE_BYTES
        ) as response:
            response.raise_for_status()
            async for line in response.content:
                try:
                    load = RouterLoad.model_validate_json(line)
                except ValidationError:
                    raise ValueError("a line is not a load report") from None
                self._reports[router] = self._clock(), load
                for name, own in load.deployments.items():
                    namespace, _, deployment = name.partition("/")
                    if own.queued and deployment:
                        self._on_queued(Key(namespace, deployment))


def total_load(loads: Iterable[RouterLoad | None], name: str) -> TotalLoad:
    """Sum the reports of the routers.

    None stands for a router that does not report; `name` is ``namespace/name``.
    """
    queued = in_flight = not_reporting = 0
    for load in loads:
        if load is None:
            not_reporting += 1
        elif own := load.deployments.get(name):
            queued, in_flight = queued + own.queued, in_flight + own.in_flight
    return TotalLoad(queued, in_flight, not_reporting)
