"""vLLM's metrics of one engine pod.

A missing metric is None, never zero. A page without running or waiting requests is an error.

Source: https://docs.vllm.ai/en/latest/usage/metrics/ and vllm/v1/metrics/loggers.py of vLLM 0.32
"""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from dragoman_operator.errors import MetricsError
from dragoman_operator.scraping.values import EngineMetrics

RUNNING = "vllm:num_requests_running"
WAITING = "vllm:num_requests_waiting"
KV_USAGE = "vllm:kv_cache_usage_perc"
FINISHED = "vllm:request_success_total"
TOKENS = "vllm:generation_tokens_total"
DECODE = "vllm:request_decode_time_seconds"
"""Histogram of the time from a sequence's first token to its last. The time between two tokens is not used: the
engine process may report several tokens at once."""
WRITTEN = "vllm:request_generation_tokens"
"""Histogram of the number of tokens of a sequence, including the first."""
QUEUE = "vllm:request_queue_time_seconds"
REFUSED = "dragoman_admission_refusals_total"
"""Of the pod itself: requests that it refused because its queue was full."""
PREEMPTIONS = "vllm:num_preemptions_total"

LOAD_NAMES = (RUNNING, WAITING, KV_USAGE, FINISHED, REFUSED)
TUNING_NAMES = (
    *(*LOAD_NAMES, TOKENS, PREEMPTIONS),
    *(f"{name}{end}" for name in (DECODE, WRITTEN, QUEUE) for end in ("_sum", "_count")),
)

MAX_COUNTER = 1e15
"""Maximum of a plausible counter; NaN, infinity and negative values are ignored."""


def read_page(page: str, names: tuple[str, ...], at: float) -> EngineMetrics:
    """Read these series of a /metrics page; other lines are not parsed.

    Raises:
        MetricsError: It is malformed, or running or waiting requests are missing.
    """
    ours = "\n".join(line for line in page.splitlines() if line.startswith(names))
    try:
        samples = [each for family in text_string_to_metric_families(ours + "\n") for each in family.samples]
    except (ValueError, IndexError, KeyError) as error:
        raise MetricsError(f"no metrics in Prometheus' text format: {error}") from error
    return read_samples(samples, at)


def read_samples(samples: Iterable[Sample], at: float) -> EngineMetrics:
    """Combine the series of one pod: one per engine, and for finished requests one per reason.

    Raises:
        MetricsError: Running or waiting requests are missing.
    """
    found: dict[str, list[float]] = {}
    for sample in samples:
        if 0 <= sample.value <= MAX_COUNTER:
            found.setdefault(sample.name, []).append(sample.value)

    def total(name: str) -> float | None:
        return sum(found[name]) if name in found else None

    running, waiting = total(RUNNING), total(WAITING)
    if running is None or waiting is None:
        missing = RUNNING if running is None else WAITING
        raise MetricsError(f"there is no {missing} among the metrics: is this a vLLM?")
    usage = found.get(KV_USAGE)
    finished, queue_n = total(FINISHED), total(f"{QUEUE}_count")
    written, ended = total(f"{WRITTEN}_sum"), total(f"{WRITTEN}_count")
    return EngineMetrics(
        at=at,
        running=running,
        waiting=waiting,
        kv_usage=None if usage is None else sum(usage) / len(usage),
        tokens=total(TOKENS),
        decode_s=total(f"{DECODE}_sum"),
        decode_n=None if written is None or ended is None else written - ended,
        queue_s=total(f"{QUEUE}_sum"),
        queue_n=queue_n,
        # The queue time histogram counts every finished request as well.
        finished=queue_n if finished is None else finished,
        preemptions=total(PREEMPTIONS),
        refused=total(REFUSED),
    )
