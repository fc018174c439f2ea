"""Clients as rates know them: by address."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, ip_address, ip_network

MAX_ADDRESSES = 10_000
"""Maximum number of addresses of which something is kept."""
MAX_CHARS = 64
IPV6_PREFIX = 64
"""The smallest network that a client of IPv6 gets. Source: RFC 6177."""


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
