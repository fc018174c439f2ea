"""What scraping reads: metrics of engine pods, and the load that routers report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class EngineMetrics:
    """Metrics of one pod, summed over its engines, at one time in Unix seconds; None: not reported.

    Attributes:
        kv_usage: Mean KV cache usage, 0 to 1.
        tokens: Output tokens.
        decode_s: Decode time, summed over finished sequences; `decode_n` tokens are in it.
        queue_s: Queue time, summed over `queue_n` requests.
        finished: Finished requests, failed ones included.
        refused: Requests refused because the queue was full.
    """

    at: float
    running: float
    waiting: float
    kv_usage: float | None = None
    tokens: float | None = None
    decode_s: float | None = None
    decode_n: float | None = None
    queue_s: float | None = None
    queue_n: float | None = None
    finished: float | None = None
    preemptions: float | None = None
    refused: float | None = None


class Reading(NamedTuple):
    """The last metrics of a pod, and those before them; None for the first."""

    now: EngineMetrics
    before: EngineMetrics | None = None


@dataclass(frozen=True, slots=True)
class Scrape:
    """What was read of one deployment's pods.

    Attributes:
        readings: The last metrics by uid of the pod; they may be old.
        problems: Errors of this scrape, by name of the pod.
        failure: Error of the source as a whole; None without one.
        interval_s: Seconds between two readings of a pod, if longer than between two reads.
        pairs: The metrics of the scrape before and of this one, by uid, of pods that were scraped in both for the
            same metrics.
    """

    readings: Mapping[str, Reading] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    failure: str | None = None
    interval_s: float = 0.0
    pairs: Mapping[str, tuple[EngineMetrics, EngineMetrics]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TotalLoad:
    """Load of one TranslationDeployment, summed over all routers.

    Attributes:
        in_flight: Requests sent to replicas and unfinished.
        not_reporting: Routers without a recent report; they may have queued requests.
    """

    queued: int = 0
    in_flight: int = 0
    not_reporting: int = 0
