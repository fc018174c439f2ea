"""Reads the metrics of engine pods from a Prometheus: one query for all of them."""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import aiohttp

from dragoman_operator.autoscaling.decision import ReplicaSample
from dragoman_operator.autoscaling.sources.engine_metrics import (
    NAMES,
    Reading,
    Value,
    reading,
    replica_sample,
)
from dragoman_operator.autoscaling.sources.reading import Heard, body_of, in_words
from dragoman_operator.errors import MetricsError
from dragoman_operator.observed.engine_pods import EnginePod

ANSWER_LIMIT_BYTES = 64 << 20

LOOK_BACK = "2m"
"""Two scrapes of a pod lie in it where they are a minute apart."""

PodName = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class PodSamples:
    """What was scraped of one pod.

    Attributes:
        sample: The latest, with the rate since the one before it.
        interval_s: Seconds between the two; 0 where there is only one.
    """

    sample: ReplicaSample
    interval_s: float


class Prometheus:
    """One Prometheus, as one bearer of a token sees it.

    Samples carry the time at which the Prometheus scraped them, so that one that no longer scrapes is found out
    even while it answers.

    Args:
        http: The session.
        url: Its address; what stands before an ``@`` in it is sent and never shown.
        token: Bearer token; None sends none.
        timeout_s: Longest wait for an answer. Shorter than a tick.
        clock: Unix seconds.
    """

    def __init__(
        self,
        http: aiohttp.ClientSession,
        url: str,
        token: str | None,
        timeout_s: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._http = http
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._timeout_s = timeout_s
        self._clock = clock
        self._lock = asyncio.Lock()
        self._asked_for: frozenset[str] = frozenset()
        self._asked_at = float("-inf")
        self._answer: dict[PodName, PodSamples] = {}
        self._failure: str | None = None
        self.shown_url = shown(url)

    async def read(self, pods: Iterable[EnginePod], namespaces: frozenset[str]) -> Heard:
        """What it says of the pods that are ready; no failure is raised, it is part of the answer.

        Args:
            pods: One deployment's.
            namespaces: Those of all deployments that ask this Prometheus in this tick: the first that asks
                asks for all.
        """
        async with self._lock:
            old = self._clock() - self._asked_at >= self._timeout_s
            if old or not namespaces <= self._asked_for:
                await self._ask(namespaces)
                self._asked_at, self._asked_for = self._clock(), namespaces
        samples: dict[str, ReplicaSample] = {}
        problems: dict[str, str] = {}
        interval_s = 0.0
        for pod in pods:
            if not pod.ready:
                continue
            found = self._answer.get((pod.namespace, pod.name))
            if found is not None:
                samples[pod.uid] = found.sample
                # The least: a pod that was not scraped for a while shows a gap, and no interval.
                interval_s = min(interval_s or found.interval_s, found.interval_s or interval_s)
            elif self._failure is None:
                problems[pod.name] = (
                    f'no series of vLLM\'s with namespace="{pod.namespace}", pod="{pod.name}": is it scraped?'
                )
        return Heard(samples, problems, self._failure, interval_s)

    async def _ask(self, namespaces: frozenset[str]) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                try:
                    answer = await self._post(query(namespaces))
                except aiohttp.ClientConnectorError:
                    raise
                except aiohttp.ClientConnectionError:
                    # A connection that was kept, of a Prometheus that has been restarted since.
                    answer = await self._post(query(namespaces))
            self._answer, self._failure = pod_samples(answer), None
        except (MetricsError, aiohttp.ClientError, OSError, ValueError) as error:
            # What it said before stays, with its times: it is as good as it is young.
            self._failure = f"{self.shown_url}: {in_words(error, self._timeout_s)}"

    async def _post(self, question: str) -> object:
        # POST, because a query that names many namespaces is too long for an address.
        async with self._http.post(
            f"{self._url}/api/v1/query",
            data={"query": question},
            headers=self._headers,
            allow_redirects=False,
        ) as response:
            return _result(response.status, await body_of(response, ANSWER_LIMIT_BYTES))


def _result(status: int, body: bytes) -> object:
    """The data of an answer; of a page that is none of Prometheus' nothing is repeated.

    Source: https://prometheus.io/docs/prometheus/latest/querying/api/#format-overview
    """
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    if not isinstance(answer, dict) or answer.get("status") not in ("success", "error"):
        raise MetricsError(f"answers {status} and is no Prometheus; is the address right?")
    if answer["status"] == "error" or status != 200:
        raise MetricsError(f"answers {status}: {str(answer.get('error'))[:300]}")
    return answer.get("data")


def shown(url: str) -> str:
    """The address without what may be secret in it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "a Prometheus whose url is none"
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))


def query(namespaces: Iterable[str]) -> str:
    """PromQL for the raw samples of the last minutes, each with the time of its scrape.

    An instant query would give one value with the time of asking: a Prometheus that stopped scraping minutes ago
    would look alive.
    """
    names, spaces = "|".join(map(re.escape, NAMES)), "|".join(sorted(map(re.escape, namespaces)))
    names, spaces = names.replace("\\", "\\\\"), spaces.replace("\\", "\\\\")
    return f'{{__name__=~"{names}",namespace=~"{spaces}",pod!=""}}[{LOOK_BACK}]'


def pod_samples(data: Any) -> dict[PodName, PodSamples]:
    """What the answer's series say, by pod.

    Args:
        data: `data` of the answer: a matrix.

    Raises:
        MetricsError: It is none.
    """
    scrapes: dict[PodName, dict[float, list[Value]]] = {}
    try:
        if data["resultType"] != "matrix":
            raise MetricsError(f"answers with a {data['resultType']} instead of a matrix")
        for series in data["result"]:
            labels = series["metric"]
            pod = scrapes.setdefault((labels["namespace"], labels["pod"]), {})
            for at, value in series["values"]:
                pod.setdefault(float(at), []).append((labels["__name__"], float(value)))
    except (TypeError, KeyError, ValueError) as error:
        raise MetricsError(f"answers in a form that is not Prometheus': {error!r}") from error
    found = {pod: _latest(times) for pod, times in scrapes.items()}
    return {pod: samples for pod, samples in found.items() if samples is not None}


def _latest(scrapes: dict[float, list[Value]]) -> PodSamples | None:
    """The last two scrapes that say something."""
    readings: list[Reading] = []
    for at in sorted(scrapes, reverse=True):
        try:
            readings.append(reading(scrapes[at], at))
        except MetricsError:
            continue
        if len(readings) == 2:
            now, before = readings
            return PodSamples(replica_sample(now, before), math.ceil(now.at - before.at))
    return PodSamples(replica_sample(readings[0], None), 0.0) if readings else None
