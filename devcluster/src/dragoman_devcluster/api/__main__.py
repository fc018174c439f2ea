"""`python -m dragoman_devcluster.api --port 6443 --dir DIR`: the API alone, on loopback, until it is interrupted."""

from __future__ import annotations

import argparse
import logging
import socket
import sys
from pathlib import Path

import uvicorn

from dragoman_devcluster.api.admission import DEFAULT_SERVICE_RANGE
from dragoman_devcluster.api.app import create_app
from dragoman_devcluster.api.store import Store
from dragoman_devcluster.api.tls import credentials, write_kubeconfig

HOST = "127.0.0.1"
SHUTDOWN_S = 2
"""How long open watches keep a stopping server."""


def serve(directory: Path, port: int, service_range: str) -> None:
    """Serve until SIGINT or SIGTERM.

    Args:
        directory: Receives `kubeconfig` and `api/` (database, certificate, token), and is read for `logs/`.
        port: 0 takes a free one.
        service_range: The network (CIDR) that Services' cluster IPs are taken from.

    Raises:
        OSError: The port is taken.
    """
    state = directory / "api"
    # Secrets are stored in plain text, so no other user may read the directory.
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    given = credentials(state, HOST)
    listener = socket.create_server((HOST, port), backlog=512)
    store = Store(state)
    url = f"https://{HOST}:{listener.getsockname()[1]}"
    write_kubeconfig(directory / "kubeconfig", url, given.certificate_file.read_bytes(), given.token)
    config = uvicorn.Config(
        create_app(store, token=given.token, logs=directory / "logs", service_range=service_range),
        ssl_certfile=given.certificate_file,
        ssl_keyfile=given.key_file,
        log_level="warning",
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=SHUTDOWN_S,
        timeout_keep_alive=60,
    )
    try:
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        store.close()


def main(argv: list[str] | None = None) -> int:
    """Serve the API; returns 0 after an interrupt, 1 if it cannot start, 2 for bad arguments."""
    parser = argparse.ArgumentParser(prog="python -m dragoman_devcluster.api", description=__doc__)
    parser.add_argument("--dir", type=Path, default=Path(".dragoman"), help="state and kubeconfig go here")
    parser.add_argument("--port", type=int, default=6443, help="port on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--service-range", default=DEFAULT_SERVICE_RANGE, help="network of the cluster IPs")
    options = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        serve(options.dir, options.port, options.service_range)
    except OSError as failed:
        logging.getLogger(__name__).error("cannot serve on port %d: %s", options.port, failed)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
