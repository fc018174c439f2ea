"""Reads a server's Prometheus metrics: vLLM's own histograms have what a client cannot see.

Source: https://docs.vllm.ai/en/latest/usage/metrics/
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aiohttp

from dragoman_tune.errors import MetricsError
from dragoman_tune.figures import quantile

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


EVERY_S = 1.0
IN_FLIGHT_SHARE = 0.95
"""A percentile of the peak that a single outlier does not change."""


def peak_in_flight(scrapes: Sequence[Scrape]) -> int:
    """95th percentile of the requests running and waiting, at least 1.

    Raises:
        MetricsError: vLLM's gauges are not among them, or nothing was in flight.
    """
    try:
        counts = [one["vllm:num_requests_running"] + one["vllm:num_requests_waiting"] for one in scrapes]
    except KeyError as missing:
        raise MetricsError(f"the metrics have no {missing.args[0]}: is this an engine pod?") from None
    peak = quantile(counts, IN_FLIGHT_SHARE) or 0.0
    if peak < 1:
        raise MetricsError(
            "nothing was in flight while the deployment was watched: watch it under its usual load"
        )
    return math.ceil(peak)


async def watched(url: str, seconds: float) -> int:
    """`peak_in_flight` of a running pod during the next `seconds`.

    Raises:
        MetricsError: Its metrics cannot be read, or show no load.
    """
    scrapes = []
    end_s = time.monotonic() + seconds
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session:
        while True:
            scrapes.append(await scrape(session, url))
            if time.monotonic() >= end_s:
                return peak_in_flight(scrapes)
            await asyncio.sleep(EVERY_S)
