"""What vLLM's metrics say of one engine, under their names of today and of before.

A name that is absent is missing, never zero: an exposition without the running or the waiting requests says
nothing at all.

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
"""Names of a metric, the current one first; of several that are there the first counts."""

NAMES = (*RUNNING, *WAITING, *KV_USAGE, *FINISHED)

MOST = 1e15
"""Counters of an engine that ran for years are below; NaN, infinity and negative figures are no reading."""

Value = tuple[str, float]
"""The name of a series, and what it says; its labels do not matter here."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One engine pod's metrics at one moment.

    Attributes:
        at: When they were read, Unix seconds.
        running: Sequences in its engines.
        waiting: Requests in their queues.
        kv_usage: Mean share of their KV caches in use, 0 to 1; None where there is no such metric.
        finished: Requests finished since the pod began; None where there is no such metric.
    """

    at: float
    running: float
    waiting: float
    kv_usage: float | None
    finished: float | None


def parse_exposition(text: str) -> list[Value]:
    """The values of the metrics in `NAMES` from a /metrics page.

    Raises:
        MetricsError: One of these lines is none of Prometheus' text format.
    """
    return [(sample.name, sample.value) for sample in series(text, NAMES)]


def series(text: str, names: tuple[str, ...]) -> list[Sample]:
    """The series of some metrics from a /metrics page; all other lines are not even parsed.

    Args:
        text: The page.
        names: What a line begins with.

    Raises:
        MetricsError: One of these lines is none of Prometheus' text format.
    """
    ours = "\n".join(line for line in text.splitlines() if line.startswith(names))
    try:
        return [sample for family in text_string_to_metric_families(ours + "\n") for sample in family.samples]
    except (ValueError, IndexError, KeyError) as error:
        raise MetricsError(f"no metrics in Prometheus' text format: {error}") from error


def reading(values: Iterable[Value], at: float) -> Reading:
    """Put the series of one pod together: there is one of each kind per engine, of finished requests one per cause.

    Args:
        values: Their names and values, in any order.
        at: When they were read, Unix seconds.

    Raises:
        MetricsError: The pod does not say how many requests run and wait.
    """
    found: dict[str, list[float]] = {}
    for name, value in values:
        if 0 <= value <= MOST:
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
    """What the autoscaler is shown of a pod.

    Args:
        now: The latest reading.
        before: The one before it, None at the first. A counter that fell since is that of a restarted engine,
            and tells no rate.
    """
    rate = None
    if before is not None and now.finished is not None and before.finished is not None:
        more, span_s = now.finished - before.finished, now.at - before.at
        rate = more / span_s if more >= 0 and span_s > 0 else None
    return ReplicaSample(now.at, now.running, now.waiting, now.kv_usage, rate)


def _first(found: dict[str, list[float]], names: tuple[str, ...]) -> list[float] | None:
    return next((found[name] for name in names if name in found), None)
