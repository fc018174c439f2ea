"""Reads metrics of engine pods from Prometheus, with one query to each, and tokens from Secrets."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import math
import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import aiohttp
from prometheus_client.samples import Sample

from dragoman_kube.client import KubeClient
from dragoman_kube.errors import ClusterError, RefusedError
from dragoman_kube.kinds import SECRET
from dragoman_kube.objects import Key
from dragoman_operator.api.fields import SecretKey
from dragoman_operator.api.scaling import Prometheus as PrometheusSource
from dragoman_operator.errors import MetricsError
from dragoman_operator.observed.snapshot import EnginePod
from dragoman_operator.scraping.engine_metrics import LOAD_NAMES, read_samples
from dragoman_operator.scraping.pods import describe_error, read_body
from dragoman_operator.scraping.values import EngineMetrics, Reading, Scrape

MAX_RESPONSE_BYTES = 8 << 20
"""The series of some 1,500 pods. Parsed, a response takes 22 times its size, and the URL may be any tenant's."""

LOOKBACK = "2m"
"""Contains two scrapes of a pod at an interval of one minute."""

TOKEN_MAX_AGE_S = 60.0
"""Maximum age of a cached token."""


class Server(NamedTuple):
    """One Prometheus, with one token."""

    url: str
    token: str | None
    headers: tuple[tuple[str, str], ...] = ()
    """Further ones of each request."""


PodName = tuple[str, str]
"""Namespace and name."""


