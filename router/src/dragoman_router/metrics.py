"""Prometheus metrics. No label holds a text, a key or any other value that a client chooses, but bounded pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from dragoman_protocols.calls import Need
from dragoman_router.fleet.backend import DURATION_BUCKETS_S
from dragoman_router.fleet.fleet import Fleet

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
            "dragoman_router_queue_duration_seconds",
            "Time in the queue.",
            ("deployment",),
            buckets=DURATION_BUCKETS_S,
            registry=self.registry,
        )
        self._attempts = Counter(
            "dragoman_router_failed_attempts",
            "Failed attempts at a replica, by how far they progressed.",
            ("deployment", "failure"),
            registry=self.registry,
        )
        self._errors = Counter(
            "dragoman_router_errors",
            "Errors that the router itself answered.",
            ("deployment", "code", "status"),
            registry=self.registry,
        )
        self.disconnects = Counter(
            "dragoman_router_client_disconnects",
            "Clients that disconnected before their response.",
            registry=self.registry,
        )
        self.internal_errors = Counter(
            "dragoman_router_internal_errors",
            "Requests that ended in an exception that the router does not foresee.",
            registry=self.registry,
        )
        self.write_timeouts = Counter(
            "dragoman_router_write_timeouts",
            "Clients disconnected because they did not read their response.",
            registry=self.registry,
        )
        self.audit_lines_dropped = Counter(
            "dragoman_router_audit_lines_dropped",
            "Lines of the audit log that were not written, because standard output is not read.",
            registry=self.registry,
        )
        self.watch_errors = Counter(
            "dragoman_router_watch_errors", "Watches that failed.", ("kind",), registry=self.registry
        )
        self._reloads = Gauge(
            "dragoman_router_config_last_reload_successful",
            "0 while a file cannot be used as it is now, and its previous content stays in use.",
            ("file",),
            registry=self.registry,
        )
        self.draining = Gauge(
            "dragoman_router_draining", "1 while this router drains.", registry=self.registry
        )
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
        for name, about, read in (
            ("requests_active", "Requests from their head to the end of their response.", active),
            ("connections", "Connections of clients.", connections),
            ("body_bytes", "Memory that the bodies of active requests take.", body_bytes),
        ):
            Gauge(f"dragoman_router_{name}", about, registry=self.registry).set_function(read)

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
        self._counts: dict[tuple[str, str, str, str], int] = {}
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
            self._counts[labels] = self._counts.get(labels, 0) + count

    def forget(self, deployment: str) -> None:
        """Remove the series of a deleted deployment."""
        self._counts = {labels: count for labels, count in self._counts.items() if labels[0] != deployment}

    def collect(self) -> Iterable[Metric]:
        """See the class."""
        family = CounterMetricFamily(
            "dragoman_router_characters",
            "Characters of texts that were translated, times their targets.",
            labels=("deployment", "source", "target", "key"),
        )
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


def shares(needs: Sequence[Need], characters: int) -> Iterator[tuple[tuple[str, str], int]]:
    """Divide the characters of a request among its language pairs, by the length of their texts.

    A source that the request leaves open is `auto`; a request without languages, such as a chat, is `other`.
    """
    pairs = [(need.source or AUTO, target) for need in needs for target in need.targets]
    if len(pairs) < 2:
        yield pairs[0] if pairs else (OTHER, OTHER), characters
        return
    weights = [need.characters for need in needs for _ in need.targets]
    if not any(weights):
        weights = [1] * len(pairs)
    ends = [characters * weight // sum(weights) for weight in accumulate(weights)]
    for pair, begin, end in zip(pairs, (0, *ends), ends, strict=False):
        yield pair, end - begin


class _FleetCollector(Collector):
    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def collect(self) -> Iterable[Metric]:
        """Gauges of every deployment as they are now, and its responses."""

        def gauge(name: str, about: str) -> GaugeMetricFamily:
            return GaugeMetricFamily(f"dragoman_router_{name}", about, labels=("deployment",))

        queued = gauge("requests_queued", "Requests in the queue.")
        in_flight = gauge("requests_in_flight", "Requests sent to a replica and not answered.")
        available = gauge("available_replicas", "Replicas that can get requests.")
        ejected = gauge("ejected_replicas", "Ejected replicas.")
        responses = CounterMetricFamily(
            "dragoman_router_requests", "Requests answered.", labels=("deployment", "api", "status")
        )
        seconds = HistogramMetricFamily(
            "dragoman_router_request_duration_seconds",
            "From the request's head to the last byte of its response.",
            labels=("deployment",),
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
