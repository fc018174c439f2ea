"""`python -m dragoman_devcluster.api --port 6443 --dir DIR`: the API alone, until it is interrupted."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from dragoman_devcluster.api.admission import DEFAULT_SERVICE_RANGE
from dragoman_devcluster.api.server import ServerSettings, serve


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
