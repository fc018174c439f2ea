"""URLs of Redis and Valkey servers, as routers and engine pods are given them."""

from __future__ import annotations

from urllib.parse import urlsplit


def redis_url(url: str) -> str:
    """A URL as the client library reads it: Valkey's schemes are Redis' under another name.

    Args:
        url: `redis://`, `rediss://`, `valkey://` or `valkeys://`.
    """
    scheme, separator, rest = url.partition("://")
    return {"valkey": "redis", "valkeys": "rediss"}.get(scheme, scheme) + separator + rest


def location(url: str) -> str:
    """A URL without user and password, for messages."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
