"""Prometheus metrics. No label holds a text, a key or any other value that a client chooses."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
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

from dragoman_router.fleet.fleet import Fleet

BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class RequestCounts:
    """Responses of one deployment; prometheus_client's own counters would take five times as long."""

    __slots__ = ("answers", "buckets", "seconds")

    def __init__(self) -> None:
        self.answers: dict[tuple[str, int], int] = {}
        self.buckets = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0

    def count(self, api: str, status: int, seconds: float) -> None:
        """One more."""
        kind = api, status
        self.answers[kind] = self.answers.get(kind, 0) + 1
        self.buckets[bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds


class Metrics:
    """The counters.

    Args:
        fleet: Whose gauges are read when metrics are scraped.
        characters: Returns the characters that each key has used, by its name.
    """

    def __init__(self, fleet: Fleet, characters: Callable[[], dict[str, int]]) -> None:
        self.registry = CollectorRegistry()
        self._held = Histogram(
            "dragoman_router_queue_duration_seconds",
            "Time in the queue.",
            ("deployment",),
            buckets=BUCKETS,
            registry=self.registry,
        )
        self._attempts = Counter(
            "dragoman_router_failed_attempts",
            "Failed attempts at a replica, by how far they came.",
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
        self._counts: dict[str, RequestCounts] = {}
        self._known = fleet.backends
        self._failed: set[tuple[str, str]] = set()
        fleet.on_removed = self._forget
        self.registry.register(_RequestCountsCollector(self._counts))

    def watch(self, active: Callable[[], float], body_bytes: Callable[[], float]) -> None:
        """Show what all requests hold as gauges, read when metrics are scraped.

        Args:
            active: Requests without a whole answer: reading, queued, in flight, sending.
            body_bytes: Memory of their bodies.
        """
        for name, about, read in (
            ("requests_active", "Requests from their head to the end of their answer.", active),
            ("body_bytes", "Memory that the bodies of active requests take.", body_bytes),
        ):
            Gauge(f"dragoman_router_{name}", about, registry=self.registry).set_function(read)

    def answered(self, deployment: str, api: str, status: int, seconds: float) -> None:
        """A request was answered; those of a deployment that is gone are not counted."""
        if deployment not in self._known:
            return
        counted = self._counts.get(deployment)
        if counted is None:
            counted = self._counts[deployment] = RequestCounts()
        counted.count(api, status, seconds)

    def failed(self, deployment: str, failure: str) -> None:
        """An attempt gave no answer."""
        if deployment in self._known:
            self._failed.add((deployment, failure))
            self._attempts.labels(deployment, failure).inc()

    def reloads(self, file: str) -> Callable[[bool], None]:
        """The function to call with the result of each reload of a file; the gauge is 1 from now on."""
        gauge = self._reloads.labels(file)
        gauge.set(1)
        return gauge.set

    def waited(self, deployment: str, seconds: float) -> None:
        """A request was held."""
        if deployment in self._known:
            self._held.labels(deployment).observe(seconds)

    def _forget(self, deployment: str) -> None:
        """Remove the series of a deployment that is gone."""
        self._counts.pop(deployment, None)
        with suppress(KeyError):
            self._held.remove(deployment)
        for labels in [found for found in self._failed if found[0] == deployment]:
            self._failed.discard(labels)
            self._attempts.remove(*labels)


class _RequestCountsCollector(Collector):
    def __init__(self, counts: Mapping[str, RequestCounts]) -> None:
        self._counts = counts

    def collect(self) -> Iterable[Metric]:
        """The counts as counters and histograms."""
        answers = CounterMetricFamily(
            "dragoman_router_requests", "Requests answered.", labels=("deployment", "api", "status")
        )
        seconds = HistogramMetricFamily(
            "dragoman_router_request_duration_seconds",
            "From the request's head to the last byte of its answer.",
            labels=("deployment",),
        )
        bounds = [*map(str, map(float, BUCKETS)), "+Inf"]
        for key, counted in self._counts.items():
            for (api, status), count in counted.answers.items():
                answers.add_metric([key, api, str(status)], count)
            sums = accumulate(counted.buckets)
            seconds.add_metric([key], list(zip(bounds, sums, strict=True)), sum_value=counted.seconds)
        return answers, seconds


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
        """Gauges of every deployment as they are now."""
        gauges = {
            "held": GaugeMetricFamily(
                "dragoman_router_requests_queued", "Requests in the queue.", labels=("deployment",)
            ),
            "in_flight": GaugeMetricFamily(
                "dragoman_router_requests_in_flight",
                "Requests sent to a replica and not answered.",
                labels=("deployment",),
            ),
            "open": GaugeMetricFamily(
                "dragoman_router_available_replicas",
                "Replicas that can get requests.",
                labels=("deployment",),
            ),
            "ejected": GaugeMetricFamily(
                "dragoman_router_ejected_replicas", "Ejected replicas.", labels=("deployment",)
            ),
        }
        for key, backend in self._fleet.backends.items():
            gauges["held"].add_metric([key], len(backend.queue))
            gauges["in_flight"].add_metric([key], backend.in_flight)
            gauges["open"].add_metric([key], backend.open_count)
            ejected = sum(endpoint.health.ejected for endpoint in backend.endpoints.values())
            gauges["ejected"].add_metric([key], ejected)
        return gauges.values()
