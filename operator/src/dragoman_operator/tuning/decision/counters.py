"""Counters of one engine pod.

A missing metric is treated as missing, never as zero.

Source: vllm/v1/metrics/loggers.py of vLLM 0.26 to 0.32
"""

from __future__ import annotations

from dataclasses import dataclass

from dragoman_operator.autoscaling.sources.engine_metrics import (
    KV_USAGE,
    MAX_COUNTER,
    RUNNING,
    WAITING,
    series,
)
from dragoman_operator.errors import MetricsError

TOKENS = "vllm:generation_tokens_total"
DECODE = "vllm:request_decode_time_seconds"
"""Histogram of the time from a sequence's first token to its last. The time between two tokens is not used: the
engine process may report several tokens at once."""
WRITTEN = "vllm:request_generation_tokens"
"""Histogram of the number of tokens of a sequence, including the first."""
QUEUE = "vllm:request_queue_time_seconds"
FINISHED = "vllm:request_success_total"
PREEMPTIONS = "vllm:num_preemptions_total"
REFUSED = "dragoman_admission_refusals_total"
"""Metric of the pod: requests refused at admission."""

NAMES = (
    *(*RUNNING, *WAITING, *KV_USAGE, TOKENS, FINISHED, PREEMPTIONS, REFUSED),
    *(f"{name}{end}" for name in (DECODE, WRITTEN, QUEUE) for end in ("_sum", "_count")),
)


@dataclass(frozen=True, slots=True)
class Counters:
    """Counters of one pod at one time; None: not reported.

    Attributes:
        at: Unix seconds.
        running: Running sequences.
        waiting: Waiting requests.
        kv_usage: Mean KV cache usage, 0 to 1.
        tokens: Output tokens.
        decode_s: Decode time in seconds, summed over finished sequences.
        decode_n: Number of tokens in it.
        queue_s: Queue time in seconds, summed over requests.
        queue_n: Number of requests in it.
        finished: Finished requests, failed ones included.
        lost: Requests that failed in the engine or were refused.
        preemptions: Preemptions of sequences.
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
        MetricsError: It is malformed, or running or waiting requests are missing.
    """
    found: dict[str, list[float]] = {}
    failed = 0.0
    for sample in series(page, NAMES):
        if 0 <= sample.value <= MAX_COUNTER:
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
        # The queue time histogram counts every finished request as well.
        finished=queue_n if finished is None else finished,
        lost=None if finished is None and refused is None else failed + (refused or 0.0),
        preemptions=total(PREEMPTIONS),
    )
