"""vLLM's metrics of one engine, under their current and former names.

A missing metric is treated as missing, never as zero. A page without running or waiting requests is an error.

Source: https://docs.vllm.ai/en/latest/usage/metrics/
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from dragoman_operator.autoscaling.decision import ReplicaSample
from dragoman_operator.errors import MetricsError

RUNNING = ("vllm:num_requests_running",)
WAITING = ("vllm:num_requests_waiting",)
KV_USAGE = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
FINISHED = ("vllm:request_success_total",)
"""Names of a metric, the current one first; the first that exists is used."""

NAMES = (*RUNNING, *WAITING, *KV_USAGE, *FINISHED)

MAX_COUNTER = 1e15
"""Maximum of a plausible counter; NaN, infinity and negative values are ignored."""

Value = tuple[str, float]
"""Name and value of a series, without its labels."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One engine pod's metrics at one time.

    Attributes:
        at: Time of the scrape, Unix seconds.
        running: Running sequences in its engines.
        waiting: Requests in their queues.
        kv_usage: Mean KV cache usage, 0 to 1; None without this metric.
        finished: Requests finished since the pod started; None without this metric.
    """

    at: float
    running: float
    waiting: float
    kv_usage: float | None
    finished: float | None


def parse_exposition(text: str) -> list[Value]:
    """The values of the metrics in `NAMES` from a /metrics page.

    Raises:
        MetricsError: A line is not in Prometheus' text format.
    """
    return [(sample.name, sample.value) for sample in series(text, NAMES)]


def series(text: str, names: tuple[str, ...]) -> list[Sample]:
    """The series of some metrics from a /metrics page; other lines are not parsed.

    Args:
        text: The page.
        names: Prefixes of the lines.

    Raises:
        MetricsError: A line is not in Prometheus' text format.
    """
    ours = "\n".join(line for line in text.splitlines() if line.startswith(names))
    try:
        return [sample for family in text_string_to_metric_families(ours + "\n") for sample in family.samples]
    except (ValueError, IndexError, KeyError) as error:
        raise MetricsError(f"no metrics in Prometheus' text format: {error}") from error


def reading(values: Iterable[Value], at: float) -> Reading:
    """Combine the series of one pod: one per engine, and for finished requests one per reason.

    Args:
        values: Their names and values, in any order.
        at: Time of the scrape, Unix seconds.

    Raises:
        MetricsError: Running or waiting requests are missing.
    """
    found: dict[str, list[float]] = {}
    for name, value in values:
        if 0 <= value <= MAX_COUNTER:
            found.setdefault(name, []).append(value)
    running, waiting = _first(found, RUNNING), _first(found, WAITING)
    if running is None or waiting is None:
        missing = (RUNNING if running is None else WAITING)[0]
        raise MetricsError(f"there is no {missing} among the metrics: is this a vLLM?")
    usage, finished = _first(found, KV_USAGE), _first(found, FINISHED)
    return Reading(
        at=at,
        running=sum(running),
        waiting=sum(waiting),
        kv_usage=None if usage is None else sum(usage) / len(usage),
        finished=None if finished is None else sum(finished),
    )


def replica_sample(now: Reading, before: Reading | None) -> ReplicaSample:
    """A pod's sample for the autoscaler.

    Args:
        now: The latest reading.
        before: The reading before it; None for the first. After a counter reset, by a restarted engine, there is no
            rate.
    """
    rate = None
    if before is not None and now.finished is not None and before.finished is not None:
        more, span_s = now.finished - before.finished, now.at - before.at
        rate = more / span_s if more >= 0 and span_s > 0 else None
    return ReplicaSample(now.at, now.running, now.waiting, now.kv_usage, rate)


def _first(found: dict[str, list[float]], names: tuple[str, ...]) -> list[float] | None:
    return next((found[name] for name in names if name in found), None)
