"""When requests arrive: seconds of a trace, scaled to what a pod can do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dragoman_bench.errors import BenchError
from dragoman_simulate.trace import Trace

PEAK_S = 10
"""The peak of a load is that of the mean over so many seconds; a single second says nothing about a queue."""


def arrival_times(
    trace: Trace, rehearsal_s: int, seconds: int, peak_per_s: float, seed: int
) -> tuple[list[float], list[float]]:
    """Moments of arrivals in the two burstiest parts of a trace that do not overlap, scaled by one factor.

    Each second's count is drawn around the scaled one (Poisson), and its moments are spread at random over it.

    Args:
        trace: Its counts; `seconds` + 2 × `rehearsal_s` of them are enough.
        rehearsal_s: Length of the second burstiest part.
        seconds: Length of the burstiest part.
        peak_per_s: Requests per second at the peak of the burstiest part, on average over `PEAK_S`.
        seed: The same moments for the same seed.

    Returns:
        Of the second burstiest part, and of the burstiest: seconds from the start of each, ascending.

    Raises:
        BenchError: The trace is too short.
    """
    counts = trace.counts
    begin = _burstiest(counts, seconds, 0, len(counts))
    sides = [(0, begin), (begin + seconds, len(counts))]
    begins = [_burstiest(counts, rehearsal_s, *side) for side in sides if side[1] - side[0] >= rehearsal_s]
    if not begins:
        raise BenchError(
            f"the trace has {len(counts)} s: it has to have at least {2 * rehearsal_s + seconds}"
        )
    burst = counts[begin : begin + seconds]
    rehearsal = max(
        (counts[each : each + rehearsal_s] for each in begins), key=lambda part: float(part.std())
    )
    draw = np.random.default_rng(seed)
    scale = peak_per_s / max(1e-9, _smooth(burst).max())
    return _moments(rehearsal * scale, draw), _moments(burst * scale, draw)


def _burstiest(counts: NDArray[np.float64], seconds: int, begin: int, end: int) -> int:
    """Where, between two seconds of a trace, the part begins whose counts differ most."""
    begins = range(begin, max(begin + 1, end - seconds + 1), max(1, seconds // 4))
    return max(begins, key=lambda each: float(counts[each : each + seconds].std()))


def _moments(counts: NDArray[np.float64], draw: np.random.Generator) -> list[float]:
    drawn = draw.poisson(counts)
    return sorted(float(second + draw.random()) for second, count in enumerate(drawn) for _ in range(count))


def _smooth(counts: NDArray[np.float64]) -> NDArray[np.floating]:
    width = min(PEAK_S, len(counts))
    return np.convolve(counts, np.ones(width) / width, "valid")
