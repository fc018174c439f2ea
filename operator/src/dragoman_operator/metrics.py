"""The operator's own metrics, in a registry of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dragoman_operator.autoscaling.decision import TotalLoad
from dragoman_operator.autoscaling.manifests import HELD_METRIC
from dragoman_operator.autoscaling.status import Scaled
from dragoman_operator.observed.snapshot import Key

OWNER = ("deployment_namespace", "deployment")
"""Labels: not `namespace`, which a Prometheus keeps for the namespace of the pod that it scrapes."""


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
        self.tick = Gauge(
            "dragoman_scaling_tick_seconds", "Time of the autoscaler's last tick", registry=self.registry
        )
        self.failures = Counter(
            "dragoman_operator_failures",
            "Unexpected failures for one object, by part of the operator",
            ["part"],
            registry=self.registry,
        )


class ScalingCollector(Collector):
    """What the autoscaler says of each object now; an object that goes takes its series with it.

    Args:
        scaled: The last decisions.
        loads: What the routers say.
        changes: Changes of the number of replicas, by direction and rule.
    """

    def __init__(
        self,
        scaled: Callable[[], Mapping[Key, Scaled]],
        loads: Callable[[], Mapping[Key, TotalLoad]],
        changes: Callable[[], Mapping[Key, Mapping[tuple[str, str], int]]],
    ) -> None:
        self._scaled = scaled
        self._loads = loads
        self._changes = changes

    def collect(self) -> Iterator[Metric]:
        """The families, as prometheus_client asks for them."""
        replicas = GaugeMetricFamily(
            "dragoman_scaling_replicas", "Replicas, by state", labels=[*OWNER, "state"]
        )
        wanted = GaugeMetricFamily(
            "dragoman_scaling_wanted_replicas",
            "Replicas that the load or the KV caches ask for, not rounded",
            labels=[*OWNER, "signal"],
        )
        requests = GaugeMetricFamily(HELD_METRIC, "Requests, by where they are", labels=[*OWNER, "state"])
        available = GaugeMetricFamily(
            "dragoman_scaling_metrics_available", "1 while there are figures to decide by", labels=OWNER
        )
        rule = GaugeMetricFamily(
            "dragoman_scaling_rule", "1 for the rule that decided", labels=[*OWNER, "rule"]
        )
        for key, load in self._loads().items():
            requests.add_metric([*key, "held"], load.held)
            requests.add_metric([*key, "in_flight_at_routers"], load.in_flight)
        for key, one in self._scaled().items():
            signals = one.signals
            replicas.add_metric([*key, "desired"], one.replicas)
            replicas.add_metric([*key, "ready"], one.ready)
            replicas.add_metric([*key, "silent"], signals.missing)
            requests.add_metric([*key, "running"], signals.running)
            requests.add_metric([*key, "waiting"], signals.waiting)
            wanted.add_metric([*key, "load"], signals.by_load)
            if signals.by_memory is not None:
                wanted.add_metric([*key, "memory"], signals.by_memory)
            if one.metrics is not None:
                available.add_metric(key, float(one.metrics.available))
            rule.add_metric([*key, one.rule], 1)
        changes = CounterMetricFamily(
            "dragoman_scaling_changes",
            "Changes of a number of replicas, by direction and rule",
            labels=[*OWNER, "direction", "rule"],
        )
        for key, counts in self._changes().items():
            for cause, count in counts.items():
                changes.add_metric([*key, *cause], count)
        yield from (replicas, wanted, requests, available, rule, changes)
