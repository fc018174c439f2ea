"""The maxNumSeqs that fits the measurements, and the comparison of a trial with the former value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from dragoman_operator.tuning.decision.measurements import (
    LADDER,
    Bin,
    Evidence,
    Measurements,
    Point,
    evidence,
)

MIN_REQUESTS = 100
"""Minimum number of requests for a recommendation."""

HEADROOM = 1.25
"""Sequences per request in flight at the 95th percentile; the inverse of the autoscaler's default target of 0.8."""

MIN_GAIN = 0.03
"""Minimum gain in throughput for replacing the pods; smaller ones may be noise. As in `dragoman tune`."""

EQUAL_RATIO = 0.01
"""Relative difference below which throughputs count as equal; the smaller value is then used. As in
`dragoman tune`."""

MIN_QUEUED_RATIO = 0.01
"""Ratio of waiting requests below which a higher value has no effect."""

OVERSIZED = 2.0
"""Factor above the value that fits from which the memory reserved by vLLM justifies replacing pods."""

MAX_FACTOR = 8
"""Maximum factor above the current value: what is beyond it has not been measured."""

FULL_KV, TARGET_KV = 0.95, 0.9
"""KV cache usage from which the cache limits the batch, and the target for the recommendation."""

PREEMPTED = 0.01
"""Preemptions per request from which they are significant: each computes a sequence again."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Range of the recommendation.

    Attributes:
        minimum: The minimum. The spec's own if the autoscaler's target depends on maxNumSeqs: a smaller one would
            only require more GPUs for the same load.
        busiest: Requests in flight on a replica at the 95th percentile of the busiest window of the last day.
    """

    current: int
    minimum: int
    maximum: int
    busiest: float = 0.0


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A maxNumSeqs, possibly the current one, with its reason."""

    max_num_seqs: int
    reason: str


def recommend_max_num_seqs(seen: Evidence, bounds: Bounds) -> Recommendation | None:
    """The smallest maxNumSeqs within 1% of the best throughput; None without enough data.

    It is increased only if requests wait and the time per token predicts a gain. It is decreased if throughput falls
    with the number of running sequences, the KV cache is too small for them, or it is at least twice too high.
    """
    if seen.requests < MIN_REQUESTS or not seen.p95:
        return None
    peak = seen.p95 * HEADROOM
    maximum = min(bounds.maximum, MAX_FACTOR * bounds.current)
    steps = sorted({bounds.current, bounds.minimum, *(s for s in LADDER if bounds.minimum <= s <= maximum)})
    enough = next((step for step in steps if step >= peak), steps[-1])
    fitting = _fitting_the_cache(seen, bounds)
    choices = [step for step in steps if step <= enough and (fitting is None or step <= fitting)] or [
        steps[0]
    ]
    fastest = max(_throughput(seen.curve, min(step, peak)) for step in choices)
    fits = next(
        step for step in choices if _throughput(seen.curve, min(step, peak)) >= fastest * (1 - EQUAL_RATIO)
    )
    return _weighed(fits, fitting, peak, seen, bounds)


def _weighed(fits: int, fitting: int | None, peak: float, seen: Evidence, bounds: Bounds) -> Recommendation:
    """The value that fits if the change is worthwhile; else the current one."""
    current = bounds.current
    load = f"{seen.p95:.3g} requests are in flight on a replica at the 95th percentile"
    gain = _throughput(seen.curve, min(fits, peak)) / _throughput(seen.curve, min(current, peak)) - 1
    if fits > current:
        if seen.queue_ratio < MIN_QUEUED_RATIO:
            return Recommendation(current, f"{current} fits: {load}, and none waits")
        if gain < MIN_GAIN:
            gained = f"{fits} would gain {gain:.0%} by the measured time per token"
            return Recommendation(current, f"{current} stays: {load}, but {gained}")
        waits = f"{seen.queue_ratio:.0%} of them wait because only {current} sequences run at once"
        return Recommendation(fits, f"{fits} instead of {current}: {load}, and {waits}")
    if fits == current:
        return Recommendation(current, f"{current} fits: {load}")
    if fitting is not None and current > fitting:
        full = f"the KV cache is full ({seen.kv_p95 or 0:.0%}, {seen.preemptions or 0:.2g} preemptions a request)"
        return Recommendation(fits, f"{fits} instead of {current}: {full}")
    if gain >= MIN_GAIN:
        slower = (
            f"by the measured time per token {fits} at once generate {gain:.0%} more tokens than {current}"
        )
        return Recommendation(fits, f"{fits} instead of {current}: {slower}")
    if current >= OVERSIZED * fits:
        if fits < min(bounds.busiest * HEADROOM, float(current)) and fits >= peak:
            busy = f"the maximum of the last day is {bounds.busiest:.3g}"
            return Recommendation(current, f"{current} stays: {load}, but {busy}")
        few = (
            f"only {load}"
            if fits >= peak
            else f"by the measured time per token {current} at once generate no more tokens"
        )
        return Recommendation(fits, f"{fits} instead of {current}: {few}")
    return Recommendation(current, f"{current} fits: {load}")


def _fitting_the_cache(seen: Evidence, bounds: Bounds) -> int | None:
    """Sequences that fit into the KV cache: at least the current value, unless the cache is full."""
    if not seen.kv_each:
        return None
    capacity = max((step for step in LADDER if step <= TARGET_KV / seen.kv_each), default=1)
    full = (seen.kv_p95 or 0.0) >= FULL_KV or (seen.preemptions or 0.0) >= PREEMPTED
    return capacity if full else max(capacity, bounds.current)


def _throughput(curve: Sequence[Point], running: float) -> float:
    """Tokens per second of a full batch, by the measured time per token; without any, proportional to the batch.

    Between points the time is interpolated. Below the first it is constant, a pessimistic assumption. Above the last
    it increases by the steeper of two slopes: of all points, and of the last two. A single point has no slope, as for a
    batch that is limited by memory bandwidth.
    """
    if not curve:
        return running
    first, last = curve[0], curve[-1]
    if running <= first.running:
        return running / first.token_s
    if running >= last.running:
        return running / (last.token_s + _slope(curve) * (running - last.running))
    above = next(at for at, point in enumerate(curve) if point.running >= running)
    low, high = curve[above - 1], curve[above]
    share = (running - low.running) / (high.running - low.running)
    return running / (low.token_s + share * (high.token_s - low.token_s))


def _slope(curve: Sequence[Point]) -> float:
    if len(curve) < 2:
        return 0.0
    mean_n = sum(point.running for point in curve) / len(curve)
    mean_s = sum(point.token_s for point in curve) / len(curve)
    spread = sum((point.running - mean_n) ** 2 for point in curve)
    fitted = sum((point.running - mean_n) * (point.token_s - mean_s) for point in curve) / spread
    before, last = curve[-2:]
    return max(0.0, fitted, (last.token_s - before.token_s) / (last.running - before.running))


MARGIN = 0.03
"""Minimum significant difference in throughput."""

DEVIATIONS = 2.0
"""Standard errors that a difference must exceed (a significance level of 5%)."""

MIN_TRIAL_SAMPLES = 8
"""Minimum number of samples of each value."""

MIN_TRIAL_REQUESTS = 50
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
    if requests < MIN_TRIAL_REQUESTS:
        return Comparison(
            Outcome.INCONCLUSIVE, f"{requests:.0f} of {MIN_TRIAL_REQUESTS} requests were measured"
        )
    if (lost := _loses(before, after)) is not None:
        return Comparison(Outcome.WORSE, lost)
    pairs = _pairs(before, after, side_by_side)
    samples = (
        min(sum(one.rated for one, _ in pairs), sum(other.rated for _, other in pairs)) if pairs else 0.0
    )
    if samples < MIN_TRIAL_SAMPLES:
        return Comparison(
            Outcome.INCONCLUSIVE, f"{samples:.0f} of {MIN_TRIAL_SAMPLES} samples at equal load were taken"
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
