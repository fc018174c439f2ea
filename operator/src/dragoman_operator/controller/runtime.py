"""The background tasks of the leading process, from acquiring the Lease to its release."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import chain
from typing import Any

import aiohttp
from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.aiohttp import make_aiohttp_handler

from dragoman_contract.http import LIVE_PATH, METRICS_PATH, READY_PATH
from dragoman_contract.kubernetes import LABEL_COMPONENT, LABEL_PART_OF, PART_OF, ROUTER_COMPONENT
from dragoman_kube.client import KubeClient
from dragoman_kube.collection import Collection as ObjectCache
from dragoman_kube.config import ServiceAccount, own_namespace
from dragoman_kube.errors import ClusterError, UnavailableError
from dragoman_kube.events import EventRecorder, EventWriter
from dragoman_kube.kinds import EVENT, POD
from dragoman_kube.list_watch import ListWatch
from dragoman_kube.objects import Key
from dragoman_kube.work_queue import WorkQueue
from dragoman_operator.api.labels import MANAGED_BY
from dragoman_operator.autoscaling.loop import Autoscaler
from dragoman_operator.autoscaling.writes import DeletionCosts, SpecReplicas
from dragoman_operator.controller.cache import Cache, CacheCheck
from dragoman_operator.controller.downloads import Downloads
from dragoman_operator.controller.handlers import readable
from dragoman_operator.controller.leadership import Leadership
from dragoman_operator.controller.reconcile import Reconciler
from dragoman_operator.controller.ticker import Ticker
from dragoman_operator.controller.watches import WATCHED_KINDS, OwnedIndex, watches
from dragoman_operator.errors import OperatorError
from dragoman_operator.metrics import Metrics, ObjectCollector, ScalingCollector
from dragoman_operator.observed.diagnosis import MOUNT_EVENT
from dragoman_operator.observed.snapshot import TRANSLATION_DEPLOYMENT, Manifest
from dragoman_operator.resources.children import Defaults
from dragoman_operator.scraping.pods import PodMetrics
from dragoman_operator.scraping.prometheus import PrometheusServers
from dragoman_operator.scraping.routers import Routers
from dragoman_operator.settings import Settings
from dragoman_operator.tuning.loop import Tuner

log = logging.getLogger(__name__)

MAX_SCRAPE_S, MAX_SCRAPE_RATIO = 2.0, 0.4
"""Timeout of a scrape, in seconds and as a ratio of a tick; the lower one applies."""
COSTS_OBSERVED_S = 1.0
"""Time for Kubernetes' controllers to observe deletion costs; longer than the lag of their watches."""
CRD_RETRY_S = 2.0
MOUNT_EVENTS = f"involvedObject.kind=Pod,reason={MOUNT_EVENT},type=Warning"
ROUTERS = f"{LABEL_PART_OF}={PART_OF},{LABEL_COMPONENT}={ROUTER_COMPONENT}"


