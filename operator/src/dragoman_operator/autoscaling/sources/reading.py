"""What a source of metrics answers, and reading an answer that may be of any size."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

import aiohttp

from dragoman_operator.autoscaling.decision import ReplicaSample
from dragoman_operator.errors import MetricsError


@dataclass(frozen=True, slots=True)
class Heard:
    """One reading of one deployment's pods.

    Attributes:
        samples: By the uid of a pod: the last that was heard of it, which may be old.
        problems: Why a pod was not heard of this time, by its name.
        failure: Why none was, where the source as a whole failed; names it.
        interval_s: Seconds between two samples of a pod, where that is longer than between two readings.
    """

    samples: Mapping[str, ReplicaSample] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    failure: str | None = None
    interval_s: float = 0.0


async def body_of(response: aiohttp.ClientResponse, most_bytes: int) -> bytes:
    """The answer's body.

    Raises:
        MetricsError: It is longer than `most_bytes`.
    """
    parts, size = [], 0
    async for part in response.content.iter_chunked(1 << 16):
        size += len(part)
        if size > most_bytes:
            raise MetricsError(f"the answer has more than {most_bytes >> 20} MiB")
        parts.append(part)
    return b"".join(parts)


def in_words(error: Exception, timeout_s: float) -> str:
    """Why an HTTP request failed, for a person."""
    if isinstance(error, TimeoutError):
        return f"no answer within {timeout_s:g} s"
    if isinstance(error, aiohttp.ClientConnectorError):
        number = error.os_error.errno
        return f"cannot be reached: {os.strerror(number) if number else error.os_error}"
    if isinstance(error, aiohttp.ClientConnectionError):
        return "the connection broke off"
    return str(error) or type(error).__name__
