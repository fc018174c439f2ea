"""The local cluster as one asynchronous context: API server, controllers, node and Service proxy."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Coroutine
from contextlib import AsyncExitStack, closing
from types import TracebackType
from typing import Any, Self

import aiohttp
from kubernetes.aio.client import ApiClient

from dragoman_devcluster.controllers.controller import Controller
from dragoman_devcluster.controllers.deployments import DeploymentController
from dragoman_devcluster.controllers.endpoints import EndpointController
from dragoman_devcluster.controllers.garbage import GarbageCollector
from dragoman_devcluster.controllers.namespaces import NamespaceController
from dragoman_devcluster.controllers.replica_sets import ReplicaSetController
from dragoman_devcluster.controllers.scheduler import Scheduler
from dragoman_devcluster.errors import StartFailedError
from dragoman_devcluster.guardian import Guardian
from dragoman_devcluster.node.context import Addresses, Devices, Directories, NodeContext
from dragoman_devcluster.node.credentials import Credentials, current_cluster
from dragoman_devcluster.node.launch import GPU
from dragoman_devcluster.node.node import Node
from dragoman_devcluster.options import NODE_NAME, ClusterOptions, count_gpus
from dragoman_devcluster.preload import Preload
from dragoman_devcluster.proxy import ServiceProxy
from dragoman_devcluster.servers.kube_apiserver import BINARIES, find_binaries, kube_apiserver
from dragoman_devcluster.servers.server import HOST, ApiServer, embedded_server, keep
from dragoman_kube.client import connect
from dragoman_kube.config import configuration
from dragoman_kube.events import EventRecorder, EventWriter
from dragoman_kube.mirror import Mirror
from dragoman_kube.work_queue import Backoff

logger = logging.getLogger(__name__)

BACKOFF = Backoff(0.2, 1.0)
"""The API server is on this machine and restarts within seconds."""


class LocalCluster:
    """A cluster on this machine, up while its context is entered.

    Usage::

        async with LocalCluster(ClusterOptions(dir=tmp_path, api="embedded")) as cluster:
            api = await cluster.client()
    """

    def __init__(self, options: ClusterOptions) -> None:
        self.options = options
        self.kubeconfig = options.dir.resolve() / "kubeconfig"
        """The administrator's."""
        self._stack = AsyncExitStack()
        self._server: ApiServer | None = None

    @property
    def api(self) -> str:
        """Which API server runs: ``embedded`` or ``kube-apiserver``."""
        return self._running_server().kind

    @property
    def url(self) -> str:
        """Address of the API."""
        return str(current_cluster(self.kubeconfig)["server"])

    def _running_server(self) -> ApiServer:
        if self._server is None:
            raise RuntimeError("the cluster is not up: enter its context first")
        return self._server

    async def client(self) -> ApiClient:
        """A client of the package `kubernetes.aio` with the administrator's rights; close it after use."""
        return ApiClient(await configuration(self.kubeconfig))

    async def __aenter__(self) -> Self:
        self.options.dir.mkdir(parents=True, exist_ok=True)
        async with AsyncExitStack() as stack:
            guardian = stack.enter_context(closing(Guardian()))
            self._server = choose_server(self.options, guardian)
            stack.push_async_callback(self._server.stop)
            await self._server.start()
            if not self.options.api_only:
                await self._start_node(stack, guardian)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def _start_node(self, stack: AsyncExitStack, guardian: Guardian) -> None:
        """Start the controllers, the node and the proxy; the API server runs already."""
        client = await stack.enter_async_context(connect(await configuration(self.kubeconfig)))
        mirror, events, proxy = Mirror(client, backoff=BACKOFF), EventWriter(client), ServiceProxy()
        _run(stack, mirror.run(), "mirror")
        stack.push_async_callback(proxy.aclose)
        session = await stack.enter_async_context(
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True))
        )
        preload = None
        if self.options.preload is not None:
            preload = await asyncio.to_thread(Preload, self.options.preload)
        gpus = count_gpus() if self.options.gpus is None else self.options.gpus
        devices = {GPU: gpus} if gpus else {}
        context = NodeContext(
            name=NODE_NAME,
            address=HOST,
            mirror=mirror,
            events=EventRecorder(events, "kubelet", host=NODE_NAME),
            directories=Directories(self.options.dir.resolve(), self.options.checkout),
            credentials=Credentials.like(self.kubeconfig, client),
            backoff=self.options.backoff,
            guardian=guardian,
            session=session,
            addresses=Addresses(),
            devices=Devices(gpus),
            preload=preload,
        )
        node = Node(context, devices)
        controllers: list[Controller] = [
            DeploymentController(mirror, events),
            ReplicaSetController(mirror, events),
            Scheduler(mirror, events, NODE_NAME, devices),
            EndpointController(mirror, proxy),
            NamespaceController(mirror),
            GarbageCollector(mirror),
        ]
        for controller in controllers:
            controller.start()
        await mirror.synced()
        _run(stack, events.run(), "events")
        await node.register()
        node.start()
        stack.push_async_callback(node.stop, self.options.stop_grace_s)
        for controller in controllers:
            _run(stack, controller.queue.run(controller.reconcile), type(controller).__name__)

    async def keep(self) -> None:
        """Start the API server again whenever it ends, until cancelled; all else goes on meanwhile.

        Raises:
            StartFailedError: It does not start again.
        """
        await keep(self._running_server(), self.options.backoff)


def choose_server(options: ClusterOptions, guardian: Guardian) -> ApiServer:
    """The server that the options name.

    Raises:
        StartFailedError: The options name a server whose binaries are missing, or an unknown one.
    """
    found = find_binaries(os.environ)
    missing = [name for name in BINARIES if name not in found]
    if options.api == "embedded" or (options.api == "auto" and missing):
        if options.audit_policy is not None:
            raise StartFailedError("--audit-policy is for kube-apiserver: the embedded API has no audit log")
        return embedded_server(options, guardian)
    if options.api not in ("auto", "kube-apiserver"):
        raise StartFailedError(f"no API {options.api!r}: choose auto, embedded or kube-apiserver")
    if missing:
        raise StartFailedError(
            f"no {' and no '.join(missing)}: set KUBEBUILDER_ASSETS to the directory that holds them, "
            "put them on PATH, or use --api embedded"
        )
    return kube_apiserver(options, guardian, found)


def _run(stack: AsyncExitStack, loop: Coroutine[Any, Any, None], name: str) -> None:
    task = asyncio.create_task(loop, name=name)

    def log_failure(done: asyncio.Task[None]) -> None:
        if not done.cancelled() and (error := done.exception()) is not None:
            logger.critical("%s has stopped: %r", name, error, exc_info=error)

    async def cancel() -> None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    task.add_done_callback(log_failure)
    stack.push_async_callback(cancel)
