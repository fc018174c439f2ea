"""Reads metrics from the source that an object names."""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Callable, Container, Iterable

import aiohttp

from dragoman_kube.client import KubeClient
from dragoman_kube.errors import ClusterError, RefusedError
from dragoman_kube.kinds import SECRET
from dragoman_kube.objects import Key
from dragoman_operator.api.fields import SecretKey
from dragoman_operator.api.v1alpha1 import TranslationDeployment
from dragoman_operator.autoscaling.sources.pods import PodMetrics, SamplesResult
from dragoman_operator.autoscaling.sources.prometheus import Prometheus, redacted
from dragoman_operator.errors import MetricsError
from dragoman_operator.observed.snapshot import EnginePod

TOKEN_MAX_AGE_S = 60.0
"""Maximum age of a cached token."""

PODS = "the pods' own /metrics"


class MetricSources:
    """The pods, and one Prometheus per URL and token.

    Args:
        kube: The API server, for tokens in Secrets.
        prometheus_token: Reads its bearer token; None without authentication.
    """

    def __init__(
        self,
        kube: KubeClient,
        http: aiohttp.ClientSession,
        pods: PodMetrics,
        prometheus_url: str,
        prometheus_token: Callable[[], str | None],
        timeout_s: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._kube = kube
        self._http = http
        self._pods = pods
        self._own_url = prometheus_url
        self._own_token = prometheus_token
        self._timeout_s = timeout_s
        self._clock = clock
        self._prometheis: dict[tuple[str, str | None], Prometheus] = {}
        self._requested: set[tuple[str, str | None]] = set()
        self._tokens: dict[tuple[str, SecretKey], tuple[float, str]] = {}
        self._namespaces: frozenset[str] = frozenset()

    def begin(self, keys: Iterable[Key], uids: Container[str]) -> None:
        """Start of a tick, with the deployments that will read and the pods that exist."""
        self._namespaces = frozenset(key.namespace for key in keys)
        self._pods.keep(uids)
        self._prometheis = {key: self._prometheis[key] for key in self._requested if key in self._prometheis}
        self._requested.clear()

    def named(self, td: TranslationDeployment) -> str:
        """The source that an object names, as text."""
        chosen = td.spec.autoscaling.prometheus if td.spec.autoscaling else None
        return PODS if chosen is None else redacted(chosen.url or self._own_url)

    async def read(self, td: TranslationDeployment, pods: list[EnginePod]) -> SamplesResult:
        """Samples of the pods of one object; errors are part of the result."""
        chosen = td.spec.autoscaling.prometheus if td.spec.autoscaling else None
        if chosen is None:
            return await self._pods.read(pods)
        url = chosen.url or self._own_url
        if not url:
            return SamplesResult(
                failure="autoscaling.prometheus has no url, and the operator has no Prometheus (--prometheus-url)"
            )
        try:
            if chosen.url is None:
                token = self._own_token()
            elif chosen.token_secret_ref is not None:
                token = await self._token(td.namespace, chosen.token_secret_ref)
            else:
                token = None
            source = self._prometheis.get((url, token))
            if source is None:
                source = Prometheus(self._http, url, token, self._timeout_s, self._clock)
                self._prometheis[url, token] = source
        except (MetricsError, ValueError, OSError) as error:
            return SamplesResult(failure=f"{redacted(url)}: {error}")
        self._requested.add((url, token))
        return await source.read(pods, self._namespaces | {td.namespace})

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
