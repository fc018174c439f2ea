"""Simulated against measured: the same arrivals, by the pod and by the model of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dragoman.command_line import markdown
from dragoman_bench.replay.open_loop import Replayed
from dragoman_simulate.exact import Arrival, served_by
from dragoman_simulate.speed import SpeedTable
from dragoman_tune.figures import quantile

BUSIEST_S = 10
SLICE_S = 10


@dataclass(frozen=True)
class ReplayFigures:
    """What a load came to.

    Args:
        requests_per_s: Answers until the last one, over that time.
        busiest_per_s: Answers a second in the `BUSIEST_S` seconds with the most.
    """

    requests_per_s: float
    busiest_per_s: float
    p50_s: float
    p95_s: float
    p99_s: float
    mean_s: float


def figures(ends_and_latencies: Sequence[tuple[float, float]]) -> ReplayFigures:
    """ReplayFigures of requests by when they ended, in seconds from the start, and their latency; at least one."""
    ends = np.sort([end for end, _ in ends_and_latencies])
    latencies = [latency for _, latency in ends_and_latencies]
    within = np.searchsorted(ends, ends + BUSIEST_S) - np.arange(len(ends))
    p50, p95, p99 = (quantile(latencies, share) or 0.0 for share in (0.5, 0.95, 0.99))
    mean = sum(latencies) / len(latencies)
    return ReplayFigures(len(ends) / float(ends[-1]), int(within.max()) / BUSIEST_S, p50, p95, p99, mean)


def compared(replayed: Sequence[Replayed], seats: int, speed: SpeedTable) -> dict[str, Any]:
    """Measured and simulated figures, their ratios, and means by slices of the replay; of those that were answered."""
    answered = [one for one in replayed if not one.error]
    measured = [(one.at_s + one.latency_s, one.latency_s) for one in answered]
    arrivals = [Arrival(one.at_s, float(one.output_tokens)) for one in answered]
    served = served_by(arrivals, 1, seats, speed)
    simulated = [(one.arrival.at_s + one.latency_s, one.latency_s) for one in served]
    both = {"measured": asdict(figures(measured)), "simulated": asdict(figures(simulated))}
    ratios = {name: both["simulated"][name] / both["measured"][name] for name in both["measured"]}
    waits = [one.wait_s for one in served]
    return {
        "answered": len(answered),
        "failed": len(replayed) - len(answered),
        "late_sends_max_s": max(one.sent_s - one.at_s for one in replayed),
        "queued_share": sum(wait > 0 for wait in waits) / len(waits),
        **both,
        "ratio": ratios,
        "slices": _slices(answered, [(one.arrival.at_s, one.latency_s) for one in served]),
    }


def table(comparison: dict[str, Any]) -> str:
    """The comparison for people."""
    names = {
        "requests_per_s": "requests/s",
        "busiest_per_s": f"requests/s, busiest {BUSIEST_S} s",
        "mean_s": "mean s",
        "p50_s": "p50 s",
        "p95_s": "p95 s",
        "p99_s": "p99 s",
    }
    rows = [
        (
            title,
            f"{comparison['measured'][name]:.3f}",
            f"{comparison['simulated'][name]:.3f}",
            f"{comparison['ratio'][name]:.3f}",
        )
        for name, title in names.items()
    ]
    return markdown(("", "measured", "simulated", "simulated ÷ measured"), rows)


def _slices(answered: Sequence[Replayed], simulated: Sequence[tuple[float, float]]) -> list[dict[str, float]]:
    """By the time of arrival: the number of requests, and the mean latency of both."""
    sums: dict[int, list[float]] = {}
    for column, at_s, latency_s in (
        *((1, one.at_s, one.latency_s) for one in answered),
        *((2, at_s, latency_s) for at_s, latency_s in simulated),
    ):
        total = sums.setdefault(int(at_s // SLICE_S), [0.0, 0.0, 0.0])
        total[0] += column == 1
        total[column] += latency_s
    return [
        {
            "from_s": index * SLICE_S,
            "requests": count,
            "measured_mean_s": round(measured / count, 4),
            "simulated_mean_s": round(modelled / count, 4),
        }
        for index, (count, measured, modelled) in sorted(sums.items())
    ]
