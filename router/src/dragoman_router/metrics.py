"""Prometheus metrics. No label holds a text, a key or any other value that a client chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import accumulate

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from dragoman_router.fleet.backend import DURATION_BUCKETS_S
from dragoman_router.fleet.fleet import Fleet


class Metrics:
    """The counters.

    Args:
        characters: Returns the characters that each key has used, by its name.
    """

    def __init__(self, fleet: Fleet, characters: Callable[[], dict[str, int]]) -> None:
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
        self.errors = Counter(
            "dragoman_router_errors",
            "Errors that the router itself answered.",
            ("code",),
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
        self.registry.register(_KeyCollector(characters))
        self._known = fleet.backends
        self._failed: set[tuple[str, str]] = set()
        fleet.on_removed = self._forget

    def watch(self, active: Callable[[], float], body_bytes: Callable[[], float]) -> None:
        """Export the state of all requests as gauges, which are read when metrics are scraped."""
        for name, about, read in (
            ("requests_active", "Requests from their head to the end of their response.", active),
            ("body_bytes", "Memory that the bodies of active requests take.", body_bytes),
        ):
            Gauge(f"dragoman_router_{name}", about, registry=self.registry).set_function(read)

    def failed(self, deployment: str, failure: str) -> None:
        """An attempt at a replica failed."""
        if deployment in self._known:
            self._failed.add((deployment, failure))
            self._attempts.labels(deployment, failure).inc()

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
        for labels in [found for found in self._failed if found[0] == deployment]:
            self._failed.discard(labels)
            self._attempts.remove(*labels)


class _KeyCollector(Collector):
    def __init__(self, characters: Callable[[], dict[str, int]]) -> None:
        self._characters = characters

    def collect(self) -> Iterable[Metric]:
        """Characters by key."""
        used = CounterMetricFamily(
            "dragoman_router_characters", "Characters of texts, by key.", labels=("key",)
        )
        for name, characters in self._characters().items():
            used.add_metric([name], characters)
        return [used]


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