class PrometheusServers:
    """Queries each Prometheus once a tick, for all objects that name it as their source of metrics.

    Samples have the time of their scrape, so that a Prometheus that no longer scrapes is detected although it
    responds. While it does not respond its last samples are used, with their times.

    Args:
        kube: The API server, for tokens in Secrets.
        url: The operator's own Prometheus; may be empty. Credentials before an ``@`` are sent and never shown.
        token: Reads its bearer token; None without authentication.
        timeout_s: Timeout of a query. Shorter than a tick.
        headers: Of requests to the operator's own Prometheus, such as a tenant's.
    """

    def __init__(
        self,
        kube: KubeClient,
        http: aiohttp.ClientSession,
        url: str,
        token: Callable[[], str | None],
        timeout_s: float,
        headers: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._kube = kube
        self._http = http
        self._own_url = url
        self._own_token = token
        self._own_headers = tuple((headers or {}).items())
        self._timeout_s = timeout_s
        self._clock = clock
        self._namespaces: dict[str, set[str]] = {}
        self._queries: dict[Server, asyncio.Task[str | None]] = {}
        self._readings: dict[Server, dict[PodName, Reading]] = {}
        self._tokens: dict[tuple[str, SecretKey], tuple[float, str]] = {}

    def begin(self, sources: Iterable[tuple[str, PrometheusSource]]) -> None:
        """Start of a tick, with the namespace and the source of each object that will read.

        A query names the namespaces of objects with its URL alone: any tenant may name a URL.
        """
        self._namespaces = {}
        for namespace, chosen in sources:
            self._namespaces.setdefault(chosen.url or self._own_url, set()).add(namespace)
        self._readings = {server: self._readings.get(server, {}) for server in self._queries}
        self._queries = {}

    def named(self, chosen: PrometheusSource) -> str:
        """The source as text, without credentials."""
        return redacted(chosen.url or self._own_url)

    async def read(self, namespace: str, chosen: PrometheusSource, pods: Iterable[EnginePod]) -> Scrape:
        """Samples of the ready pods of one object, which names this source; errors are part of the result."""
        url = chosen.url or self._own_url
        if not url:
            return Scrape(
                failure="autoscaling.prometheus has no url, and the operator has no Prometheus (--prometheus-url)"
            )
        token = None
        try:
            if chosen.url is None:
                token = self._own_token()
            elif chosen.token_secret_ref is not None:
                token = await self._token(namespace, chosen.token_secret_ref)
        except (MetricsError, ValueError, OSError) as error:
            return Scrape(failure=f"{redacted(url)}: {error}")
        server = Server(url, token, self._own_headers if chosen.url is None else ())
        if server not in self._queries:
            namespaces = self._namespaces.get(url, set()) | {namespace}
            self._queries[server] = asyncio.create_task(self._query(server, namespaces))
        failure = await asyncio.shield(self._queries[server])
        return _result_of(pods, self._readings.get(server, {}), failure)

    async def _query(self, server: Server, namespaces: set[str]) -> str | None:
        """Query one Prometheus; the problem, if there is one."""
        try:
            async with asyncio.timeout(self._timeout_s):
                try:
                    data = await self._post(server, query(namespaces))
                except aiohttp.ClientConnectorError:
                    raise
                except aiohttp.ClientConnectionError:
                    # A keep-alive connection to a Prometheus that was restarted.
                    data = await self._post(server, query(namespaces))
            self._readings[server] = pod_readings(data)
        except (MetricsError, aiohttp.ClientError, OSError, ValueError) as error:
            return f"{redacted(server.url)}: {describe_error(error, self._timeout_s)}"
        return None

    async def _post(self, server: Server, promql: str) -> object:
        # POST, because a query with many namespaces is too long for a URL.
        async with self._http.post(
            f"{server.url.rstrip('/')}/api/v1/query",
            data={"query": promql},
            headers={
                **dict(server.headers),
                **({"Authorization": f"Bearer {server.token}"} if server.token else {}),
            },
            allow_redirects=False,
        ) as response:
            return _data(response.status, await read_body(response, MAX_RESPONSE_BYTES))

    async def _token(self, namespace: str, ref: SecretKey) -> str:
        """A token from a Secret.

        Raises:
            MetricsError: It cannot be read.
        """
        read_at, token = self._tokens.get((namespace, ref), (float("-inf"), ""))
        if self._clock() - read_at < TOKEN_MAX_AGE_S:
            return token
        what = f"the Secret {ref.name} with the token"
        try:
            secret = await self._kube.get(SECRET, Key(namespace, ref.name))
        except RefusedError as error:
            problem = f"{what} may not be read: install the chart with prometheus.readSecrets=true"
            raise MetricsError(problem) from error
        except ClusterError as error:
            raise MetricsError(f"{what} cannot be read: {error.reason}") from error
        if secret is None:
            raise MetricsError(f"{what} does not exist")
        try:
            token = base64.b64decode((secret.get("data") or {})[ref.key], validate=True).decode().strip()
        except KeyError:
            raise MetricsError(f"{what} has no key {ref.key}") from None
        except (binascii.Error, UnicodeDecodeError):
            raise MetricsError(f"{what} has no text in {ref.key}") from None
        self._tokens[namespace, ref] = self._clock(), token
        return token


def _result_of(pods: Iterable[EnginePod], found: Mapping[PodName, Reading], failure: str | None) -> Scrape:
    ready = [pod for pod in pods if pod.ready]
    known = {pod.uid: one for pod in ready if (one := found.get((pod.namespace, pod.name))) is not None}
    problems = {
        pod.name: f'no series of vLLM\'s with namespace="{pod.namespace}", pod="{pod.name}": is it scraped?'
        for pod in ready
        if pod.uid not in known and failure is None
    }
    return Scrape(
        readings=known,
        problems=problems,
        failure=failure,
        # The minimum: a missed scrape is not the interval.
        interval_s=min(
            (math.ceil(now.at - before.at) for now, before in known.values() if before), default=0.0
        ),
    )


def _data(status: int, body: bytes) -> object:
    """The data of a response; the body of another server is not repeated in the error.

    Source: https://prometheus.io/docs/prometheus/latest/querying/api/#format-overview
    """
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    if not isinstance(answer, dict) or answer.get("status") not in ("success", "error"):
        raise MetricsError(f"answers {status} and is not a Prometheus; check the URL")
    if answer["status"] == "error" or status != 200:
        raise MetricsError(f"answers {status}: {str(answer.get('error'))[:300]}")
    return answer.get("data")


def redacted(url: str) -> str:
    """The URL without credentials, query and fragment."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "a Prometheus with an invalid URL"
    if "@" in parts.path + parts.query + parts.fragment:
        return "a Prometheus whose URL is not shown: an @ after the host may belong to a password"
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))


def query(namespaces: Iterable[str]) -> str:
    """PromQL for the raw samples of the last minutes, each with the time of its scrape.

    The values of an instant query have the time of the query: a Prometheus that stopped scraping would not be
    detected.
    """
    names, spaces = "|".join(map(re.escape, LOAD_NAMES)), "|".join(sorted(map(re.escape, namespaces)))
    names, spaces = names.replace("\\", "\\\\"), spaces.replace("\\", "\\\\")
    return f'{{__name__=~"{names}",namespace=~"{spaces}",pod!=""}}[{LOOKBACK}]'


def pod_readings(data: Any) -> dict[PodName, Reading]:
    """The readings in a response, by pod.

    Raises:
        MetricsError: It is malformed.
    """
    scrapes: dict[PodName, dict[float, list[Sample]]] = {}
    try:
        if data["resultType"] != "matrix":
            raise MetricsError(f"answers with a {data['resultType']} instead of a matrix")
        for series in data["result"]:
            labels = series["metric"]
            pod = scrapes.setdefault((labels["namespace"], labels["pod"]), {})
            for at, value in series["values"]:
                pod.setdefault(float(at), []).append(Sample(labels["__name__"], labels, float(value)))
    except (TypeError, KeyError, ValueError) as error:
        raise MetricsError(f"malformed response: {error!r}") from error
    found = {pod: _latest(times) for pod, times in scrapes.items()}
    return {pod: reading for pod, reading in found.items() if reading is not None}


def _latest(scrapes: dict[float, list[Sample]]) -> Reading | None:
    """The last two valid scrapes."""
    readings: list[EngineMetrics] = []
    for at in sorted(scrapes, reverse=True):
        try:
            readings.append(read_samples(scrapes[at], at))
        except MetricsError:
            continue
        if len(readings) == 2:
            break
    return Reading(*readings) if readings else None
