"""The size that fits what was measured: as many sequences as the load needs, and no more than pay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman_operator.tuning.decision.evidence import Evidence, Point
from dragoman_operator.tuning.decision.tally import LADDER

LEAST_REQUESTS = 100
"""Fewer say nothing about a load."""

HEADROOM = 1.25
"""Places for each request in flight at the 95th percentile: what comes above it still finds one, and it is the inverse
of the 0.8 at which the autoscaler keeps a replica."""

PAYS = 0.03
"""Gain in throughput that is worth replacing the pods; below it, noise looks like gain. As in `dragoman tune`."""

SAME = 0.01
"""Throughputs this close count as equal, and the smaller size wins. As in `dragoman tune`."""

QUEUED = 0.01
"""Share of the requests in flight that wait, below which more places serve nobody."""

OVERSIZED = 2.0
"""Times the size that fits, from which on the memory that vLLM sets aside for sequences is worth replacing pods."""

GROWTH = 8
"""Times the current size that is recommended at most: a queue that grows says only that more is needed, and what lies
further has not been measured."""

FULL_KV, ROOM_KV = 0.95, 0.9
"""KV usage from which on the cache limits the batch, and what it should then come to."""

PREEMPTED = 0.01
"""Preemptions for each request that cost more than chance ones do: each computes a sequence anew."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What may be chosen.

    Attributes:
        current: The size that was measured.
        least: The smallest. Where an autoscaler's target follows the size, a smaller one only asks for more GPUs for
            the same load: it is then the spec's own.
        most: The largest.
        busiest: Requests in flight on a replica at the 95th percentile of the busiest window of the last day: what is
            not needed at night is needed in the morning.
    """

    current: int
    least: int
    most: int
    busiest: float = 0.0


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A size, which may be the current one, and why in a sentence."""

    max_num_seqs: int
    reason: str


def recommend_size(seen: Evidence, bounds: Bounds) -> Recommendation | None:
    """The smallest size with which the load is served as fast as with any; None where too little was seen.

    More places are asked for only where requests wait for one and the time per token says that it pays; fewer, where
    throughput falls with the sequences that run, the KV cache does not hold them, or at least twice too many are set
    aside.

    Args:
        seen: One window at the current size.
        bounds: What may be chosen.
    """
    if seen.requests < LEAST_REQUESTS or not seen.p95:
        return None
    peak = seen.p95 * HEADROOM
    most = min(bounds.most, GROWTH * bounds.current)
    steps = sorted({bounds.current, bounds.least, *(s for s in LADDER if bounds.least <= s <= most)})
    enough = next((step for step in steps if step >= peak), steps[-1])
    held = _held_by_cache(seen, bounds)
    choices = [step for step in steps if step <= enough and (held is None or step <= held)] or [steps[0]]
    fastest = max(_throughput(seen.curve, min(step, peak)) for step in choices)
    fits = next(step for step in choices if _throughput(seen.curve, min(step, peak)) >= fastest * (1 - SAME))
    return _weighed(fits, held, peak, seen, bounds)


def _weighed(fits: int, held: int | None, peak: float, seen: Evidence, bounds: Bounds) -> Recommendation:
    """The size that fits, where changing to it is worth it; else the current one."""
    current = bounds.current
    load = f"{seen.p95:.3g} requests are in flight on a replica at the 95th percentile"
    gain = _throughput(seen.curve, min(fits, peak)) / _throughput(seen.curve, min(current, peak)) - 1
    if fits > current:
        if seen.queue_ratio < QUEUED:
            return Recommendation(current, f"{current} fits: {load}, and none waits for a place")
        if gain < PAYS:
            said = f"{fits} would bring {gain:.0%} by the measured time per token"
            return Recommendation(current, f"{current} stays: {load}, but {said}")
        waits = f"{seen.queue_ratio:.0%} of them wait for one of {current} places"
        return Recommendation(fits, f"{fits} instead of {current}: {load}, and {waits}")
    if fits == current:
        return Recommendation(current, f"{current} fits: {load}")
    if held is not None and current > held:
        full = f"the KV cache is full ({seen.kv_p95 or 0:.0%}, {seen.preemptions or 0:.2g} preemptions a request)"
        return Recommendation(fits, f"{fits} instead of {current}: {full}")
    if gain >= PAYS:
        slower = f"by the measured time per token {fits} at once write {gain:.0%} more than {current}"
        return Recommendation(fits, f"{fits} instead of {current}: {slower}")
    if current >= OVERSIZED * fits:
        if fits < min(bounds.busiest * HEADROOM, float(current)) and fits >= peak:
            busy = f"within a day it was {bounds.busiest:.3g}"
            return Recommendation(current, f"{current} stays: {load}, but {busy}")
        few = (
            f"only {load}"
            if fits >= peak
            else f"by the measured time per token {current} at once write no more"
        )
        return Recommendation(fits, f"{fits} instead of {current}: {few}")
    return Recommendation(current, f"{current} fits: {load}")


def _held_by_cache(seen: Evidence, bounds: Bounds) -> int | None:
    """Sequences that the KV cache has room for: no more than now are chosen without, and fewer where it is full."""
    if not seen.kv_each:
        return None
    room = max((step for step in LADDER if step <= ROOM_KV / seen.kv_each), default=1)
    full = (seen.kv_p95 or 0.0) >= FULL_KV or (seen.preemptions or 0.0) >= PREEMPTED
    return room if full else max(room, bounds.current)


def _throughput(curve: Sequence[Point], running: float) -> float:
    """Tokens per second of a full batch, by the measured time per token; without any, in proportion to the batch.

    Between points it is read along a straight line. Below the first the time stays: that a smaller batch is as slow is
    the least that can be said for it. Above the last it grows by the steeper of the line through all points and the
    one through the last two; from one point alone no slope can be told, and a batch bound by memory has none.
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
