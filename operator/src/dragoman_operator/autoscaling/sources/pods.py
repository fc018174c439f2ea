"""Scrapes engine pods."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import aiohttp

from dragoman_contract.http import ENGINE_PORT, METRICS_PATH
from dragoman_operator.autoscaling.decision.samples import ReplicaSample
from dragoman_operator.autoscaling.sources.engine_metrics import (
    LOAD_NAMES,
    EngineMetrics,
    read_page,
    replica_sample,
)
from dragoman_operator.errors import MetricsError
from dragoman_operator.observed.snapshot import EnginePod

T = TypeVar("T")

MAX_CONCURRENT = 256
"""Maximum number of concurrent requests."""
MAX_PAGE_BYTES = 8 << 20
"""vLLM's page has about 100 KiB."""


@dataclass(frozen=True, slots=True)
class SamplesResult:
    """Samples of one deployment's pods.

    Attributes:
        samples: The last sample by uid of the pod; it may be old.
        problems: Errors of this scrape, by name of the pod.
        failure: Error of the source as a whole; None without one.
        interval_s: Seconds between two samples of a pod, if longer than between two reads.
    """

    samples: Mapping[str, ReplicaSample] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    failure: str | None = None
    interval_s: float = 0.0


class PodPages:
    """Reads /metrics pages of pods concurrently.

    Pods that did not respond last time have separate slots, so that they do not delay the others.

    Args:
        timeout_s: Timeout per pod, and for a slot before that. Less than half a tick.
    """

    def __init__(self, http: aiohttp.ClientSession, timeout_s: float) -> None:
        self._http = http
        self._timeout_s = timeout_s
        self._unresponsive: set[str] = set()
        self._slots = asyncio.Semaphore(MAX_CONCURRENT)
        self._slots_of_unresponsive = asyncio.Semaphore(MAX_CONCURRENT // 4)

    def keep(self, uids: Container[str]) -> None:
        """Forget all other pods."""
        self._unresponsive = {uid for uid in self._unresponsive if uid in uids}

    async def read(self, uid: str, address: str, parse: Callable[[str], T]) -> T:
        """The result of `parse` for a pod's page.

        Raises:
            MetricsError: The page cannot be read or parsed.
        """
        slots = self._slots_of_unresponsive if uid in self._unresponsive else self._slots
        try:
            async with asyncio.timeout(self._timeout_s):
                await slots.acquire()
        except TimeoutError:
            raise MetricsError("not scraped: too many other pods do not respond") from None
        try:
            async with asyncio.timeout(self._timeout_s):
                page = await self._page(address)
            found = parse(page)
        except Exception as error:
            # One malformed page must not affect the other pods.
            self._unresponsive.add(uid)
            raise MetricsError(describe_error(error, self._timeout_s)) from error
        finally:
            slots.release()
        self._unresponsive.discard(uid)
        return found

    async def _page(self, address: str) -> str:
        host = f"[{address}]" if ":" in address else address
        url = f"http://{host}:{ENGINE_PORT}{METRICS_PATH}"
        async with self._http.get(url, allow_redirects=False) as response:
            if response.status != 200:
                raise MetricsError(f"{METRICS_PATH} answers {response.status}")
            return (await read_body(response, MAX_PAGE_BYTES)).decode("utf-8", "replace")


class PodMetrics:
    """Samples of pods, with rates from the last two readings."""

    def __init__(
        self, http: aiohttp.ClientSession, timeout_s: float, clock: Callable[[], float] = time.time
    ) -> None:
        self._pages = PodPages(http, timeout_s)
        self._clock = clock
        self._last: dict[str, tuple[EngineMetrics, ReplicaSample]] = {}

    async def read(self, pods: Iterable[EnginePod]) -> SamplesResult:
        """Scrape the ready pods concurrently; errors are part of the result."""
        ready = [pod for pod in pods if pod.ready and pod.address]
        problems = await asyncio.gather(*map(self._read, ready))
        return SamplesResult(
            samples={pod.uid: self._last[pod.uid][1] for pod in ready if pod.uid in self._last},
            problems={
                pod.name: problem for pod, problem in zip(ready, problems, strict=True) if problem is not None
            },
        )

    def keep(self, uids: Container[str]) -> None:
        """Forget all other pods."""
        self._last = {uid: last for uid, last in self._last.items() if uid in uids}
        self._pages.keep(uids)

    async def _read(self, pod: EnginePod) -> str | None:
        try:
            now = await self._pages.read(
                pod.uid, pod.address, lambda page: read_page(page, LOAD_NAMES, self._clock())
            )
        except MetricsError as error:
            return str(error)
        before = self._last.get(pod.uid)
        self._last[pod.uid] = now, replica_sample(now, before[0] if before else None)
        return None


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
    if isinstance(error, aiohttp.ClientConnectorError):
        number = error.os_error.errno
        return f"cannot be reached: {os.strerror(number) if number else error.os_error}"
    if isinstance(error, aiohttp.ClientConnectionError):
        return "the connection was lost"
    return str(error) or type(error).__name__
