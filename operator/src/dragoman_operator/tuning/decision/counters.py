"""What one engine pod has counted since it began, as far as its release of vLLM says it.

A name that is absent is missing, never zero.

Source: vllm/v1/metrics/loggers.py of vLLM 0.26 to 0.32
"""

from __future__ import annotations

from dataclasses import dataclass

from dragoman_operator.autoscaling.sources.engine_metrics import KV_USAGE, MOST, RUNNING, WAITING, series
from dragoman_operator.errors import MetricsError

TOKENS = "vllm:generation_tokens_total"
DECODE = "vllm:request_decode_time_seconds"
"""Histogram of the time from a sequence's first token to its last. Not that between two tokens: the engine's process
may tell of an answer's tokens together."""
WRITTEN = "vllm:request_generation_tokens"
"""Histogram of how many tokens a sequence had, the first among them."""
QUEUE = "vllm:request_queue_time_seconds"
FINISHED = "vllm:request_success_total"
PREEMPTIONS = "vllm:num_preemptions_total"
REFUSED = "dragoman_admission_refusals_total"
"""Our pod's own: what it did not take on."""

NAMES = (
    *(*RUNNING, *WAITING, *KV_USAGE, TOKENS, FINISHED, PREEMPTIONS, REFUSED),
    *(f"{name}{end}" for name in (DECODE, WRITTEN, QUEUE) for end in ("_sum", "_count")),
)


@dataclass(frozen=True, slots=True)
class Counters:
    """One pod at one moment; what is None, it does not say.

    Attributes:
        at: When, Unix seconds.
        running: Sequences in the batch.
        waiting: Requests in the queue.
        kv_usage: Mean share of the KV caches in use, 0 to 1.
        tokens: Tokens written.
        decode_s: Seconds between tokens, added up over all sequences that ended.
        decode_n: How many tokens these were.
        queue_s: Seconds that requests waited in the queue.
        queue_n: How many requests these were.
        finished: Requests that ended, well or not.
        lost: Requests that ended in an error of the engine, or were refused.
        preemptions: How often a sequence lost its place in the KV cache.
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
    lost: float | None = None
    preemptions: float | None = None


def counters(page: str, at: float) -> Counters:
    """Read a /metrics page.

    Raises:
        MetricsError: It is none, or does not say how many requests run and wait.
    """
    found: dict[str, list[float]] = {}
    failed = 0.0
    for sample in series(page, NAMES):
        if 0 <= sample.value <= MOST:
            found.setdefault(sample.name, []).append(sample.value)
            if sample.name == FINISHED and sample.labels.get("finished_reason") == "error":
                failed += sample.value

    def total(*names: str) -> float | None:
        return next((sum(found[name]) for name in names if name in found), None)

    running, waiting = total(*RUNNING), total(*WAITING)
    if running is None or waiting is None:
        missing = (RUNNING if running is None else WAITING)[0]
        raise MetricsError(f"there is no {missing} among the metrics: is this a vLLM?")
    usage = next((found[name] for name in KV_USAGE if name in found), None)
    refused, queue_n = total(REFUSED), total(f"{QUEUE}_count")
    written, ended = total(f"{WRITTEN}_sum"), total(f"{WRITTEN}_count")
    finished = total(FINISHED)
    return Counters(
        at=at,
        running=running,
        waiting=waiting,
        kv_usage=None if usage is None else sum(usage) / len(usage),
        tokens=total(TOKENS),
        decode_s=total(f"{DECODE}_sum"),
        decode_n=None if written is None or ended is None else written - ended,
        queue_s=total(f"{QUEUE}_sum"),
        queue_n=queue_n,
        # Each request that leaves the engine has been counted there as well.
        finished=queue_n if finished is None else finished,
        lost=None if finished is None and refused is None else failed + (refused or 0.0),
        preemptions=total(PREEMPTIONS),
    )
