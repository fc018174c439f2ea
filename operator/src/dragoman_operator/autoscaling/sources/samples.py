"""Result of a source of metrics; size limit and error text of its HTTP responses."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

import aiohttp

from dragoman_operator.autoscaling.decision import ReplicaSample
from dragoman_operator.errors import MetricsError


@dataclass(frozen=True, slots=True)
class SamplesResult:
    """Samples of one deployment's pods.

    Attributes:
        samples: The last sample by uid of the pod; it may be old.
        problems: Errors of this scrape, by name of the pod.
        failure: Error of the source as a whole; None without one.
        interval_s: Seconds between two samples of a pod, if longer than between two reads.
    """

    samples: Mapping[str, ReplicaSample] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    failure: str | None = None
    interval_s: float = 0.0


async def read_body(response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    """The body of a response.

    Raises:
        MetricsError: It is longer than `max_bytes`.
    """
    parts, size = [], 0
    async for part in response.content.iter_chunked(1 << 16):
        size += len(part)
        if size > max_bytes:
            raise MetricsError(f"the response has more than {max_bytes >> 20} MiB")
        parts.append(part)
    return b"".join(parts)


def describe_error(error: Exception, timeout_s: float) -> str:
    """Error text of a failed HTTP request."""
    if isinstance(error, TimeoutError):
        return f"no answer within {timeout_s:g} s"
    if isinstance(error, aiohttp.ClientConnectorError):
        number = error.os_error.errno
        return f"cannot be reached: {os.strerror(number) if number else error.os_error}"
    if isinstance(error, aiohttp.ClientConnectionError):
        return "the connection was lost"
    return str(error) or type(error).__name__
