"""Scrapes engine pods."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Container, Iterable
from typing import NamedTuple

import aiohttp

from dragoman_contract.http import ENGINE_PORT, METRICS_PATH
from dragoman_operator.errors import MetricsError
from dragoman_operator.observed.snapshot import EnginePod
from dragoman_operator.scraping.engine_metrics import LOAD_NAMES, read_page
from dragoman_operator.scraping.values import Reading, Scrape

MAX_CONCURRENT = 256
"""Maximum number of concurrent requests."""
MAX_PAGE_BYTES = 8 << 20
"""vLLM's page has about 100 KiB."""


class _Kept(NamedTuple):
    """The last valid reading of a pod, of these metrics; whether the one before was of the same."""

    names: tuple[str, ...]
    reading: Reading
    comparable: bool


class PodMetrics:
    """Scrapes pods concurrently, and keeps the last scrape of each.

    Pods that did not respond last time have separate slots, so that they do not delay the others.

    Args:
        timeout_s: Timeout per pod, and for a slot before that. Less than half a tick.
    """

    def __init__(
        self, http: aiohttp.ClientSession, timeout_s: float, clock: Callable[[], float] = time.time
    ) -> None:
        self._http = http
        self._timeout_s = timeout_s
        self._clock = clock
        self._last: dict[str, _Kept] = {}
        self._unresponsive: set[str] = set()
        self._slots = asyncio.Semaphore(MAX_CONCURRENT)
        self._slots_of_unresponsive = asyncio.Semaphore(MAX_CONCURRENT // 4)

    async def read(self, pods: Iterable[EnginePod], names: tuple[str, ...] = LOAD_NAMES) -> Scrape:
        """Scrape these metrics of the ready pods; errors are part of the result."""
        ready = [pod for pod in pods if pod.ready and pod.address]
        problems = await asyncio.gather(*(self._read(pod, names) for pod in ready))
        known = [(pod.uid, last) for pod in ready if (last := self._last.get(pod.uid))]
        failed = {pod.uid: problem for pod, problem in zip(ready, problems, strict=True) if problem}
        return Scrape(
            readings={uid: last.reading for uid, last in known},
            problems={pod.name: failed[pod.uid] for pod in ready if pod.uid in failed},
            pairs={
                uid: (before, now)
                for uid, (_, (now, before), comparable) in known
                if before is not None and comparable and uid not in failed
            },
        )

    def keep(self, uids: Container[str]) -> None:
        """Forget all other pods."""
        self._last = {uid: last for uid, last in self._last.items() if uid in uids}
        self._unresponsive = {uid for uid in self._unresponsive if uid in uids}

    async def _read(self, pod: EnginePod, names: tuple[str, ...]) -> str | None:
        """Scrape one pod; the problem, if there is one."""
        slots = self._slots_of_unresponsive if pod.uid in self._unresponsive else self._slots
        try:
            async with asyncio.timeout(self._timeout_s):
                await slots.acquire()
        except TimeoutError:
            return "not scraped: too many other pods do not respond"
        try:
            async with asyncio.timeout(self._timeout_s):
                page = await self._page(pod.address)
            now = read_page(page, names, self._clock())
        except Exception as error:
            # One malformed page must not affect the other pods.
            self._unresponsive.add(pod.uid)
            return describe_error(error, self._timeout_s)
        finally:
            slots.release()
        self._unresponsive.discard(pod.uid)
        last = self._last.get(pod.uid)
        reading = Reading(now, last.reading.now if last else None)
        self._last[pod.uid] = _Kept(names, reading, last is not None and last.names == names)
        return None

    async def _page(self, address: str) -> str:
        host = f"[{address}]" if ":" in address else address
        url = f"http://{host}:{ENGINE_PORT}{METRICS_PATH}"
        async with self._http.get(url, allow_redirects=False) as response:
            if response.status != 200:
                raise MetricsError(f"{METRICS_PATH} answers {response.status}")
            return (await read_body(response, MAX_PAGE_BYTES)).decode("utf-8", "replace")


async def read_body(response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    """The body of a response.

    Raises:
        MetricsError: It is longer than `max_bytes`.
    """
    parts, size = [], 0
    async for part in response.content.iter_chunked(1 << 16):
        size += len(part)
        if size > max_bytes:
            raise MetricsError(f"the response has more than {max_bytes >> 20} MiB")
        parts.append(part)
    return b"".join(parts)


def describe_error(error: Exception, timeout_s: float) -> str:
    """Error text of a failed HTTP request."""
    if isinstance(error, TimeoutError):
        return f"no answer within {timeout_s:g} s"
    # The texts of these have the URL, which may have a password.
    if isinstance(error, aiohttp.InvalidURL | aiohttp.NonHttpUrlClientError):
        return "the URL is invalid"
    if isinstance(error, aiohttp.ClientResponseError):
        return f"the response is malformed: {error.message}"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"the certificate is not valid: {error.certificate_error}"
    if isinstance(error, aiohttp.ClientConnectorError):
        number = error.os_error.errno
        return f"cannot be reached: {os.strerror(number) if number else error.os_error}"
    if isinstance(error, aiohttp.ClientConnectionError):
        return "the connection was lost"
    return str(error) or type(error).__name__
