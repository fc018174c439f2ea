"""uvicorn with `BoundedProtocol`, whose process handles signals itself."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn

from dragoman_http.limits import BACKLOG, KEEP_ALIVE_S, RequestLimits
from dragoman_http.protocol import BoundedProtocol, Cycle

SWEEP_TICKS = 10
"""uvicorn ticks ten times a second."""


class Server(uvicorn.Server):
    """uvicorn without its signal handlers, because pods and routers drain on a signal; closes overdue connections."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the caller."""
        yield

    async def on_tick(self, counter: int) -> bool:
        """Sweep all connections once a second."""
        if counter % SWEEP_TICKS == 0:
            now_s = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                if isinstance(connection, BoundedProtocol):
                    connection.sweep(now_s)
        return await super().on_tick(counter)


def make_server(
    app: Any,
    limits: RequestLimits,
    on_write_timeout: Callable[[], object],
    *,
    closes: Callable[[], bool] = lambda: False,
    max_connections: int = sys.maxsize,
    closing_s: int,
    **options: Any,
) -> Server:
    """An HTTP server.

    Args:
        app: The ASGI application.
        limits: On requests.
        on_write_timeout: Called for each client that did not read its response.
        closes: Whether each response ends its connection, as the server terminates: through a Service a kept one would
            lead its client back here, a new one leads to another replica.
        max_connections: Connections at the same time; on further ones `BoundedProtocol.crowded` is set, for the
            application to refuse their requests.
        closing_s: Seconds that requests get once the server is stopped.
        options: Further ones of uvicorn.
    """
    fields = {
        "limits": limits,
        "on_write_timeout": staticmethod(on_write_timeout),
        "cycle_type": type("ServerCycle", (Cycle,), {"closes": staticmethod(closes)}),
        "max_connections": max_connections,
    }
    config = uvicorn.Config(
        app,
        http=type("LimitedProtocol", (BoundedProtocol,), fields),
        ws="none",
        lifespan="off",
        access_log=False,
        server_header=False,
        log_config=None,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=closing_s,
        backlog=BACKLOG,
        **options,
    )
    config.load()
    return Server(config)
