"""HTTP servers for the operator's probes and metrics."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.aiohttp import make_aiohttp_handler

from dragoman_contract.http import LIVE_PATH, METRICS_PATH, READY_PATH
from dragoman_system.listening import bound_socket


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
        await web.SockSite(runner, bound_socket(host, port)).start()
        yield
    finally:
        await runner.cleanup()
