"""Sockets that listen on IPv6 and IPv4."""

from __future__ import annotations

import errno
import os
import socket

ANY_HOST = "::"
"""All addresses, of IPv6 and IPv4."""
_NO_IPV6 = (errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT, errno.EADDRNOTAVAIL)


def bound_socket(host: str, port: int, write_timeout_s: float | None = None) -> socket.socket:
    """A TCP socket that is bound and does not listen yet.

    Args:
        host: Address. `ANY_HOST` stands for all of both families, and for all of IPv4 on a machine without IPv6.
        port: TCP port; 0: any free port.
        write_timeout_s: Maximum time without progress on a connection that has data to send; None: the system's.

    Raises:
        OSError: The address is not available; the message is a sentence.
    """
    try:
        try:
            return _bound(host, port, write_timeout_s)
        except OSError as error:
            if host != ANY_HOST or error.errno not in _NO_IPV6:
                raise
            return _bound("", port, write_timeout_s)  # Every address of IPv4.
    except OSError as error:
        raise OSError(f"cannot listen on {host} port {port}: {os.strerror(error.errno or 0)}") from error


def _bound(host: str, port: int, write_timeout_s: float | None) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if made.family == socket.AF_INET6:
            # Otherwise the kernel's net.ipv6.bindv6only decides.
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        if write_timeout_s is not None:
            # Accepted connections inherit it.
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(1000 * write_timeout_s))
        made.bind((host, port))
    except OSError:
        made.close()
        raise
    return made
