"""Whether a request comes from the router's own machine: by its connection, and by what it says of itself."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address

FORWARDED = {b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip"}
"""Headers that proxies add; behind one every connection may be of loopback."""


def is_local(peer: str, headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a request comes over loopback, through no proxy that says so, and names a host of loopback.

    A page of another site can reach loopback in its user's browser under a name of its own (DNS rebinding); `Host` then
    has that name.

    Args:
        peer: Address of the other end of the connection.
        headers: Names in lower case.
    """
    if not _is_loopback(peer):
        return False
    hosts = []
    for name, value in headers:
        if name in FORWARDED:
            return False
        if name == b"host":
            hosts.append(value.decode("latin-1").lower())
    return len(hosts) == 1 and (_name(hosts[0]) == "localhost" or _is_loopback(_name(hosts[0])))


def _name(host: str) -> str:
    """The host of `HOST[:PORT]`."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _is_loopback(address: str) -> bool:
    try:
        found = ip_address(address)
    except ValueError:
        return False
    # Where a socket of IPv6 accepts IPv4.
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback
