"""Metrics of the operator, in a separate registry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dragoman_kube.objects import Key
from dragoman_kube.quantity import parse
from dragoman_operator.api.v1alpha1 import GPU_PREFIX
from dragoman_operator.autoscaling.loop import Autoscaler
from dragoman_operator.observed.snapshot import Manifest
from dragoman_operator.resources.children import REPLICAS_METRIC, REQUESTS_METRIC

OWNER = ("deployment_namespace", "deployment")
"""Labels. Not `namespace`: Prometheus sets it to the namespace of the scraped pod."""

CONDITION = ("type", "status", "reason")


class Metrics:
    """Counters and gauges of one operator process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.reconciles = Counter(
            "dragoman_operator_reconciles",
            "Reconciliations by result",
            ["result"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "dragoman_operator_reconcile_duration_seconds",
            "Time of one reconciliation",
            registry=self.registry,
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
        )
        self.depth = Gauge(
            "dragoman_operator_workqueue_depth", "Objects waiting to be reconciled", registry=self.registry
        )
        self.leader = Gauge(
            "dragoman_operator_leader", "1 while this process is the leader", registry=self.registry
        )
        self.tick = Gauge(
            "dragoman_scaling_evaluation_duration_seconds",
            "Time of the last evaluation of all objects",
            registry=self.registry,
        )
        self.failures = Counter(
            "dragoman_operator_failures",
            "Unexpected errors for one object, by part of the operator",
            ["part"],
            registry=self.registry,
        )


class ScalingCollector(Collector):
    """State of the autoscaler for each object; series of deleted objects disappear."""

    def __init__(self, autoscaler: Autoscaler) -> None:
        self._autoscaler = autoscaler

    def collect(self) -> Iterator[Metric]:
        """Metric families for prometheus_client."""
        replicas = _gauge("dragoman_scaling_replicas", "Replicas, by state", "state")
        required = _gauge(
            "dragoman_scaling_required_replicas",
            "Replicas required by the load or the KV cache usage, not rounded",
            "signal",
        )
        requests = _gauge(REQUESTS_METRIC, "Requests, by state", "state")
        available = _gauge(
            "dragoman_scaling_metrics_available", "1 while metrics for a decision are available"
        )
        rule = _gauge(
            "dragoman_scaling_rule", "1 for the rule that determined the number of replicas", "rule"
        )
        changes = CounterMetricFamily(
            "dragoman_scaling_changes",
            "Changes of the number of replicas, by direction and rule",
            labels=[*OWNER, "direction", "rule"],
        )
        for key, load in self._autoscaler.loads().items():
            requests.add_metric([*key, "queued_at_routers"], load.queued)
            requests.add_metric([*key, "in_flight_at_routers"], load.in_flight)
        for key, deployment in self._autoscaler.deployments().items():
            one = deployment.latest
            signals = one.signals
            replicas.add_metric([*key, "desired"], one.replicas)
            replicas.add_metric([*key, "ready"], one.ready)
            replicas.add_metric([*key, "not_reporting"], signals.missing)
            requests.add_metric([*key, "running"], signals.running)
            requests.add_metric([*key, "waiting"], signals.waiting)
            required.add_metric([*key, "load"], signals.by_load)
            if signals.by_kv_cache is not None:
                required.add_metric([*key, "kv_cache"], signals.by_kv_cache)
            if one.metrics is not None:
                available.add_metric(key, float(one.metrics.status))
            rule.add_metric([*key, one.rule], 1)
            for cause, count in deployment.changes.items():
                changes.add_metric([*key, *cause], count)
        yield from (replicas, required, requests, available, rule, changes)


Objects = Callable[[], Iterable[tuple[Key, Manifest]]]
"""Objects with the TranslationDeployment that they belong to."""


class ObjectCollector(Collector):
    """Status and GPUs of each object, as they are known at a scrape; series of deleted objects disappear."""

    def __init__(self, deployments: Objects, pods: Objects) -> None:
        self._deployments = deployments
        self._pods = pods

    def collect(self) -> Iterator[Metric]:
        """Metric families for prometheus_client."""
        conditions = _gauge(
            "dragoman_deployment_condition",
            "1 for each condition of the object, as it is now",
            *CONDITION,
        )
        replicas = _gauge(REPLICAS_METRIC, "Replicas by the object's status", "state")
        allocated = _gauge(
            "dragoman_deployment_gpus", "GPUs, or MIG devices, of the pods that are bound to nodes"
        )
        gpus: dict[Key, float] = {}
        # A deleted object and its successor may both be known for a moment.
        for key, deployment in dict(self._deployments()).items():
            gpus[key] = 0.0
            status: dict[str, Any] = deployment.get("status") or {}
            for one in status.get("conditions") or ():
                conditions.add_metric([*key, *(one.get(name, "") for name in CONDITION)], 1)
            for state, field in (("desired", "desiredReplicas"), ("ready", "readyReplicas")):
                replicas.add_metric([*key, state], status.get(field) or 0)
        for key, pod in self._pods():
            if key in gpus:
                gpus[key] += gpus_of(pod)
        for key, count in gpus.items():
            allocated.add_metric(key, count)
        yield from (conditions, replicas, allocated)


def gpus_of(pod: Manifest) -> float:
    """GPUs, or MIG devices, that a pod holds: none before it is bound to a node, none once it has ended."""
    spec: dict[str, Any] = pod.get("spec") or {}
    if "nodeName" not in spec or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return 0.0
    return float(
        sum(
            parse(count)
            for container in spec.get("containers") or ()
            for name, count in ((container.get("resources") or {}).get("limits") or {}).items()
            if name.startswith(GPU_PREFIX)
        )
    )


def _gauge(name: str, description: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, description, labels=[*OWNER, *labels])
