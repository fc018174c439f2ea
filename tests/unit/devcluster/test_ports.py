"""Ports for servers that are started for a while."""

import socket
from pathlib import Path

from dragoman_devcluster import ports
from dragoman_devcluster.ports import FIRST_PORT, free_port


def test_ports_are_free_and_no_outgoing_connection_gets_them():
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    port = free_port()
    assert FIRST_PORT <= port < lowest
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_where_all_of_those_are_taken_it_is_any_port(monkeypatch):
    monkeypatch.setattr(ports, "PORTS_TRIED", 0)
    assert free_port() > 0
