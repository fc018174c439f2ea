"""What a run of the tuning bench showed, computed from its requests: intervals, rollouts, and the table."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dragoman_tune.closed_loop import Sample, Window
from dragoman_tune.figures import figures

Grid = Mapping[int, Mapping[int, float]]
"""Output tokens per second of all replicas, by maxNumSeqs, then by requests in flight."""


def interval(samples: Sequence[Sample], began_s: float, ended_s: float) -> dict[str, Any]:
    """Figures of the requests that ended between two times of the monotonic clock.

    Samples are in the order of their ends.
    """
    first, end = (
        bisect_left(samples, at_s, key=lambda sample: sample.ended_s) for at_s in (began_s, ended_s)
    )
    within = tuple(samples[first:end])
    found = figures(Window(began_s, ended_s, steady=True, samples=within))
    return {
        "seconds": round(ended_s - began_s, 2),
        "answered": found.answered,
        "lost": sum(found.errors.values()),
        "errors": found.errors,
        "requests_per_s": round(found.requests_per_s, 2),
        "tokens_per_s": round(found.output_tokens_per_s or 0.0, 1),
        "p50_s": None if found.p50_s is None else round(found.p50_s, 3),
        "p95_s": None if found.p95_s is None else round(found.p95_s, 3),
    }


@dataclass(frozen=True)
class Rollout:
    """One change of maxNumSeqs under load.

    Args:
        seconds: From the change of the spec until all replicas with the new value are ready.
        before_per_s: Output tokens per second before it, under the same load.
        during_per_s: The same meanwhile.
        after_per_s: The same afterwards, under the same load.
    """

    size_before: int
    size_after: int
    seconds: float
    before_per_s: float
    during_per_s: float
    after_per_s: float

    @property
    def lost_tokens(self) -> float:
        """Tokens that were not generated because replicas were replaced; negative if there were more."""
        return (self.before_per_s - self.during_per_s) * self.seconds

    @property
    def paid_back_s(self) -> float | None:
        """Time after which the gain makes up for the loss; None without a gain, 0 without a loss."""
        if self.lost_tokens <= 0:
            return 0.0
        gain = self.after_per_s - self.before_per_s
        return self.lost_tokens / gain if gain > 0 else None


def best(grid: Grid, in_flight: int) -> tuple[int, float] | None:
    """The fastest maxNumSeqs of the grid under a load, with its tokens per second; None if it was not measured."""
    rates = {size: found[in_flight] for size, found in grid.items() if in_flight in found}
    return max(rates.items(), key=lambda each: each[1]) if rates else None


def table(phases: Sequence[Mapping[str, Any]], grid: Grid) -> str:
    """Chosen against the grid's best, for each phase, in Markdown.

    Args:
        phases: With `in_flight`, `size` at the end, `steady` (an interval), `whole` (an interval) and `rollouts`.
        grid: May be incomplete.
    """
    title = (
        "| in flight | chosen | tokens/s | in the grid | grid's best | chosen / best | rollouts | tokens lost | "
        "paid back | p95 s | requests | lost |"
    )
    return "\n".join(
        [title, "|" + " --- |" * 12, *(_row(phase, grid) for phase in phases), "", *_rates(grid)]
    )


def _row(phase: Mapping[str, Any], grid: Grid) -> str:
    in_flight, size, steady, whole = (phase[name] for name in ("in_flight", "size", "steady", "whole"))
    own, top = grid.get(size, {}).get(in_flight), best(grid, in_flight)
    rollouts = [Rollout(**each) for each in phase["rollouts"]]
    paths = [f"{each.size_before} → {each.size_after} in {each.seconds:.0f} s" for each in rollouts]
    paid = ["never" if (s := each.paid_back_s) is None else f"{s:.0f} s" for each in rollouts]
    cells = [
        str(in_flight),
        str(size),
        f"{steady['tokens_per_s']:.0f}",
        "–" if own is None else f"{own:.0f}",
        "–" if top is None else f"{top[1]:.0f} at {top[0]}",
        "–" if own is None or top is None else f"{own / top[1]:.2f}",
        ", ".join(paths) or "none",
        f"{sum(each.lost_tokens for each in rollouts):.0f}",
        ", ".join(paid) or "–",
        "–" if steady["p95_s"] is None else f"{steady['p95_s']:.2f}",
        str(whole["answered"] + whole["lost"]),
        str(whole["lost"]),
    ]
    return f"| {' | '.join(cells)} |"


def _rates(grid: Grid) -> list[str]:
    loads = sorted({load for found in grid.values() for load in found})
    if not loads:
        return ["The grid was not measured."]
    rows = [
        f"| {size} | " + " | ".join(f"{found[n]:.0f}" if n in found else "–" for n in loads) + " |"
        for size, found in sorted(grid.items())
    ]
    return [
        f"| maxNumSeqs | {' | '.join(f'{n} in flight' for n in loads)} |",
        "|" + " --- |" * (len(loads) + 1),
        *rows,
    ]
