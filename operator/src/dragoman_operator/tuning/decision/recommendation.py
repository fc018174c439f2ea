"""The maxNumSeqs that fits the measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman_operator.tuning.decision.measurements import LADDER, Evidence, TokenTime

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
        covers_a_day: Whether that day was measured from its start.
    """

    current: int
    minimum: int
    maximum: int
    busiest: float = 0.0
    covers_a_day: bool = True


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A maxNumSeqs, possibly the current one, with its reason."""

    max_num_seqs: int
    reason: str


def recommend_max_num_seqs(seen: Evidence, bounds: Bounds) -> Recommendation | None:
    """The smallest maxNumSeqs within 1% of the best throughput; None without enough data.

    It is increased only if requests wait and the time per token predicts a gain. It is decreased if throughput falls
    with the number of running sequences, the KV cache is too small for them, or it is at least twice too high. The last
    reason needs measurements of a whole day: after a quiet hour, the next burst would be refused.
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
        if peak <= current or seen.queue_ratio < MIN_QUEUED_RATIO or current >= bounds.maximum:
            return Recommendation(current, f"{current} fits: {load}")
        limit = "by the measured time per token more at once generate no more tokens"
        if fitting is not None and fitting <= current:
            limit = f"the KV cache has no space for more: a sequence takes {seen.kv_each or 0:.1%}"
        return Recommendation(current, f"{current} stays: {load}, but {limit}")
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
        if fits >= peak and not bounds.covers_a_day:
            return Recommendation(current, f"{current} stays: {load}, but less than a day was measured")
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


def _throughput(curve: Sequence[TokenTime], running: float) -> float:
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


def _slope(curve: Sequence[TokenTime]) -> float:
    if len(curve) < 2:
        return 0.0
    mean_n = sum(point.running for point in curve) / len(curve)
    mean_s = sum(point.token_s for point in curve) / len(curve)
    spread = sum((point.running - mean_n) ** 2 for point in curve)
    fitted = sum((point.running - mean_n) * (point.token_s - mean_s) for point in curve) / spread
    before, last = curve[-2:]
    return max(0.0, fitted, (last.token_s - before.token_s) / (last.running - before.running))
