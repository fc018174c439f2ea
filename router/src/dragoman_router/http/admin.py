"""The admin port, for the cluster: probes, metrics, and the load that the autoscaler watches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from dragoman_contract.http import LIVE_PATH, METRICS_PATH, READY_PATH
from dragoman_contract.reports import HEARTBEAT_S, LOAD_PATH, WATCH_PARAMETER, RouterLoad
from dragoman_router.fleet.fleet import Fleet
from dragoman_router.metrics import Metrics
from dragoman_system.listening import bound_socket

MIN_INTERVAL_S = 0.1
"""Between two lines of a watched load."""


def load_of(fleet: Fleet, draining: bool) -> RouterLoad:
    """The load that is reported to the autoscaler; idle deployments are left out."""
    deployments = {
        key: backend.load() for key, backend in fleet.backends.items() if backend.in_flight or backend.queued
    }
    return RouterLoad(deployments=deployments, draining=draining)


def admin_app(fleet: Fleet, metrics: Metrics, draining: Callable[[], bool]) -> web.Application:
    """Probes, metrics and load."""

    async def live(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def ready(_: web.Request) -> web.Response:
        if draining():
            return web.Response(status=503, text="draining\n")
        if not fleet.synced.is_set():
            return web.Response(status=503, text="the deployments have not been read yet\n")
        return web.Response(text="ok\n")

    async def exposition(_: web.Request) -> web.Response:
        return web.Response(
            body=generate_latest(metrics.registry), headers={"Content-Type": CONTENT_TYPE_LATEST}
        )

    async def load(request: web.Request) -> web.StreamResponse:
        if request.query.get(WATCH_PARAMETER, "") in ("", "0", "false"):
            return web.json_response(text=load_of(fleet, draining()).model_dump_json())
        lines = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await lines.prepare(request)
        try:
            async for each in watched(fleet, draining):
                await lines.write(each.model_dump_json().encode() + b"\n")
        except (ConnectionError, asyncio.CancelledError):
            pass  # The watcher disconnected.
        return lines

    app = web.Application()
    app.router.add_get(LIVE_PATH, live)
    app.router.add_get(READY_PATH, ready)
    app.router.add_get(METRICS_PATH, exposition)
    app.router.add_get(LOAD_PATH, load)
    return app


async def watched(fleet: Fleet, draining: Callable[[], bool]) -> AsyncGenerator[RouterLoad]:
    """The load at once, then on every change (at most ten a second), and at least every second."""
    loop = asyncio.get_running_loop()
    sent: RouterLoad | None = None
    sent_s = float("-inf")
    while True:
        now = load_of(fleet, draining())
        if now != sent or loop.time() - sent_s >= HEARTBEAT_S:
            sent, sent_s = now, loop.time()
            yield now
        await asyncio.sleep(MIN_INTERVAL_S)


@asynccontextmanager
async def served(app: web.Application, host: str, port: int) -> AsyncGenerator[int]:
    """Serve meanwhile; the port.

    Raises:
        OSError: The address is not available.
    """
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    try:
        site = web.SockSite(runner, bound_socket(host, port))
        await site.start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()
