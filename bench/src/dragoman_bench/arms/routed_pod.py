"""Our pod with the router before it, as clients reach it.

python -m dragoman_bench.arms.routed_pod --port PORT --pod-port PORT -- POD'S COMMAND

The process that was started becomes the router, so that its processor time is the router's alone.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import urllib.request

import yaml

MAX_IN_FLIGHT = 100_000
"""The pod refuses what it cannot do in time; queueing in the router is not measured here."""


def main() -> None:
    """Start the pod, wait until it is ready, and be its router; where the pod ends, end with its status.

    The parent process limits the time of the start.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True, help="the router's")
    parser.add_argument("--pod-port", type=int, required=True)
    parser.add_argument("pod", nargs="+")
    given = parser.parse_args()
    pod = subprocess.Popen(given.pod)
    while not ready(given.pod_port):
        if pod.poll() is not None:
            sys.exit(pod.returncode)
        time.sleep(0.1)
    command = router_command(given.port, fleet_of(given.pod_port))
    os.execv(command[0], command)


def ready(pod_port: int) -> bool:
    """Whether the pod's readiness probe succeeds."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{pod_port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:  # No listener yet, or 503.
        return False


def fleet_of(pod_port: int) -> str:
    """A file of that one replica, for `dragoman router --static`; it exists for as long as this process."""
    listed = {"name": "bench", "replicas": [f"127.0.0.1:{pod_port}"], "maxInFlight": MAX_IN_FLIGHT}
    file = os.memfd_create("routers.yaml", 0)  # by default it would be closed as the router takes over
    os.write(file, yaml.safe_dump({"deployments": [listed]}).encode())
    return f"/proc/self/fd/{file}"


def router_command(port: int, fleet: str) -> list[str]:
    """A router with its defaults, except that its timeout is longer than the pod's and SIGTERM ends it at once."""
    return [
        *(sys.executable, "-m", "dragoman", "router", "--host", "127.0.0.1", "--port", str(port)),
        *("--admin-port", "0", "--static", fleet, "--log-level", "warning"),
        *("--request-timeout-s", "125", "--lame-duck-s", "0"),
    ]


if __name__ == "__main__":
    main()
