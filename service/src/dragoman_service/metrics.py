"""The pod's own metrics, beside those that the engine keeps in the same registry."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from dragoman_service.languages import Pair
from dragoman_service.lifecycle import Lifecycle, Phase

MOST_PAIRS = 64
"""Pairs that get labels of their own: a deployment may serve every pair there is, and a series per pair
and outcome would let any caller fill the monitoring system. Later ones count as `other`."""

OTHER = "other"

LATENCY_BUCKETS_S = (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


class Metrics:
    """Counts requests by pair and outcome.

    Args:
        registry: Where the metrics are registered.
        lifecycle: Read for the gauges.
        model_name: Label value, as vLLM's own metrics have it.
    """

    def __init__(self, registry: CollectorRegistry, lifecycle: Lifecycle, model_name: str) -> None:
        self._pairs: set[tuple[str, str]] = set()
        self._model_name = model_name
        self._requests = Counter(
            "dragoman_requests",
            "Requests by pair and outcome (ok, or an error's code)",
            ["model_name", "source", "target", "outcome"],
            registry=registry,
        )
        self._latency = Histogram(
            "dragoman_request_seconds",
            "Time from a request's last byte to its answer, of those that were translated",
            ["model_name", "source", "target"],
            buckets=LATENCY_BUCKETS_S,
            registry=registry,
        )
        self._texts = Counter("dragoman_texts", "Texts translated", ["model_name"], registry=registry)
        in_flight = Gauge(
            "dragoman_requests_in_flight",
            "Requests admitted and unfinished",
            ["model_name"],
            registry=registry,
        )
        in_flight.labels(model_name).set_function(lambda: lifecycle.in_flight)
        phase = Gauge("dragoman_phase", "1 for the pod's phase", ["model_name", "phase"], registry=registry)
        for each in Phase:
            phase.labels(model_name, each.value).set_function(
                lambda each=each: float(lifecycle.phase is each)  # type: ignore[misc]
            )
        start = Gauge(
            "dragoman_start_seconds",
            "Time that the start took, or has taken so far",
            ["model_name"],
            registry=registry,
        )
        start.labels(model_name).set_function(lambda: lifecycle.start_s)

    def translated(self, pair: Pair, texts: int, latency_s: float) -> None:
        """Count a request that was answered with translations."""
        source, target = self._labels(pair)
        self._requests.labels(self._model_name, source, target, "ok").inc()
        self._latency.labels(self._model_name, source, target).observe(latency_s)
        self._texts.labels(self._model_name).inc(texts)

    def refused(self, pair: Pair | None, outcome: str) -> None:
        """Count a request that was not.

        Args:
            pair: What it asked for; None where it did not come to that.
            outcome: The code of a `ServiceError`, or `disconnected`.
        """
        source, target = (OTHER, OTHER) if pair is None else self._labels(pair)
        self._requests.labels(self._model_name, source, target, outcome).inc()

    def _labels(self, pair: Pair) -> tuple[str, str]:
        labels = (pair.source.tag, pair.target.tag)
        if labels not in self._pairs:
            if len(self._pairs) >= MOST_PAIRS:
                return OTHER, OTHER
            self._pairs.add(labels)
        return labels
