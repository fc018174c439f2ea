"""Addresses of clients: by which their rates are limited, and whether a client is on the router's own machine."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, ip_address, ip_network

MAX_ADDRESSES = 10_000
"""Maximum number of addresses of which something is kept."""
MAX_CHARS = 64
IPV6_PREFIX = 64
"""The smallest network that a client of IPv6 gets. Source: RFC 6177."""
FORWARDED = {b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip"}
"""Headers that proxies add; behind one every connection may be of loopback."""


@lru_cache(maxsize=MAX_ADDRESSES)
def client_of(address: str) -> str:
    """The client behind an address: an IPv4 address, or the network of an IPv6 one, whose host may change at will.

    Args:
        address: Of a connection, or from a trusted proxy, which may send what is no address.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return address[:MAX_CHARS]
    if isinstance(parsed, IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ip_network((parsed.packed, IPV6_PREFIX), strict=False))


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
