"""Servers of a test on loopback addresses of their own, as pods have them."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from dragoman_operator.observed.snapshot import EnginePod

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

NET = f"127.{64 + os.getpid() % 128}"
"""Pods and routers have fixed ports: each process of tests has addresses of its own."""


@asynccontextmanager
async def served(address: str, port: int, path: str, handler: Handler) -> AsyncIterator[None]:
    app = web.Application()
    app.router.add_route("*", path, handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, address, port).start()
        yield
    finally:
        await runner.cleanup()


def pod(name: str, address: str, ready: bool = True) -> EnginePod:
    return EnginePod(f"uid-{name}", "default", name, address, ready, 0.0, 0.0, 0)
