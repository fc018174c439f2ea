"""Measurements of pods with one maxNumSeqs: sums by the number of requests in flight, of bounded size; statistics.

A sample is the difference of two readings of one pod. Its requests in flight are the mean of both readings.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import reduce
from typing import Annotated, Any, NamedTuple

from pydantic import PlainSerializer

from dragoman_operator.scraping.values import EngineMetrics

LADDER = (
    *(1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072),
    4096,
)
"""Candidates for maxNumSeqs, in factors of 1.5 or 2; above eight they are multiples of it, for which vLLM has CUDA
graphs. Requests in flight are binned by the same steps."""

COUNTERS = ("tokens", "decode_s", "decode_n", "queue_s", "queue_n", "finished", "preemptions")
"""Metrics that only increase, until the engine is restarted."""

KV_BINS = 20
"""Bins of 5% of the KV cache."""

Sum = Annotated[float, PlainSerializer(lambda value: float(f"{value:.6g}"))]
"""Stored with six significant digits, because the status has a size limit."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Samples with similar requests in flight.

    Attributes:
        span_s: Their total length.
        in_flight_s: Requests in flight × seconds.
        running_s: Running sequences × seconds.
        token_s: Length of the samples with a number of tokens.
        token_running_s: Sequences × seconds of these samples.
        decode_s: Decode time, summed over sequences.
    """

    samples: Sum = 0.0
    span_s: Sum = 0.0
    in_flight_s: Sum = 0.0
    running_s: Sum = 0.0
    token_s: Sum = 0.0
    tokens: Sum = 0.0
    token_running_s: Sum = 0.0
    decode_s: Sum = 0.0
    decode_n: Sum = 0.0

    def plus(self, other: Bin) -> Bin:
        """The sum of both."""
        return Bin(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(Bin)))


@dataclass(frozen=True, slots=True)
class Measurements:
    """See the module.

    Attributes:
        span_s: Total length of all samples.
        bins: By the step of the ladder that the requests in flight do not exceed; idle samples have none.
        kv: Samples by KV cache usage, in `KV_BINS` bins; all 0 if not reported.
        kv_s: Share of the KV cache in use × seconds.
        kv_running_s: Sequences that ran in these samples × seconds.
        queue_s: Queue time, summed over requests.
        preemptions: Preempted sequences; None if not reported.
    """

    started: Annotated[float, PlainSerializer(lambda value: round(value, 1))] = 0.0
    span_s: Sum = 0.0
    bins: Mapping[int, Bin] = field(default_factory=dict)
    kv: tuple[float, ...] = (0.0,) * KV_BINS
    kv_s: Sum = 0.0
    kv_running_s: Sum = 0.0
    finished: float = 0.0
    queue_s: Sum = 0.0
    queue_n: float = 0.0
    preemptions: float | None = None

    def plus(self, other: Measurements) -> Measurements:
        """The sum of both."""
        steps = sorted(self.bins.keys() | other.bins.keys())
        sums: dict[str, Any] = {
            name: _added(getattr(self, name), getattr(other, name))
            for name in (
                "span_s",
                "kv_s",
                "kv_running_s",
                "finished",
                "queue_s",
                "queue_n",
                "preemptions",
            )
        }
        return Measurements(
            started=min(self.started, other.started),
            bins={step: self.bins.get(step, Bin()).plus(other.bins.get(step, Bin())) for step in steps},
            kv=tuple(map(sum, zip(self.kv, other.kv, strict=True))),
            **sums,
        )

    def seen(self, before: EngineMetrics, now: EngineMetrics) -> Measurements:
        """With one more sample; it is ignored if a counter fell, because the engine was restarted."""
        span_s = now.at - before.at
        increases = {name: _difference(getattr(before, name), getattr(now, name)) for name in COUNTERS}
        if span_s <= 0 or any(more is not None and more < 0 for more in increases.values()):
            return self
        sample = Measurements(
            started=self.started,
            span_s=span_s,
            bins=_binned(before, now, span_s, increases),
            kv=_kv_binned(now.kv_usage),
            kv_s=(now.kv_usage or 0.0) * span_s,
            kv_running_s=0.0 if now.kv_usage is None else now.running * span_s,
            finished=increases["finished"] or 0.0,
            queue_s=(increases["queue_s"] or 0.0) if increases["queue_n"] else 0.0,
            queue_n=increases["queue_n"] or 0.0,
            preemptions=increases["preemptions"],
        )
        return self.plus(sample)

    @property
    def total(self) -> Bin:
        """The sum of all bins."""
        return reduce(Bin.plus, self.bins.values(), Bin())

    @property
    def samples(self) -> float:
        """Number of samples with requests in flight."""
        return sum(one.samples for one in self.bins.values())


def _binned(
    before: EngineMetrics, now: EngineMetrics, span_s: float, increases: Mapping[str, float | None]
) -> dict[int, Bin]:
    running = (before.running + now.running) / 2
    in_flight = running + (before.waiting + now.waiting) / 2
    if in_flight <= 0:
        return {}
    tokens, decode_n = increases["tokens"], increases["decode_n"]
    one = Bin(
        samples=1.0,
        span_s=span_s,
        in_flight_s=in_flight * span_s,
        running_s=running * span_s,
        token_s=0.0 if tokens is None else span_s,
        tokens=tokens or 0.0,
        token_running_s=0.0 if tokens is None else running * span_s,
        decode_s=(increases["decode_s"] or 0.0) if decode_n else 0.0,
        decode_n=decode_n or 0.0,
    )
    return {LADDER[min(bisect_left(LADDER, in_flight), len(LADDER) - 1)]: one}


def _kv_binned(usage: float | None) -> tuple[float, ...]:
    if usage is None:
        return (0.0,) * KV_BINS
    at = min(int(min(max(usage, 0.0), 1.0) * KV_BINS), KV_BINS - 1)
    return tuple(float(step == at) for step in range(KV_BINS))


def _added(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else one + other


def _difference(before: float | None, now: float | None) -> float | None:
    return None if before is None or now is None else now - before


MIN_SAMPLES = 6
"""Minimum number of samples at similar load for a time per token."""


class TokenTime(NamedTuple):
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
    curve: tuple[TokenTime, ...]


def evidence(measured: Measurements, now: float) -> Evidence:
    """Statistics of measurements that end now."""
    bins = [one for _, one in sorted(measured.bins.items())]
    in_flight_s, running_s = sum(one.in_flight_s for one in bins), sum(one.running_s for one in bins)
    busy_s, tokens = sum(one.token_s for one in bins), sum(one.tokens for one in bins)
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


def _curve(bins: list[Bin]) -> tuple[TokenTime, ...]:
    """One point per bin; bins with a similar number of running sequences are merged."""
    merged: list[Bin] = []
    for one in sorted((one for one in bins if one.running_s), key=lambda one: one.running_s / one.span_s):
        if merged and _running(one) < 1.15 * _running(merged[-1]):
            merged[-1] = merged[-1].plus(one)
        else:
            merged.append(one)
    return tuple(
        TokenTime(_running(one), token_s)
        for one in merged
        if one.samples >= MIN_SAMPLES and (token_s := _token_s(one))
    )


def _running(one: Bin) -> float:
    return one.running_s / one.span_s
