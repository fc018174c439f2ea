"""The operator's own metrics, in a registry of their own."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class Metrics:
    """Counters and gauges of one operator process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.reconciles = Counter(
            "dragoman_operator_reconciles",
            "Looks at an object, by how they ended",
            ["result"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "dragoman_operator_reconcile_seconds",
            "Time of one look at an object",
            registry=self.registry,
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
        )
        self.depth = Gauge(
            "dragoman_operator_queue_depth", "Objects that wait to be looked at", registry=self.registry
        )
        self.leader = Gauge("dragoman_operator_leader", "1 while this process leads", registry=self.registry)
