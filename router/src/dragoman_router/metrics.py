"""Prometheus metrics. No label holds a text, a key or any other value that a client chooses, but bounded pairs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.core import (
    Metric as Family,
)
from prometheus_client.registry import Collector

from dragoman_contract.metrics import Metric
from dragoman_protocols.served import Need
from dragoman_router.fleet.backend import DURATION_BUCKETS_S
from dragoman_router.fleet.fleet import Fleet
from dragoman_router.metric_definitions import (
    AUDIT_LINES_DROPPED,
    AVAILABLE_REPLICAS,
    BODY_BYTES,
    CHARACTERS,
    CLIENT_DISCONNECTS,
    CONFIG_LAST_RELOAD_SUCCESSFUL,
    CONNECTIONS,
    DRAINING,
    EJECTED_REPLICAS,
    ERRORS,
    FAILED_ATTEMPTS,
    INTERNAL_ERRORS,
    QUEUE_DURATION_SECONDS,
    REQUEST_DURATION_SECONDS,
    REQUESTS,
    REQUESTS_ACTIVE,
    REQUESTS_IN_FLIGHT,
    REQUESTS_QUEUED,
    WATCH_ERRORS,
    WRITE_TIMEOUTS,
)

MAX_PAIRS = 256
"""Language pairs with labels of their own; later ones are counted as `other`. A deployment may serve any pair, and a
client could fill the monitoring system with a series for each."""
MAX_CALLERS = 1000
"""Callers with tokens that have a label of their own: an issuer may have any number. Keys have each."""
OTHER = "other"
AUTO = "auto"
"""The source language of a request that leaves it open."""


class Metrics:
    """The counters."""

    def __init__(self, fleet: Fleet) -> None:
        self.registry = CollectorRegistry()
        self._queue_seconds = Histogram(
            QUEUE_DURATION_SECONDS.name,
            QUEUE_DURATION_SECONDS.help,
            QUEUE_DURATION_SECONDS.labels,
            buckets=DURATION_BUCKETS_S,
            registry=self.registry,
        )
        self._attempts = self._counter(FAILED_ATTEMPTS)
        self._errors = self._counter(ERRORS)
        self.disconnects = self._counter(CLIENT_DISCONNECTS)
        self.internal_errors = self._counter(INTERNAL_ERRORS)
        self.write_timeouts = self._counter(WRITE_TIMEOUTS)
        self.audit_lines_dropped = self._counter(AUDIT_LINES_DROPPED)
        self.watch_errors = self._counter(WATCH_ERRORS)
        self._reloads = self._gauge(CONFIG_LAST_RELOAD_SUCCESSFUL)
        self.draining = self._gauge(DRAINING)
        self.registry.register(_FleetCollector(fleet))
        self._characters = CharacterCounts()
        self.registry.register(self._characters)
        self._known = fleet.backends
        self._failed: set[tuple[str, str]] = set()
        self._refused: set[tuple[str, str, str]] = set()
        fleet.on_removed = self._forget

    def watch(
        self, active: Callable[[], float], body_bytes: Callable[[], float], connections: Callable[[], float]
    ) -> None:
        """Export the state of all requests as gauges, which are read when metrics are scraped."""
        self._gauge(REQUESTS_ACTIVE).set_function(active)
        self._gauge(CONNECTIONS).set_function(connections)
        self._gauge(BODY_BYTES).set_function(body_bytes)

    def failed(self, deployment: str, failure: str) -> None:
        """An attempt at a replica failed."""
        if deployment in self._known:
            self._failed.add((deployment, failure))
            self._attempts.labels(deployment, failure).inc()

    def refused(self, candidates: Sequence[str], code: str, status: int) -> None:
        """The router answered a request with an error.

        Args:
            candidates: Keys of the deployments that could have answered; the error is counted for the first one.
            code: Of the error.
            status: Of the answer.
        """
        deployment = next((each for each in candidates if each in self._known), "")
        labels = deployment, code, str(status)
        self._refused.add(labels)
        self._errors.labels(*labels).inc()

    def translated(
        self, deployment: str, needs: Sequence[Need], key_name: str | None, characters: int
    ) -> None:
        """A request was answered: see `CharacterCounts.add`."""
        if deployment in self._known:
            self._characters.add(deployment, needs, key_name, characters)

    def reloads(self, file: str) -> Callable[[bool], None]:
        """The function to call with the result of each reload of a file; the gauge is 1 from now on."""
        gauge = self._reloads.labels(file)
        gauge.set(1)
        return gauge.set

    def waited(self, deployment: str, seconds: float) -> None:
        """A request left the queue."""
        if deployment in self._known:
            self._queue_seconds.labels(deployment).observe(seconds)

    def _counter(self, metric: Metric) -> Counter:
        return Counter(metric.name, metric.help, metric.labels, registry=self.registry)

    def _gauge(self, metric: Metric) -> Gauge:
        return Gauge(metric.name, metric.help, metric.labels, registry=self.registry)

    def _forget(self, deployment: str) -> None:
        """Remove the series of a deleted deployment."""
        with suppress(KeyError):
            self._queue_seconds.remove(deployment)
        _forget_series(self._failed, self._attempts, deployment)
        _forget_series(self._refused, self._errors, deployment)
        self._characters.forget(deployment)


def _forget_series(series: set[Any], counter: Counter, deployment: str) -> None:
    """Remove the series whose first label is a deployment."""
    for labels in [found for found in series if found[0] == deployment]:
        series.discard(labels)
        counter.remove(*labels)


class CharacterCounts(Collector):
    """Characters that were translated, by deployment, language pair and name of the API key."""

    def __init__(self) -> None:
        self._counts: defaultdict[tuple[str, str, str, str], int] = defaultdict(int)
        self._pairs: set[tuple[str, str]] = set()
        self._callers: set[str] = set()

    def add(self, deployment: str, needs: Sequence[Need], key_name: str | None, characters: int) -> None:
        """Count a request.

        Args:
            deployment: That answered.
            needs: What was requested; each source and target gets its share.
            key_name: Of the key, or of the token's caller, with a slash; None where none is required.
            characters: That are charged. Less than one is not counted: a counter cannot take back what a document that
                failed later was charged for.
        """
        if characters <= 0:
            return
        key_name = self._bounded_caller(key_name or "")
        for pair, count in shares(needs, characters):
            labels = (deployment, *self._bounded(pair), key_name)
            self._counts[labels] += count

    def forget(self, deployment: str) -> None:
        """Remove the series of a deleted deployment."""
        for labels in [found for found in self._counts if found[0] == deployment]:
            del self._counts[labels]

    def collect(self) -> Iterable[Family]:
        """See the class."""
        family = CounterMetricFamily(CHARACTERS.name, CHARACTERS.help, labels=CHARACTERS.labels)
        for labels, count in self._counts.items():
            family.add_metric(labels, count)
        return [family]

    def _bounded(self, pair: tuple[str, str]) -> tuple[str, str]:
        if pair not in self._pairs:
            if len(self._pairs) >= MAX_PAIRS:
                return OTHER, OTHER
            self._pairs.add(pair)
        return pair

    def _bounded_caller(self, name: str) -> str:
        if "/" not in name or name in self._callers:
            return name
        if len(self._callers) >= MAX_CALLERS:
            return OTHER
        self._callers.add(name)
        return name


def shares(needs: Sequence[Need], characters: int) -> Iterable[tuple[tuple[str, str], int]]:
    """Divide the characters of a request among its language pairs, by the length of their texts.

    A source that the request leaves open is `auto`; a request without languages, such as a chat, is `other`.
    """
    pairs = [(need.source or AUTO, target) for need in needs for target in need.targets]
    if len(pairs) < 2:
        return [(pairs[0] if pairs else (OTHER, OTHER), characters)]
    weights = [need.characters for need in needs for _ in need.targets]
    if not any(weights):
        weights = [1] * len(pairs)
    ends = [characters * weight // sum(weights) for weight in accumulate(weights)]
    return [(pair, end - begin) for pair, begin, end in zip(pairs, (0, *ends), ends, strict=False)]


class _FleetCollector(Collector):
    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def collect(self) -> Iterable[Family]:
        """Gauges of every deployment as they are now, and its responses."""
        queued, in_flight, available, ejected = (
            GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
            for metric in (REQUESTS_QUEUED, REQUESTS_IN_FLIGHT, AVAILABLE_REPLICAS, EJECTED_REPLICAS)
        )
        responses = CounterMetricFamily(REQUESTS.name, REQUESTS.help, labels=REQUESTS.labels)
        seconds = HistogramMetricFamily(
            REQUEST_DURATION_SECONDS.name,
            REQUEST_DURATION_SECONDS.help,
            labels=REQUEST_DURATION_SECONDS.labels,
        )
        bounds = [*map(str, map(float, DURATION_BUCKETS_S)), "+Inf"]
        for key, backend in self._fleet.backends.items():
            queued.add_metric([key], backend.queued)
            in_flight.add_metric([key], backend.in_flight)
            available.add_metric([key], backend.open_count)
            ejected.add_metric([key], sum(each.health.ejected for each in backend.endpoints.values()))
            counts = backend.responses
            for (api, status), count in counts.responses.items():
                responses.add_metric([key, api, str(status)], count)
            if counts.responses:
                sums = list(zip(bounds, accumulate(counts.buckets), strict=True))
                seconds.add_metric([key], sums, sum_value=counts.seconds)
        return queued, in_flight, available, ejected, responses, seconds
