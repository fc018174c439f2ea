"""Ports of loopback for servers that are started for a while."""

import random
import socket
from pathlib import Path

HOST = "127.0.0.1"
FIRST_PORT = 10_000
PORTS_TRIED = 100


def free_port() -> int:
    """A port of 127.0.0.1 on which no process listens at the moment.

    Below those that the kernel gives to outgoing connections, so that none of them takes it before the server listens,
    or while a server that has ended is started again.
    """
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    candidates = range(FIRST_PORT, lowest)
    for port in random.sample(candidates, min(PORTS_TRIED, len(candidates))):
        try:
            socket.create_server((HOST, port)).close()
        except OSError:
            continue
        return port
    with socket.create_server((HOST, 0)) as server:
        return int(server.getsockname()[1])
