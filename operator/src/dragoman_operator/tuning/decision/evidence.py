"""What a tally comes to: the figures that a size is chosen by, and that the status shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from dragoman_operator.tuning.decision.tally import KV_BINS, Bin, Tally

LEAST_LOOKS = 6
"""Looks at about the same load, below which their time per token is not believed."""


class Point(NamedTuple):
    """The time that one running sequence takes for a token, beside so many."""

    running: float
    token_s: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """Figures of one window; what is None, the pods did not say. All but `lost` are of one replica.

    Attributes:
        window_s: How long the window was.
        looks: Looks at a replica that had requests.
        requests: Requests that ended.
        p50: Requests in flight in half the time in which there were any.
        p95: Requests in flight in 95% of it.
        queue_ratio: Share of the requests in flight that waited, 0 to 1.
        queue_s: Seconds that a request waited.
        kv_p95: Share of the KV cache in use in 95% of the time, 0 to 1.
        kv_each: Share of the KV cache that a sequence takes, on average.
        preemptions: Preemptions for each request.
        lost_ratio: Share of the requests that failed or were refused, 0 to 1.
        token_s: Seconds that a running sequence took for a token.
        tokens_per_s: Tokens that a replica wrote, while it had requests.
        curve: Time per token by sequences that ran, fewest first.
    """

    window_s: float
    looks: float
    requests: float
    p50: float
    p95: float
    queue_ratio: float
    queue_s: float | None
    kv_p95: float | None
    kv_each: float | None
    preemptions: float | None
    lost_ratio: float | None
    token_s: float | None
    tokens_per_s: float | None
    curve: tuple[Point, ...]


def evidence(tally: Tally, now: float) -> Evidence:
    """The figures of a tally that ends now."""
    bins = [one for _, one in sorted(tally.bins.items())]
    in_flight_s, running_s = sum(one.in_flight_s for one in bins), sum(one.running_s for one in bins)
    busy_s, tokens = sum(one.span_s for one in bins if one.paced), sum(one.tokens for one in bins)
    asked = tally.finished + (tally.lost or 0.0)
    return Evidence(
        window_s=max(0.0, now - tally.began),
        looks=tally.looks,
        requests=tally.finished,
        p50=_in_flight(bins, 0.5),
        p95=_in_flight(bins, 0.95),
        queue_ratio=max(0.0, 1 - running_s / in_flight_s) if in_flight_s else 0.0,
        queue_s=tally.queue_s / tally.queue_n if tally.queue_n else None,
        kv_p95=_kv(tally, 0.95),
        kv_each=tally.kv_s / tally.kv_running_s if tally.kv_s and tally.kv_running_s else None,
        preemptions=tally.preemptions / tally.finished
        if tally.preemptions is not None and tally.finished
        else None,
        lost_ratio=tally.lost / asked if tally.lost is not None and asked else None,
        token_s=_token_s(_together(bins)),
        tokens_per_s=tokens / busy_s if busy_s and tokens else None,
        curve=_curve(bins),
    )


def _together(bins: list[Bin]) -> Bin:
    total = Bin()
    for one in bins:
        total = total.plus(one)
    return total


def _in_flight(bins: list[Bin], share: float) -> float:
    """Requests in flight below which a replica was for this share of the time in which it had any."""
    left_s = share * sum(one.span_s for one in bins)
    for one in bins:
        left_s -= one.span_s
        if left_s <= 1e-9:
            return one.in_flight_s / one.span_s
    return 0.0


def _kv(tally: Tally, share: float) -> float | None:
    left = share * sum(tally.kv)
    if not left:
        return None
    for step, looks in enumerate(tally.kv):
        left -= looks
        if left <= 1e-9:
            return (step + 1) / KV_BINS
    return 1.0


def _token_s(one: Bin) -> float | None:
    """From the tokens written, which all releases count; the histogram leaves out what prefills cost."""
    if one.tokens:
        return one.token_running_s / one.tokens
    return one.decode_s / one.decode_n if one.decode_n else None


def _curve(bins: list[Bin]) -> tuple[Point, ...]:
    """A point for each bin; those in which the batch was equally full are one, whatever waited behind it."""
    merged: list[Bin] = []
    for one in sorted((one for one in bins if one.running_s), key=lambda one: one.running_s / one.span_s):
        if merged and _running(one) < 1.15 * _running(merged[-1]):
            merged[-1] = merged[-1].plus(one)
        else:
            merged.append(one)
    return tuple(
        Point(_running(one), token_s)
        for one in merged
        if one.looks >= LEAST_LOOKS and (token_s := _token_s(one))
    )


def _running(one: Bin) -> float:
    return one.running_s / one.span_s
