"""When requests arrive: seconds of a trace, scaled to what a pod can do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dragoman_simulate.trace import Trace

PEAK_S = 10
"""The peak of a load is that of the mean over so many seconds; a single second says nothing about a queue."""


def arrival_times(trace: Trace, seconds: int, peak_per_s: float, seed: int) -> list[float]:
    """Moments of arrivals in the burstiest `seconds` of a trace, scaled so that its peak has `peak_per_s`.

    Each second's count is drawn around the scaled one (Poisson), and its moments are spread at random over it.

    Args:
        trace: Its counts.
        peak_per_s: Requests per second, on average over `PEAK_S`.
        seconds: At most the trace's length is used.
        seed: The same moments for the same seed.

    Returns:
        Seconds from the start, ascending.
    """
    counts = _burstiest(trace.counts, seconds)
    draw = np.random.default_rng(seed)
    scale = peak_per_s / max(1e-9, _smooth(counts).max())
    drawn = draw.poisson(counts * scale)
    return sorted(float(second + draw.random()) for second, count in enumerate(drawn) for _ in range(count))


def _burstiest(counts: NDArray[np.float64], seconds: int) -> NDArray[np.float64]:
    """The window whose counts differ most."""
    if len(counts) <= seconds:
        return counts
    starts = range(0, len(counts) - seconds + 1, max(1, seconds // 4))
    best = max(starts, key=lambda start: float(counts[start : start + seconds].std()))
    return counts[best : best + seconds]


def _smooth(counts: NDArray[np.float64]) -> NDArray[np.floating]:
    width = min(PEAK_S, len(counts))
    return np.convolve(counts, np.ones(width) / width, "valid")
