"""Statistics of a measurement window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from dragoman_operator.tuning.decision.measurements import KV_BINS, Bin, Measurements

MIN_SAMPLES = 6
"""Minimum number of samples at similar load for a time per token."""


class Point(NamedTuple):
    """Time per token of a sequence, with this number of running sequences."""

    running: float
    token_s: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """Statistics of one window; None: not reported. All are per replica.

    Attributes:
        samples: Number of samples with requests in flight.
        p50: Median of requests in flight while busy.
        p95: 95th percentile of requests in flight while busy.
        queue_ratio: Ratio of requests in flight that waited, 0 to 1.
        kv_p95: 95th percentile of KV cache usage, 0 to 1.
        kv_each: Mean KV cache usage per sequence, 0 to 1.
        preemptions: Preemptions per request.
        token_s: Time per token of a running sequence in seconds.
        tokens_per_s: Output tokens per second while busy.
        curve: Time per token by number of running sequences, ascending.
    """

    window_s: float
    samples: float
    requests: float
    p50: float
    p95: float
    queue_ratio: float
    queue_s: float | None
    kv_p95: float | None
    kv_each: float | None
    preemptions: float | None
    token_s: float | None
    tokens_per_s: float | None
    curve: tuple[Point, ...]


def evidence(measured: Measurements, now: float) -> Evidence:
    """Statistics of measurements that end now."""
    bins = [one for _, one in sorted(measured.bins.items())]
    in_flight_s, running_s = sum(one.in_flight_s for one in bins), sum(one.running_s for one in bins)
    busy_s, tokens = sum(one.span_s for one in bins if one.rated), sum(one.tokens for one in bins)
    return Evidence(
        window_s=max(0.0, now - measured.started),
        samples=measured.samples,
        requests=measured.finished,
        p50=_in_flight(bins, 0.5),
        p95=_in_flight(bins, 0.95),
        queue_ratio=max(0.0, 1 - running_s / in_flight_s) if in_flight_s else 0.0,
        queue_s=measured.queue_s / measured.queue_n if measured.queue_n else None,
        kv_p95=_kv(measured, 0.95),
        kv_each=measured.kv_s / measured.kv_running_s if measured.kv_s and measured.kv_running_s else None,
        preemptions=measured.preemptions / measured.finished
        if measured.preemptions is not None and measured.finished
        else None,
        token_s=_token_s(measured.total),
        tokens_per_s=tokens / busy_s if busy_s and tokens else None,
        curve=_curve(bins),
    )


def _in_flight(bins: list[Bin], share: float) -> float:
    """Quantile of requests in flight, over the time with any."""
    left_s = share * sum(one.span_s for one in bins)
    for one in bins:
        left_s -= one.span_s
        if left_s <= 1e-9:
            return one.in_flight_s / one.span_s
    return 0.0


def _kv(measured: Measurements, share: float) -> float | None:
    left = share * sum(measured.kv)
    if not left:
        return None
    for step, samples in enumerate(measured.kv):
        left -= samples
        if left <= 1e-9:
            return (step + 1) / KV_BINS
    return 1.0


def _token_s(one: Bin) -> float | None:
    """From output tokens, which all releases count; the histogram does not include the cost of prefills."""
    if one.tokens:
        return one.token_running_s / one.tokens
    return one.decode_s / one.decode_n if one.decode_n else None


def _curve(bins: list[Bin]) -> tuple[Point, ...]:
    """One point per bin; bins with a similar number of running sequences are merged."""
    merged: list[Bin] = []
    for one in sorted((one for one in bins if one.running_s), key=lambda one: one.running_s / one.span_s):
        if merged and _running(one) < 1.15 * _running(merged[-1]):
            merged[-1] = merged[-1].plus(one)
        else:
            merged.append(one)
    return tuple(
        Point(_running(one), token_s)
        for one in merged
        if one.samples >= MIN_SAMPLES and (token_s := _token_s(one))
    )


def _running(one: Bin) -> float:
    return one.running_s / one.span_s
