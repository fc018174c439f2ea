"""Metrics of the operator, in a separate registry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from dragoman_contract.metrics import Metric
from dragoman_kube.objects import Key
from dragoman_kube.quantity import parse
from dragoman_operator.api.v1alpha1 import GPU_PREFIX
from dragoman_operator.autoscaling.loop import Autoscaler
from dragoman_operator.metric_definitions import (
    DEPLOYMENT_CONDITION,
    DEPLOYMENT_GPUS,
    DEPLOYMENT_REPLICAS,
    FAILURES,
    LEADER,
    RECONCILE_DURATION_SECONDS,
    RECONCILES,
    SCALING_CHANGES,
    SCALING_EVALUATION_DURATION_SECONDS,
    SCALING_METRICS_AVAILABLE,
    SCALING_REPLICAS,
    SCALING_REQUESTS,
    SCALING_REQUIRED_REPLICAS,
    SCALING_RULE,
    WORKQUEUE_DEPTH,
)
from dragoman_operator.observed.snapshot import Manifest

OWNER = ("deployment_namespace", "deployment")
"""Labels. Not `namespace`: Prometheus sets it to the namespace of the scraped pod."""


class Metrics:
    """Counters and gauges of one operator process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.reconciles = Counter(RECONCILES.name, RECONCILES.help, RECONCILES.labels, registry=self.registry)
        self.seconds = Histogram(
            RECONCILE_DURATION_SECONDS.name,
            RECONCILE_DURATION_SECONDS.help,
            registry=self.registry,
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
        )
        self.depth = Gauge(WORKQUEUE_DEPTH.name, WORKQUEUE_DEPTH.help, registry=self.registry)
        self.leader = Gauge(LEADER.name, LEADER.help, registry=self.registry)
        self.tick = Gauge(
            SCALING_EVALUATION_DURATION_SECONDS.name,
            SCALING_EVALUATION_DURATION_SECONDS.help,
            registry=self.registry,
        )
        self.failures = Counter(FAILURES.name, FAILURES.help, FAILURES.labels, registry=self.registry)


class ScalingCollector(Collector):
    """State of the autoscaler for each object; series of deleted objects disappear."""

    def __init__(self, autoscaler: Autoscaler) -> None:
        self._autoscaler = autoscaler

    def collect(self) -> Iterator[Family]:
        """Metric families for prometheus_client."""
        replicas = _gauge(SCALING_REPLICAS)
        required = _gauge(SCALING_REQUIRED_REPLICAS)
        requests = _gauge(SCALING_REQUESTS)
        available = _gauge(SCALING_METRICS_AVAILABLE)
        rule = _gauge(SCALING_RULE)
        changes = CounterMetricFamily(
            SCALING_CHANGES.name, SCALING_CHANGES.help, labels=[*OWNER, *SCALING_CHANGES.labels]
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

    def collect(self) -> Iterator[Family]:
        """Metric families for prometheus_client."""
        conditions = _gauge(DEPLOYMENT_CONDITION)
        replicas = _gauge(DEPLOYMENT_REPLICAS)
        allocated = _gauge(DEPLOYMENT_GPUS)
        gpus: dict[Key, float] = {}
        # A deleted object and its successor may both be known for a moment.
        for key, deployment in dict(self._deployments()).items():
            gpus[key] = 0.0
            status: dict[str, Any] = deployment.get("status") or {}
            for one in status.get("conditions") or ():
                conditions.add_metric([*key, *(one.get(name, "") for name in DEPLOYMENT_CONDITION.labels)], 1)
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


def _gauge(metric: Metric) -> GaugeMetricFamily:
    return GaugeMetricFamily(metric.name, metric.help, labels=[*OWNER, *metric.labels])