class Runtime:
    """All tasks beside kopf's own; kopf's startup hook calls `start`, its cleanup hook `stop`.

    Args:
        kube: The API server; writes of the Lease are not fenced.
        account: The operator's ServiceAccount, if it has one.
    """

    def __init__(
        self, settings: Settings, kube: KubeClient, metrics: Metrics, account: ServiceAccount | None
    ) -> None:
        self._settings = settings
        self._kube = kube
        self._metrics = metrics
        self._leadership = Leadership(kube, settings, settings.lease_namespace or own_namespace(), account)
        self.cache = Cache()
        self.namespaces = list(settings.namespaces)
        """Namespaces for kopf to watch; `start` removes those that may not be read. Empty: all."""
        self.queue: WorkQueue[Key] = WorkQueue(settings.workers, expected=(OperatorError, ClusterError))
        self.check = CacheCheck(kube, self.cache, self.queue.add, settings.namespaces, settings.resync_s)
        self._opened = AsyncExitStack()
        self.stopping = asyncio.Event()
        """Set when kopf should stop."""
        self.failure: BaseException | None = None
        """Reason to stop, other than a signal."""

    async def serve(self) -> None:
        """Serve probes and metrics, also while another operator leads.

        Raises:
            OSError: A port is not available.
        """
        host, leadership = self._settings.host, self._leadership
        self._metrics.leader.set_function(lambda: float(leadership.holds()))
        health = served(health_app(lambda: leadership.contacted), host, self._settings.health_port)
        await self._opened.enter_async_context(health)
        metrics = served(metrics_app(self._metrics.registry), host, self._settings.metrics_port)
        await self._opened.enter_async_context(metrics)

    async def start(self) -> None:
        """Acquire the Lease, wait for the CRD, and start the tasks; kopf lists nothing before this returns."""
        try:
            self._opened.push_async_callback(self._leadership.release)
            await self._leadership.acquire()
            self._background(self._leadership.renew_forever())
            await _until_served(self._kube)
            self.namespaces[:] = await self._readable()
            if left_out := set(self._settings.namespaces) - set(self.namespaces):
                self._background(self._until_readable(sorted(left_out)))
            await self._work(self._kube.fenced(self._leadership.write_budget_s))
        except asyncio.CancelledError:
            # kopf runs no cleanup after a cancelled startup.
            await self.stop()
            raise
        except Exception as error:
            self.failure = self.failure or error
            raise

    async def stop(self) -> None:
        """Stop everything in reverse order; the Lease is released after the last write."""
        try:
            await self._opened.aclose()
        finally:
            # Else kopf would wait for the task that waits for this.
            self.stopping.set()

    async def _readable(self) -> list[str]:
        """The managed namespaces that may be read.

        Just after the CRD was created, the API server refuses watches of its kind for a moment.

        Raises:
            RefusedError: There is none.
        """
        while True:
            try:
                return await readable(self._kube, self._settings.namespaces)
            except UnavailableError as error:
                log.warning("waiting: %s", error)
                await asyncio.sleep(CRD_RETRY_S)

    async def _until_readable(self, namespaces: Sequence[str]) -> None:
        """Stop, in order to be restarted, once one of these may be read."""
        while not self.stopping.is_set():
            await asyncio.sleep(self._settings.resync_s)
            with suppress(ClusterError):
                log.info(
                    "restarting: these namespaces may be read now: %s",
                    ", ".join(await readable(self._kube, namespaces)),
                )
                self.stopping.set()

    async def _work(self, kube: KubeClient) -> None:
        settings, metrics, interval_s = self._settings, self._metrics, self._settings.autoscaling_interval_s
        timeout_s = min(MAX_SCRAPE_S, interval_s * MAX_SCRAPE_RATIO)
        # The sources have limits; connections to thousands of pods stay open.
        connector = aiohttp.TCPConnector(limit=0)
        http = await self._opened.enter_async_context(aiohttp.ClientSession(connector=connector))

        def scale_from_zero(key: Key) -> None:
            with ticker.guarded("autoscaler", key):
                autoscaler.scale_from_zero(key)

        load = Routers(http, scale_from_zero)
        self._opened.push_async_callback(load.aclose)
        token = settings.prometheus_token
        prometheus = PrometheusServers(kube, http, settings.prometheus_url, token, timeout_s)
        router_pods = ObjectCache()
        autoscaler = Autoscaler(prometheus, load, self.queue.add, interval_s)
        tuner = Tuner(self.queue.add, interval_s)
        ticker = Ticker(
            {"autoscaler": autoscaler, "tuner": tuner},
            self.cache.readable_pods,
            PodMetrics(http, timeout_s),
            interval_s,
            lambda part: metrics.failures.labels(part).inc(),
        )
        events = EventWriter(kube)
        downloads = Downloads(http, lambda: self.cache.entries(POD), self.queue.add, MAX_SCRAPE_S)
        reconciler = Reconciler(
            kube,
            self.cache,
            Defaults(settings.cuda_image, settings.cpu_image, settings.prometheus_url, own_namespace()),
            autoscaler,
            SpecReplicas(kube),
            tuner,
            DeletionCosts(kube, http, MAX_SCRAPE_S, COSTS_OBSERVED_S) if settings.deletion_costs else None,
            EventRecorder(events, MANAGED_BY, settings.identity),
            self._mount_events(kube),
            lambda: downloads.progress,
            settings.resync_s,
        )
        await self._watch_children(kube)
        metrics.depth.set_function(lambda: float(self.queue.depth))
        metrics.tick.set_function(lambda: ticker.last_tick_s)
        objects = ObjectCollector(
            lambda: self.cache.entries(TRANSLATION_DEPLOYMENT), lambda: self.cache.entries(POD)
        )
        for collector in (ScalingCollector(autoscaler), objects):
            metrics.registry.register(collector)
            self._opened.callback(metrics.registry.unregister, collector)
        self._background(self.queue.run(measured(reconciler, metrics)))
        self._background(events.run())
        routers = ListWatch(
            kube,
            POD,
            router_pods,
            namespace=settings.router_namespace or own_namespace(),
            labels=ROUTERS,
            resync_s=settings.resync_s,
        )
        # At once, not at the next tick: the router's stream reports requests that wait for a first replica.
        router_pods.listeners.append(lambda _before, _after: load.follow(router_pods.items.values()))
        self._background(routers.run())
        self._background(self.check.run())
        self._background(ticker.run())
        self._background(downloads.run())

    async def _watch_children(self, kube: KubeClient) -> None:
        """Watch what belongs to TranslationDeployments; all of it is listed once this returns."""
        started = []
        for kind in WATCHED_KINDS:
            index = OwnedIndex(kind, self.queue.add, self.cache.forget)
            self.cache.bind({kind.plural: index})
            started += watches(kube, index, kind, self.namespaces)
        for watch in started:
            self._background(watch.run())
        for watch in started:
            await watch.listed.wait()

    def _mount_events(self, kube: KubeClient) -> Callable[[], Iterable[Manifest]]:
        """Watch Events about volumes. Without the permission a failure is only less well explained."""
        caches = []
        for namespace in self.namespaces or [""]:
            caches.append(cache := ObjectCache())
            watch = ListWatch(
                kube, EVENT, cache, namespace=namespace, fields=MOUNT_EVENTS, resync_s=self._settings.resync_s
            )
            self._background(watch.run())
        return lambda: chain.from_iterable(cache.items.values() for cache in caches)

    def _background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a task until `stop`; its failure ends the process."""
        task = asyncio.create_task(work)
        task.add_done_callback(self._ended)
        self._opened.push_async_callback(_cancel, task)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()):
            self.failure = self.failure or error
            self.stopping.set()


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


async def _until_served(kube: KubeClient) -> None:
    """Wait for the CRD: kopf discovers kinds only once."""
    logged = False
    while True:
        try:
            if await kube.serves(TRANSLATION_DEPLOYMENT):
                return
            problem = "the CRD is not installed: run `dragoman crd | kubectl apply --server-side -f -`"
        except ClusterError as error:
            problem = str(error)
        if not logged:
            log.warning("waiting: %s", problem)
            logged = True
        await asyncio.sleep(CRD_RETRY_S)


def measured(
    work: Callable[[Key], Awaitable[float | None]], metrics: Metrics
) -> Callable[[Key], Awaitable[float | None]]:
    """`work` with metrics of its duration and result."""

    async def timed(key: Key) -> float | None:
        try:
            with metrics.seconds.time():
                pause_s = await work(key)
        except Exception as error:
            expected = isinstance(error, OperatorError | ClusterError)
            metrics.reconciles.labels(type(error).__name__ if expected else "error").inc()
            raise
        metrics.reconciles.labels("ok").inc()
        return pause_s

    return timed


def health_app(ready: Callable[[], bool]) -> web.Application:
    """Probes: live while the event loop runs; ready once the API server has answered, also without the Lease."""

    async def livez(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        if ready():
            return web.Response(text="ok\n")
        return web.Response(status=503, text="the API server has not answered about the Lease yet\n")

    app = web.Application()
    app.router.add_get(LIVE_PATH, livez)
    app.router.add_get(READY_PATH, readyz)
    return app


def metrics_app(registry: CollectorRegistry) -> web.Application:
    """The metrics in Prometheus' text format."""
    app = web.Application()
    app.router.add_get(METRICS_PATH, make_aiohttp_handler(registry))
    return app


@asynccontextmanager
async def served(app: web.Application, host: str, port: int) -> AsyncIterator[None]:
    """Serve `app` within the context.

    Raises:
        OSError: The address is not available.
    """
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield
    finally:
        await runner.cleanup()
