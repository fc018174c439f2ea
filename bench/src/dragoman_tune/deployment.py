"""What a running deployment's metrics say of its load: how many requests are in flight, and how long they are."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import aiohttp

from dragoman_tune.errors import MetricsError
from dragoman_tune.figures import quantile
from dragoman_tune.scrape import Scrape, scrape

EVERY_S = 1.0
IN_FLIGHT_SHARE = 0.95
"""The seeds sized for their peak of about 20; a 95th percentile is a peak that one outlier does not make."""


@dataclass(frozen=True)
class Observed:
    """What was seen of a deployment.

    Args:
        in_flight: 95th percentile of requests running and waiting, at least 1.
        prompt_tokens: Mean tokens of a prompt; None where no request ended meanwhile.
        output_tokens: Mean tokens of an answer; None likewise.
    """

    in_flight: int
    prompt_tokens: float | None
    output_tokens: float | None


def observed(scrapes: Sequence[Scrape]) -> Observed:
    """The load that a series of scrapes shows.

    Raises:
        MetricsError: vLLM's gauges are not among them, or nothing was in flight.
    """
    counts = [_in_flight(one) for one in scrapes]
    peak = quantile(counts, IN_FLIGHT_SHARE) or 0.0
    if peak < 1:
        raise MetricsError(
            "nothing was in flight while the deployment was watched: watch it under its usual load"
        )
    ended = _grown(scrapes, "vllm:request_success_total")
    return Observed(
        in_flight=math.ceil(peak),
        prompt_tokens=_grown(scrapes, "vllm:prompt_tokens_total") / ended if ended else None,
        output_tokens=_grown(scrapes, "vllm:generation_tokens_total") / ended if ended else None,
    )


async def watched(url: str, seconds: float) -> Observed:
    """Watch a deployment.

    Raises:
        MetricsError: Its metrics cannot be read, or show no load.
    """
    scrapes = []
    end_s = time.monotonic() + seconds
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session:
        while True:
            scrapes.append(await scrape(session, url))
            if time.monotonic() >= end_s:
                return observed(scrapes)
            await asyncio.sleep(EVERY_S)


def _in_flight(found: Scrape) -> float:
    try:
        return found["vllm:num_requests_running"] + found["vllm:num_requests_waiting"]
    except KeyError as missing:
        raise MetricsError(f"the metrics have no {missing.args[0]}: is this an engine pod?") from None


def _grown(scrapes: Sequence[Scrape], name: str) -> float:
    return scrapes[-1].get(name, 0.0) - scrapes[0].get(name, 0.0)
