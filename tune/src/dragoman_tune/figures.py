"""Statistics of a window of samples."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from dragoman_tune.closed_loop import Window


@dataclass(frozen=True)
class Figures:
    """What a window showed; times in seconds, None where unknown.

    Quantiles are of all requests: one that failed is later than any that was answered, or a server that refuses at
    once what it cannot hold would seem fast. None where the quantile is such a one.

    Args:
        requests_per_s: Answered without error, over the window.
        output_tokens_per_s: Of those, where the load knows how long answers are.
        queue_s: Mean wait within the server.
        compute_s: Mean time in the model.
        answered: How many requests these figures stand on.
    """

    requests_per_s: float
    output_tokens_per_s: float | None
    p50_s: float | None
    p95_s: float | None
    p99_s: float | None
    mean_s: float | None
    queue_s: float | None
    compute_s: float | None
    answered: int
    steady: bool
    errors: dict[str, int]

    @property
    def unanswered_ratio(self) -> float:
        """Share of the window's requests that got no answer; 0 of none."""
        lost = sum(self.errors.values())
        return lost / (lost + self.answered) if lost else 0.0


def quantile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that at least `share` of the values do not exceed; None of no values.

    Args:
        values: In any order.
        share: Above 0, at most 1.
    """
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def _in_time(values: Sequence[float], share: float) -> float | None:
    late = quantile(values, share)
    return None if late == math.inf else late


def figures(window: Window) -> Figures:
    """The figures of a window."""
    good = [sample for sample in window.samples if sample.answer.error is None]
    span_s = window.ended_s - window.began_s
    times_s = [sample.ended_s - sample.began_s for sample in good]
    # A failed request never comes.
    all_s = times_s + [math.inf] * (len(window.samples) - len(good))
    tokens = [sample.output_tokens for sample in good if sample.output_tokens is not None]
    errors = Counter(sample.answer.error for sample in window.samples if sample.answer.error is not None)
    return Figures(
        requests_per_s=len(good) / span_s,
        output_tokens_per_s=sum(tokens) / span_s if len(tokens) == len(good) and good else None,
        p50_s=_in_time(all_s, 0.5),
        p95_s=_in_time(all_s, 0.95),
        p99_s=_in_time(all_s, 0.99),
        mean_s=fmean(times_s) if times_s else None,
        queue_s=_mean([sample.answer.queue_s for sample in good]),
        compute_s=_mean([sample.answer.compute_s for sample in good]),
        answered=len(good),
        steady=window.steady,
        errors=dict(errors),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
