"""Limits of the HTTP server; what sets them imports no server."""

from __future__ import annotations

from dataclasses import dataclass

WRITE_TIMEOUT_S = 30.0
"""Default of routers and pods: a client that reads nothing of its response for this long is disconnected.

Set as TCP_USER_TIMEOUT (RFC 5482; tcp(7)) on the listening socket, and inherited by accepted ones: only the kernel
knows the progress of data that it has buffered.
"""

KEEP_ALIVE_S = 75
"""Longer than clients and proxies (60 s as a rule) keep an idle connection, so that they close it and no request
meets a closing one."""
BACKLOG = 4096

MAX_PIPELINED = 16
"""Requests that wait for the response to one before them; one read of 256 KB could bring 14,000, parsed at once."""
MAX_SHORT_CHUNKS = 1024
"""Chunks of a body that may be short; any further ones have to be `MIN_CHUNK_BYTES` long on average."""
MIN_CHUNK_BYTES = 64
FIRST_BYTE_TIMEOUT_S = 30.0
"""Maximum time from a connection to its first byte."""
CROWDED_TIMEOUT_S = 5.0
"""The same of a connection beyond the maximum."""
MAX_CROWDED = 1000
"""Connections beyond the maximum whose requests are refused with an answer; further ones are closed without."""


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Limits on the head of a request.

    Args:
        head_bytes: Request line and headers together.
        headers: Number of headers. Each costs a step; ten thousand short ones would delay others for milliseconds.
        address_bytes: Path and query. Decoding takes 0.1 µs a byte, 0.7 µs where all are percent signs.
        arrival_timeout_s: Seconds from the first byte of a request to its last.
    """

    head_bytes: int
    headers: int
    address_bytes: int
    arrival_timeout_s: float
