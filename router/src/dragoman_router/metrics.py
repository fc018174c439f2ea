"""What the router counts, as Prometheus reads it. No label holds a text, a key or anything that a caller chooses."""

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


class Tally:
    """One deployment's answers: what prometheus_client's own counters would count at five times the cost."""

    __slots__ = ("answers", "buckets", "seconds")

    def __init__(self) -> None:
        self.answers: dict[tuple[str, int], int] = {}
        self.buckets = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0

    def count(self, dialect: str, status: int, seconds: float) -> None:
        """One more."""
        kind = dialect, status
        self.answers[kind] = self.answers.get(kind, 0) + 1
        self.buckets[bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds


class Metrics:
    """The counters.

    Args:
        fleet: Whose gauges are read when they are asked for.
        characters: Called for the characters that each key has used, by its name.
    """

    def __init__(self, fleet: Fleet, characters: Callable[[], dict[str, int]]) -> None:
        self.registry = CollectorRegistry()
        self._held = Histogram(
            "dragoman_router_held_seconds",
            "Time that held requests waited for a replica.",
            ("deployment",),
            buckets=BUCKETS,
            registry=self.registry,
        )
        self._attempts = Counter(
            "dragoman_router_failed_attempts",
            "Attempts at a replica that gave no answer, by how far they came.",
            ("deployment", "failure"),
            registry=self.registry,
        )
        self.refused = Counter(
            "dragoman_router_refused", "Requests that the router refused.", ("code",), registry=self.registry
        )
        self.gone = Counter(
            "dragoman_router_clients_gone", "Clients that left before their answer.", registry=self.registry
        )
        self.defects = Counter(
            "dragoman_router_defects",
            "Requests that ended in an exception that the router does not foresee.",
            registry=self.registry,
        )
        self.stalled = Counter(
            "dragoman_router_clients_stalled",
            "Clients disconnected because they did not read their answer.",
            registry=self.registry,
        )
        self.source_errors = Counter(
            "dragoman_router_source_errors", "Watches that broke off.", ("kind",), registry=self.registry
        )
        self._stale = Gauge(
            "dragoman_router_file_stale",
            "1 while a file that is read again on change cannot be used and its last good content holds.",
            ("file",),
            registry=self.registry,
        )
        self.draining = Gauge(
            "dragoman_router_draining", "1 once this router is about to leave.", registry=self.registry
        )
        self.registry.register(_FleetCollector(fleet))
        self.registry.register(_KeyCollector(characters))
        self._tallies: dict[str, Tally] = {}
        self._known = fleet.backends
        self._failed: set[tuple[str, str]] = set()
        fleet.on_removed = self._forget
        self.registry.register(_TallyCollector(self._tallies))

    def watch(self, active: Callable[[], float], body_bytes: Callable[[], float]) -> None:
        """Show what all requests hold as gauges, read when metrics are scraped.

        Args:
            active: Requests without a whole answer: reading, queued, in flight, sending.
            body_bytes: Memory of their bodies.
        """
        for name, about, read in (
            ("active_requests", "Requests from their head to the end of their answer.", active),
            ("body_bytes", "Memory that the bodies of active requests take.", body_bytes),
        ):
            Gauge(f"dragoman_router_{name}", about, registry=self.registry).set_function(read)

    def answered(self, deployment: str, dialect: str, status: int, seconds: float) -> None:
        """A request was answered; those of a deployment that is gone are not counted."""
        if deployment not in self._known:
            return
        tally = self._tallies.get(deployment)
        if tally is None:
            tally = self._tallies[deployment] = Tally()
        tally.count(dialect, status, seconds)

    def failed(self, deployment: str, failure: str) -> None:
        """An attempt gave no answer."""
        if deployment in self._known:
            self._failed.add((deployment, failure))
            self._attempts.labels(deployment, failure).inc()

    def stale(self, file: str) -> Callable[[bool], None]:
        """What is called with whether a file's last good content holds instead of the file; 0 from now on."""
        gauge = self._stale.labels(file)
        return lambda stale: gauge.set(stale)

    def waited(self, deployment: str, seconds: float) -> None:
        """A request was held."""
        if deployment in self._known:
            self._held.labels(deployment).observe(seconds)

    def _forget(self, deployment: str) -> None:
        """Remove the series of a deployment that is gone."""
        self._tallies.pop(deployment, None)
        with suppress(KeyError):
            self._held.remove(deployment)
        for labels in [found for found in self._failed if found[0] == deployment]:
            self._failed.discard(labels)
            self._attempts.remove(*labels)


class _TallyCollector(Collector):
    def __init__(self, tallies: Mapping[str, Tally]) -> None:
        self._tallies = tallies

    def collect(self) -> Iterable[Metric]:
        """The tallies as counters and histograms."""
        answers = CounterMetricFamily(
            "dragoman_router_requests", "Requests answered.", labels=("deployment", "dialect", "status")
        )
        seconds = HistogramMetricFamily(
            "dragoman_router_request_seconds",
            "From the request's head to the last byte of its answer.",
            labels=("deployment",),
        )
        bounds = [*map(str, map(float, BUCKETS)), "+Inf"]
        for key, tally in self._tallies.items():
            for (dialect, status), count in tally.answers.items():
                answers.add_metric([key, dialect, str(status)], count)
            sums = accumulate(tally.buckets)
            seconds.add_metric([key], list(zip(bounds, sums, strict=True)), sum_value=tally.seconds)
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
                "dragoman_router_held", "Requests that wait for a replica.", labels=("deployment",)
            ),
            "in_flight": GaugeMetricFamily(
                "dragoman_router_in_flight", "Requests passed on, not answered.", labels=("deployment",)
            ),
            "open": GaugeMetricFamily(
                "dragoman_router_open_replicas", "Replicas that may get requests.", labels=("deployment",)
            ),
            "ejected": GaugeMetricFamily(
                "dragoman_router_ejected_replicas", "Replicas left alone.", labels=("deployment",)
            ),
        }
        for key, backend in self._fleet.backends.items():
            gauges["held"].add_metric([key], len(backend.queue))
            gauges["in_flight"].add_metric([key], backend.in_flight)
            gauges["open"].add_metric([key], backend.open_count)
            ejected = sum(endpoint.health.ejected for endpoint in backend.endpoints.values())
            gauges["ejected"].add_metric([key], ejected)
        return gauges.values()
