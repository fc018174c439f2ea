"""The API as a server on loopback: database, certificate, kubeconfig, uvicorn."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from dragoman_devcluster.api.admission import DEFAULT_SERVICE_RANGE
from dragoman_devcluster.api.app import create_app
from dragoman_devcluster.api.store import Store
from dragoman_devcluster.api.tls import credentials, write_kubeconfig

SHUTDOWN_S = 2
"""How long open watches keep a stopping server."""


@dataclass(frozen=True)
class ServerSettings:
    """Where the API listens and keeps its state.

    `directory` receives `kubeconfig`, `api/` (database, certificate, token) and is read for `logs/`.
    `port` 0 takes a free one.
    """

    directory: Path
    host: str = "127.0.0.1"
    port: int = 6443
    service_range: str = DEFAULT_SERVICE_RANGE

    @property
    def kubeconfig(self) -> Path:
        """The file that clients are to use."""
        return self.directory / "kubeconfig"


@asynccontextmanager
async def running(settings: ServerSettings) -> AsyncIterator[str]:
    """Serve in the running event loop while the context is open; yields the URL, with the kubeconfig written.

    Raises ValueError for an address that is not loopback, OSError if the port is taken.
    """
    server, listener, url, store = _prepare(settings)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        while not server.started and not serving.done():  # noqa: ASYNC110 (uvicorn has no event)
            await asyncio.sleep(0.005)
        yield url
    finally:
        server.should_exit = True
        await serving
        store.close()


def serve(settings: ServerSettings) -> None:
    """Serve until SIGINT or SIGTERM; raises as `running` does."""
    server, listener, _, store = _prepare(settings)
    try:
        server.run(sockets=[listener])
    finally:
        store.close()


def _prepare(settings: ServerSettings) -> tuple[uvicorn.Server, socket.socket, str, Store]:
    if not ipaddress.ip_address(settings.host).is_loopback:
        raise ValueError(f"{settings.host} is not a loopback address; this API is for one machine")
    state = settings.directory / "api"
    # Secrets are stored in plain text, so no other user may read the directory.
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    given = credentials(state, settings.host)
    listener = socket.create_server((settings.host, settings.port), backlog=512)
    store = Store(state)
    url = f"https://{settings.host}:{listener.getsockname()[1]}"
    write_kubeconfig(settings.kubeconfig, url, given)
    app = create_app(
        store, token=given.token, logs=settings.directory / "logs", service_range=settings.service_range
    )
    config = uvicorn.Config(
        app,
        ssl_certfile=given.certificate_file,
        ssl_keyfile=given.key_file,
        log_level="warning",
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=SHUTDOWN_S,
        timeout_keep_alive=60,
    )
    return uvicorn.Server(config), listener, url, store
