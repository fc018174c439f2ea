"""Reads a server's Prometheus metrics: vLLM's own histograms have what a client cannot see.

Source: https://docs.vllm.ai/en/latest/usage/metrics/
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import aiohttp

from dragoman_tune.errors import MetricsError

WITHIN_S = 5.0
"""A server that is too busy to report metrics must not delay the measurement."""

Scrape = Mapping[str, float]
"""Values by metric name, summed over labels; buckets are left out."""


@dataclass(frozen=True)
class EngineTimes:
    """Means over all requests that ended between two scrapes, in seconds; None where unknown.

    Args:
        queue_s: Wait for a place in the batch.
        compute_s: Prefill and decode.
    """

    first_token_s: float | None
    per_output_token_s: float | None
    queue_s: float | None
    compute_s: float | None


def parsed(text: str) -> Scrape:
    """Metrics from Prometheus' text format."""
    values: dict[str, float] = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        name = line.partition("{")[0].partition(" ")[0]
        if name.endswith("_bucket"):
            continue
        try:
            value = float(line.rpartition(" ")[2])
        except ValueError:
            continue
        values[name] = values.get(name, 0.0) + value
    return values


def between(before: Scrape, after: Scrape) -> EngineTimes:
    """What the engine did between two scrapes."""

    def mean(name: str) -> float | None:
        count = after.get(f"{name}_count", 0.0) - before.get(f"{name}_count", 0.0)
        if not count:
            return None
        return (after.get(f"{name}_sum", 0.0) - before.get(f"{name}_sum", 0.0)) / count

    return EngineTimes(
        first_token_s=mean("vllm:time_to_first_token_seconds"),
        per_output_token_s=mean("vllm:request_time_per_output_token_seconds"),
        queue_s=mean("vllm:request_queue_time_seconds"),
        compute_s=mean("vllm:request_inference_time_seconds"),
    )


async def scrape(session: aiohttp.ClientSession, url: str) -> Scrape:
    """A server's metrics as they are now.

    Raises:
        MetricsError: It does not answer with metrics.
    """
    try:
        async with session.get(f"{url}/metrics", timeout=aiohttp.ClientTimeout(total=WITHIN_S)) as answer:
            if answer.status != 200:
                raise MetricsError(f"{url}/metrics answers with status {answer.status}")
            return parsed(await answer.text())
    except (aiohttp.ClientError, TimeoutError) as error:
        raise MetricsError(f"cannot read {url}/metrics: {type(error).__name__}: {error}") from error
