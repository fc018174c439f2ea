"""`dragoman operator`: wiring, signals, and nothing that decides."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable

import aiohttp
from pydantic import ValidationError
from pydantic_settings import CliApp

from dragoman_operator import logs
from dragoman_operator.autoscaling.deletion_cost import Leaving
from dragoman_operator.autoscaling.loop import Autoscaler
from dragoman_operator.autoscaling.sources.choice import MetricSources
from dragoman_operator.autoscaling.sources.pods import PodMetrics, PodPages
from dragoman_operator.autoscaling.sources.routers import Routers
from dragoman_operator.controller.leadership import Leadership
from dragoman_operator.controller.probes import health_app, metrics_app, served
from dragoman_operator.controller.reconcile import Reconciler
from dragoman_operator.controller.watcher import watch
from dragoman_operator.credentials import own_namespace
from dragoman_operator.errors import OperatorError
from dragoman_operator.kube import Kube, connect
from dragoman_operator.metrics import Metrics, ScalingCollector
from dragoman_operator.observed.snapshot import Key
from dragoman_operator.resources.manifests import Images
from dragoman_operator.settings import Settings, unknown_variables
from dragoman_operator.tuning.loop import Tuner
from dragoman_operator.workqueue import WorkQueue

log = logging.getLogger(__name__)

LONGEST_READING_S, READING_SHARE = 2.0, 0.4
"""A source that does not answer for this long, or this share of a tick, is not waited for."""
COSTS_SEEN_S = 1.0
"""What Kubernetes' controllers get to see which pods may go; seconds more than their watches lag."""


def main(argv: list[str]) -> int:
    """Run the operator until SIGTERM or SIGINT; 0, or 1 or 2 with the reason on standard error."""
    if unknown := unknown_variables(os.environ):
        sys.stderr.write(f"dragoman operator: unknown environment: {', '.join(unknown)}\n")
        return 2
    try:
        settings = CliApp.run(Settings, cli_args=argv)
    except ValidationError as error:
        for problem in error.errors():
            where = ".".join(map(str, problem["loc"]))
            sys.stderr.write(f"dragoman operator: {where}: {problem['msg']}\n")
        return 2
    logs.set_up(settings.log_format, settings.log_level)
    try:
        asyncio.run(operate(settings))
    except (OperatorError, OSError) as error:
        log.error("%s", error)
        return 1
    return 0


async def operate(settings: Settings) -> None:
    """Run until a signal comes.

    Raises:
        OperatorError: The cluster cannot be named, or its credentials cannot be read.
        OSError: A port is taken.
    """
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    metrics = Metrics()
    async with connect(settings.request_timeout_s) as kube:
        leadership = Leadership(kube, settings, settings.lease_namespace or own_namespace())
        metrics.leader.set_function(lambda: float(leadership.holds()))
        async with (
            served(health_app(lambda: leadership.contacted), settings.host, settings.health_port),
            served(metrics_app(metrics), settings.host, settings.metrics_port),
        ):
            fenced = kube.fenced(leadership.write_budget_s)
            work = asyncio.ensure_future(leadership.run(lambda: lead(fenced, settings, metrics)))
            stopping = asyncio.ensure_future(stop.wait())
            await asyncio.wait([work, stopping], return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            work.cancel()
            await asyncio.wait([work])
            if not work.cancelled() and (error := work.exception()):
                raise error
    log.info("stopped")


async def lead(kube: Kube, settings: Settings, metrics: Metrics) -> None:
    """Act until cancelled: watch, and look at what changed."""
    images = Images(cuda=settings.cuda_image, cpu=settings.cpu_image)
    timeout_s = min(LONGEST_READING_S, settings.tick_s * READING_SHARE)
    # Limits are the sources' own; connections to thousands of pods may stay open.
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        pods = PodMetrics(http, timeout_s)
        sources = MetricSources(
            kube, http, pods, settings.prometheus_url, settings.prometheus_token, timeout_s
        )
        autoscaler = Autoscaler(
            kube,
            sources,
            Routers(http, lambda key: autoscaler.wake(key)),
            lambda key: queue.mark(key),
            settings.namespaces,
            settings.router_namespace or own_namespace(),
            settings.tick_s,
            lambda _: metrics.failures.labels("autoscaler").inc(),
        )
        tuner = Tuner(
            kube,
            PodPages(http, timeout_s),
            lambda key: queue.mark(key),
            settings.namespaces,
            settings.tick_s,
            lambda _: metrics.failures.labels("tuner").inc(),
        )
        reconciler = Reconciler(
            kube,
            images,
            autoscaler,
            tuner,
            Leaving(kube, http, LONGEST_READING_S, COSTS_SEEN_S),
            settings.resync_s,
            settings.prometheus_url,
            settings.identity,
        )
        queue: WorkQueue[Key] = WorkQueue(measured(reconciler, metrics), settings.workers)
        metrics.depth.set_function(lambda: float(queue.depth))
        metrics.tick.set_function(lambda: autoscaler.last_tick_s)
        collector = ScalingCollector(autoscaler.latest, autoscaler.loads, autoscaler.changes)
        metrics.registry.register(collector)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(queue.run())
                group.create_task(autoscaler.run())
                group.create_task(tuner.run())
                group.create_task(watch(kube, settings.namespaces, queue.mark))
        finally:
            metrics.registry.unregister(collector)


def measured(
    work: Callable[[Key], Awaitable[float | None]], metrics: Metrics
) -> Callable[[Key], Awaitable[float | None]]:
    """`work`, with its time and its end counted."""

    async def timed(key: Key) -> float | None:
        began = time.perf_counter()
        result = "error"
        try:
            pause_s = await work(key)
            result = "ok"
            return pause_s
        except OperatorError as error:
            result = type(error).__name__
            raise
        finally:
            metrics.reconciles.labels(result).inc()
            metrics.seconds.observe(time.perf_counter() - began)

    return timed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
