"""Comparison of a trial with the former maxNumSeqs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from dragoman_operator.tuning.decision.measurements import Bin, Measurements, evidence

MARGIN = 0.03
"""Minimum significant difference in throughput."""

DEVIATIONS = 2.0
"""Standard errors that a difference must exceed (a significance level of 5%)."""

MIN_SAMPLES = 8
"""Minimum number of samples of each value."""

MIN_REQUESTS = 50
"""Minimum number of finished requests of each value."""

MIN_COMMON_RATIO = 0.3
"""Minimum ratio of the trial's samples at loads that the former value was measured at."""

MAX_EXTRA_LOSS = 0.01
"""Maximum increase of the ratio of lost requests."""


class Outcome(StrEnum):
    """Result of a comparison, for the new value."""

    BETTER = "Better"
    EQUAL = "Equal"
    WORSE = "Worse"
    INCONCLUSIVE = "Inconclusive"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A result, with its reason."""

    outcome: Outcome
    reason: str


def compare(before: Measurements, after: Measurements, *, side_by_side: bool) -> Comparison:
    """Compare two values by throughput: tokens per second that a request spends in the pod, its queue time included.

    With equal requests in flight this is the throughput of a replica; with equal arrivals it is the inverse of the
    latency. It is valid whichever of the two the load balancer keeps equal. Side by side, all samples are compared;
    one after the other, those with similar requests in flight, because the load may have changed. More lost requests
    reject the new value regardless of throughput.
    """
    requests = min(before.finished, after.finished)
    if requests < MIN_REQUESTS:
        return Comparison(Outcome.INCONCLUSIVE, f"{requests:.0f} of {MIN_REQUESTS} requests were measured")
    if (lost := _loses(before, after)) is not None:
        return Comparison(Outcome.WORSE, lost)
    pairs = _pairs(before, after, side_by_side)
    samples = (
        min(sum(one.rated for one, _ in pairs), sum(other.rated for _, other in pairs)) if pairs else 0.0
    )
    if samples < MIN_SAMPLES:
        return Comparison(
            Outcome.INCONCLUSIVE, f"{samples:.0f} of {MIN_SAMPLES} samples at equal load were taken"
        )
    if sum(other.rated for _, other in pairs) < MIN_COMMON_RATIO * sum(
        one.rated for one in after.bins.values()
    ):
        return Comparison(Outcome.INCONCLUSIVE, "the load changed")
    gain, error = _difference(pairs)
    result = f"{gain:+.1%} throughput, ±{DEVIATIONS * error:.1%}{_waits(before, after)}"
    if abs(gain) > MARGIN and abs(gain) > DEVIATIONS * error:
        return Comparison(Outcome.BETTER if gain > 0 else Outcome.WORSE, result)
    # Equal only if a significant loss would have been detected.
    if gain - DEVIATIONS * error < -2 * MARGIN:
        return Comparison(Outcome.INCONCLUSIVE, result)
    return Comparison(Outcome.EQUAL, result)


def _pairs(before: Measurements, after: Measurements, side_by_side: bool) -> list[tuple[Bin, Bin]]:
    if side_by_side:
        pair = before.total, after.total
        return [pair] if pair[0].rated and pair[1].rated else []
    both = sorted(before.bins.keys() & after.bins.keys())
    pairs = [(before.bins[step], after.bins[step]) for step in both]
    return [(one, other) for one, other in pairs if one.rated > 1 and other.rated > 1 and one.throughput > 0]


def _difference(pairs: list[tuple[Bin, Bin]]) -> tuple[float, float]:
    """Relative difference of throughput and its standard error, weighted by samples."""
    weights = [one.rated * other.rated / (one.rated + other.rated) for one, other in pairs]
    total, gain, variance = sum(weights), 0.0, 0.0
    for weight, (one, other) in zip(weights, pairs, strict=True):
        share = weight / total
        old, new = one.throughput / one.rated, other.throughput / other.rated
        if old <= 0:
            continue
        gain += share * (new / old - 1)
        variance += share**2 * (_error_squared(other) + (new / old) ** 2 * _error_squared(one)) / old**2
    return gain, math.sqrt(variance)


def _error_squared(one: Bin) -> float:
    mean = one.throughput / one.rated
    spread = max(0.0, one.throughput_squares / one.rated - mean**2)
    return spread / max(1.0, one.rated - 1)


def _loses(before: Measurements, after: Measurements) -> str | None:
    """The reason if significantly more requests are lost; else None."""
    if before.lost is None or after.lost is None:
        return None
    requests = before.finished + before.lost, after.finished + after.lost
    old, new = before.lost / requests[0], after.lost / requests[1]
    share = (before.lost + after.lost) / sum(requests)
    error = math.sqrt(share * (1 - share) * (1 / requests[0] + 1 / requests[1]))
    if new - old > MAX_EXTRA_LOSS and new - old > DEVIATIONS * error:
        return f"{new:.1%} of its requests are lost, {old:.1%} before"
    return None


def _waits(before: Measurements, after: Measurements) -> str:
    """Queue times and times per token, if reported."""
    old, new = evidence(before, 0.0), evidence(after, 0.0)
    result = ""
    if old.queue_s is not None and new.queue_s is not None:
        result += f"; queue {old.queue_s:.2g} → {new.queue_s:.2g} s"
    if old.token_s is not None and new.token_s is not None:
        result += f"; {1000 * old.token_s:.3g} → {1000 * new.token_s:.3g} ms a token"
    return result
