"""`python -m dragoman_devcluster.api --port 6443 --dir DIR`: the API alone, on loopback, until it is interrupted."""

from __future__ import annotations

import argparse
import ipaddress
import logging
import socket
import sys
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


def serve(settings: ServerSettings) -> None:
    """Serve until SIGINT or SIGTERM.

    Raises ValueError for an address that is not loopback, OSError if the port is taken.
    """
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
    write_kubeconfig(settings.kubeconfig, url, given.certificate_file.read_bytes(), given.token)
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


def main(argv: list[str] | None = None) -> int:
    """Serve the API; returns 0 after an interrupt, 1 if it cannot start, 2 for bad arguments."""
    parser = argparse.ArgumentParser(prog="python -m dragoman_devcluster.api", description=__doc__)
    parser.add_argument("--dir", type=Path, default=Path(".dragoman"), help="state and kubeconfig go here")
    parser.add_argument("--host", default="127.0.0.1", help="the loopback address to listen on")
    parser.add_argument("--port", type=int, default=6443, help="the port to listen on; 0 takes a free one")
    parser.add_argument("--service-range", default=DEFAULT_SERVICE_RANGE, help="network of the cluster IPs")
    options = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    settings = ServerSettings(options.dir, options.host, options.port, options.service_range)
    logging.getLogger(__name__).info("kubeconfig: %s", settings.kubeconfig)
    try:
        serve(settings)
    except (OSError, ValueError) as failed:
        logging.getLogger(__name__).error("cannot serve on %s:%s: %s", options.host, options.port, failed)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
