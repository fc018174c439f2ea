"""Reads the metrics of engine pods from the pods themselves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Container, Iterable
from typing import TypeVar

import aiohttp

from dragoman_contract.http import ENGINE_PORT, METRICS_PATH
from dragoman_operator.autoscaling.decision import ReplicaSample
from dragoman_operator.autoscaling.sources.engine_metrics import (
    Reading,
    parse_exposition,
    reading,
    replica_sample,
)
from dragoman_operator.autoscaling.sources.reading import Heard, body_of, in_words
from dragoman_operator.errors import MetricsError
from dragoman_operator.observed.engine_pods import EnginePod

T = TypeVar("T")

AT_ONCE = 256
"""Pods that are read at the same time."""
PAGE_LIMIT_BYTES = 8 << 20
"""vLLM's page has some 100 KiB."""


class PodPages:
    """Asks pods for their metrics, many at once.

    Pods that did not answer last time wait in a line of their own: however many and slow they are, those that
    answer are read at once.

    Args:
        http: The session; its connections are kept.
        timeout_s: Longest wait for one pod, and for its turn before that. Less than half a tick.
    """

    def __init__(self, http: aiohttp.ClientSession, timeout_s: float) -> None:
        self._http = http
        self._timeout_s = timeout_s
        self._silent: set[str] = set()
        self._line = asyncio.Semaphore(AT_ONCE)
        self._line_of_the_silent = asyncio.Semaphore(AT_ONCE // 4)

    def keep(self, uids: Container[str]) -> None:
        """Forget all other pods."""
        self._silent = {uid for uid in self._silent if uid in uids}

    async def read(self, uid: str, address: str, understand: Callable[[str], T]) -> T:
        """What `understand` makes of a pod's page.

        Raises:
            MetricsError: There is no page, or it was not understood; says why, for a person.
        """
        line = self._line_of_the_silent if uid in self._silent else self._line
        try:
            async with asyncio.timeout(self._timeout_s):
                await line.acquire()
        except TimeoutError:
            raise MetricsError("not asked: too many others do not answer") from None
        try:
            async with asyncio.timeout(self._timeout_s):
                page = await self._page(address)
            found = understand(page)
        except Exception as error:
            # Whatever is on the page of one pod, the others are read.
            self._silent.add(uid)
            raise MetricsError(in_words(error, self._timeout_s)) from error
        finally:
            line.release()
        self._silent.discard(uid)
        return found

    async def _page(self, address: str) -> str:
        host = f"[{address}]" if ":" in address else address
        url = f"http://{host}:{ENGINE_PORT}{METRICS_PATH}"
        async with self._http.get(url, allow_redirects=False) as response:
            if response.status != 200:
                raise MetricsError(f"{METRICS_PATH} answers {response.status}")
            return (await body_of(response, PAGE_LIMIT_BYTES)).decode("utf-8", "replace")


class PodMetrics:
    """Remembers the last reading of each pod, so that two of them tell a rate.

    Args:
        http: The session; its connections are kept.
        timeout_s: Longest wait for one pod, and for its turn before that. Less than half a tick.
        clock: Unix seconds.
    """

    def __init__(
        self, http: aiohttp.ClientSession, timeout_s: float, clock: Callable[[], float] = time.time
    ) -> None:
        self._pages = PodPages(http, timeout_s)
        self._clock = clock
        self._last: dict[str, tuple[Reading, ReplicaSample]] = {}

    async def read(self, pods: Iterable[EnginePod]) -> Heard:
        """Read those that are ready, side by side; no failure is raised, it is part of the answer."""
        ready = [pod for pod in pods if pod.ready and pod.address]
        problems = await asyncio.gather(*map(self._read, ready))
        return Heard(
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
                pod.uid, pod.address, lambda page: reading(parse_exposition(page), self._clock())
            )
        except MetricsError as error:
            return str(error)
        before = self._last.get(pod.uid)
        self._last[pod.uid] = now, replica_sample(now, before[0] if before else None)
        return None
