"""The load of a running deployment, from its metrics."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence

import aiohttp

from dragoman_tune.errors import MetricsError
from dragoman_tune.figures import quantile
from dragoman_tune.scrape import Scrape, scrape

EVERY_S = 1.0
IN_FLIGHT_SHARE = 0.95
"""The seeds sized for their peak of about 20; a 95th percentile is a peak that one outlier does not make."""


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
