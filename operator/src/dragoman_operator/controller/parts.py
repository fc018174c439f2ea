"""The parts of a leading operator, and how they are put together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp
from prometheus_client.registry import Collector

from dragoman_contract.kubernetes import LABEL_COMPONENT, LABEL_PART_OF, PART_OF, ROUTER_COMPONENT
from dragoman_kube.client import KubeClient
from dragoman_kube.config import own_namespace
from dragoman_kube.events import EventRecorder, EventWriter
from dragoman_kube.kinds import EVENT, POD
from dragoman_kube.mirror import Mirror
from dragoman_kube.objects import Key
from dragoman_kube.work_queue import WorkQueue
from dragoman_operator.api.labels import MANAGED_BY
from dragoman_operator.autoscaling.loop import Autoscaler
from dragoman_operator.autoscaling.writes import DeletionCosts, SpecReplicas
from dragoman_operator.controller.disruption import DisruptionGuard
from dragoman_operator.controller.downloads import Downloads
from dragoman_operator.controller.reconcile import Environment
from dragoman_operator.controller.ticker import Ticker
from dragoman_operator.controller.watches import follow, labelled
from dragoman_operator.metrics import Metrics, ObjectCollector, ScalingCollector
from dragoman_operator.observed.diagnosis import MOUNT_EVENT
from dragoman_operator.observed.snapshot import TRANSLATION_DEPLOYMENT, Manifest
from dragoman_operator.resources.children import Defaults
from dragoman_operator.scraping.pods import PodMetrics
from dragoman_operator.scraping.prometheus import PrometheusServers
from dragoman_operator.scraping.routers import Routers
from dragoman_operator.settings import Settings
from dragoman_operator.tuning.loop import Tuner

MAX_SCRAPE_S, MAX_SCRAPE_RATIO = 2.0, 0.4
"""Timeout of a scrape, in seconds and as a ratio of a tick; the lower one applies."""
COSTS_OBSERVED_S = 1.0
"""Time for Kubernetes' controllers to observe deletion costs; longer than the lag of their watches."""
MOUNT_EVENTS = f"involvedObject.kind=Pod,reason={MOUNT_EVENT},type=Warning"
ROUTERS = f"{LABEL_PART_OF}={PART_OF},{LABEL_COMPONENT}={ROUTER_COMPONENT}"


@dataclass(frozen=True)
class Parts:
    """What a leading operator consists of. Mirrors list and watch from their construction until they are closed."""

    mirror: Mirror
    """TranslationDeployments, their children, ReplicaSets and pods."""
    mount_events: Mirror
    """The kubelets' Events about volumes. Without the permission a failure is only less well explained."""
    routers: Mirror
    """The routers' pods."""
    load: Routers
    """The load that routers report."""
    ticker: Ticker
    downloads: Downloads
    event_writer: EventWriter
    environment: Environment
    """What reconciliations work with."""

    def tasks(self) -> Iterator[Coroutine[Any, Any, None]]:
        """What runs until the operator stops."""
        yield from (mirror.run() for mirror in (self.mirror, self.mount_events, self.routers))
        yield from (self.event_writer.run(), self.ticker.run(), self.downloads.run())

    def collectors(self) -> Iterator[Collector]:
        """The metrics of objects."""
        yield ScalingCollector(self.environment.autoscaler)
        yield ObjectCollector(
            lambda: labelled(self.mirror, TRANSLATION_DEPLOYMENT), lambda: labelled(self.mirror, POD)
        )


def assembled(
    settings: Settings,
    kube: KubeClient,
    http: aiohttp.ClientSession,
    namespaces: Sequence[str],
    queue: WorkQueue[Key],
    metrics: Metrics,
) -> Parts:
    """The parts; the mirrors list at once.

    Args:
        settings: The operator's settings.
        kube: The API server; its writes are fenced.
        http: For metrics of pods, Prometheus and routers.
        namespaces: The managed namespaces that may be read; empty: all.
        queue: Objects to reconcile.
        metrics: Counts failures.
    """
    interval_s = settings.autoscaling_interval_s
    timeout_s = min(MAX_SCRAPE_S, interval_s * MAX_SCRAPE_RATIO)
    mirror = Mirror(kube, namespaces, resync_s=settings.resync_s)
    mount_events = Mirror(kube, namespaces, resync_s=settings.resync_s)
    routers = Mirror(kube, [settings.router_namespace or own_namespace()], resync_s=settings.resync_s)

    def scale_from_zero(key: Key) -> None:
        with ticker.guarded("autoscaler", key):
            autoscaler.scale_from_zero(key)

    load = Routers(http, scale_from_zero)
    prometheus = PrometheusServers(
        kube, http, settings.prometheus_url, settings.prometheus_token, timeout_s, settings.prometheus_headers
    )
    autoscaler = Autoscaler(prometheus, load, queue.add, interval_s)
    tuner = Tuner(queue.add, interval_s)
    ticker = Ticker(
        {"autoscaler": autoscaler, "tuner": tuner},
        _pods_of(mirror),
        PodMetrics(http, timeout_s),
        interval_s,
        lambda part: metrics.failures.labels(part).inc(),
    )
    event_writer = EventWriter(kube)
    downloads = Downloads(http, lambda: labelled(mirror, POD), queue.add, MAX_SCRAPE_S)
    follow(mirror, queue.add)
    mount_events.follow(EVENT, fields=MOUNT_EVENTS)
    # At once, not at the next tick: the router's stream reports requests that wait for a first replica.
    routers.follow(POD, lambda _before, _after: load.follow(routers.list(POD)), labels=ROUTERS)
    costs = DeletionCosts(kube, http, MAX_SCRAPE_S, COSTS_OBSERVED_S) if settings.deletion_costs else None
    environment = Environment(
        mirror=mirror,
        defaults=Defaults(
            settings.cuda_image,
            settings.cpu_image,
            settings.prometheus_url,
            own_namespace(),
            tuple(settings.prometheus_headers.items()),
            settings.image_pull_secrets,
            settings.platform_users,
        ),
        autoscaler=autoscaler,
        spec_replicas=SpecReplicas(kube),
        tuner=tuner,
        events=EventRecorder(event_writer, MANAGED_BY, settings.identity),
        resync_s=settings.resync_s,
        before_scale_down=costs,
        # Both need the permission to patch pods.
        guard_starts=DisruptionGuard(kube) if settings.deletion_costs else None,
        mount_events=lambda: mount_events.list(EVENT),
        downloads=lambda: downloads.progress,
    )
    return Parts(mirror, mount_events, routers, load, ticker, downloads, event_writer, environment)


def _pods_of(mirror: Mirror) -> Callable[[Key, Collection[str]], Sequence[Manifest] | None]:
    def pods(key: Key, replica_sets: Collection[str]) -> Sequence[Manifest] | None:
        if mirror.refused(key.namespace):
            return None
        return mirror.controlled(POD, key.namespace, replica_sets)

    return pods
