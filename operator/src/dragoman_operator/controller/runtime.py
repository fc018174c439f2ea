"""The life of the leading process, from acquiring the Lease to its release."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any

import aiohttp

from dragoman_kube.client import KubeClient
from dragoman_kube.config import ServiceAccount, own_namespace
from dragoman_kube.errors import ClusterError
from dragoman_kube.mirror import Mirror
from dragoman_kube.objects import Key
from dragoman_kube.work_queue import WorkQueue
from dragoman_operator.controller.leadership import Leadership
from dragoman_operator.controller.parts import assembled
from dragoman_operator.controller.probes import health_app, metrics_app, served
from dragoman_operator.controller.reconcile import Reconciler
from dragoman_operator.controller.watches import feed, readable
from dragoman_operator.errors import OperatorError
from dragoman_operator.metrics import Metrics
from dragoman_operator.observed.snapshot import TRANSLATION_DEPLOYMENT, Manifest
from dragoman_operator.settings import Settings

log = logging.getLogger(__name__)

CRD_RETRY_S = 2.0


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
        self._mirror: Mirror | None = None
        self._queue: WorkQueue[Key] = WorkQueue(settings.workers, expected=(OperatorError, ClusterError))
        self._opened = AsyncExitStack()
        self.namespaces = list(settings.namespaces)
        """Namespaces for kopf to watch; `start` removes those that may not be read. Empty: all."""
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
        """Acquire the Lease, and start the tasks; kopf lists nothing before this returns.

        Permissions are checked while another operator leads: the leader has no time to spend on them.
        """
        try:
            self._opened.push_async_callback(self._leadership.release)
            await self._lead()
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

    async def _lead(self) -> None:
        """Acquire the Lease and renew it from then on, with the permissions checked."""
        leading = asyncio.Event()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._check_permissions(leading))
                await self._leadership.acquire()
                self._background(self._leadership.renew_forever())
                leading.set()
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None

    async def stop(self) -> None:
        """Stop everything in reverse order; the Lease is released after the last write."""
        try:
            await self._opened.aclose()
        finally:
            # Else kopf would wait for the task that waits for this.
            self.stopping.set()

    def changed(self, change: str | None, body: Manifest) -> None:
        """Store a TranslationDeployment that kopf reports; see `feed`."""
        if self._mirror is not None:
            feed(self._mirror, change, body)

    async def _check_permissions(self, leading: asyncio.Event) -> None:
        """Wait for the CRD, and find the namespaces that may be read; again at an interval until this process leads.

        Raises:
            RefusedError: There is none.
        """
        await _until_served(self._kube)
        while True:
            self.namespaces[:] = await readable(self._kube, self._settings.namespaces)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.resync_s):
                    await leading.wait()
                    return

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
        """Start the parts; the queue begins once everything but the TranslationDeployments is listed."""
        metrics, queue = self._metrics, self._queue
        # The sources have limits; connections to thousands of pods stay open.
        connector = aiohttp.TCPConnector(limit=0)
        http = await self._opened.enter_async_context(aiohttp.ClientSession(connector=connector))
        parts = assembled(self._settings, kube, http, self.namespaces, queue, metrics)
        self._opened.push_async_callback(parts.load.aclose)
        for task in parts.tasks():
            self._background(task)
        await parts.mirror.synced()
        self._mirror = parts.mirror
        metrics.depth.set_function(lambda: float(queue.depth))
        metrics.tick.set_function(lambda: parts.ticker.last_tick_s)
        for collector in parts.collectors():
            metrics.registry.register(collector)
            self._opened.callback(metrics.registry.unregister, collector)
        self._background(queue.run(measured(Reconciler(parts.environment), metrics)))

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
