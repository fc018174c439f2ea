"""Tables from results, as Markdown that reads as plain text too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb
from statistics import median
from typing import Any

from dragoman.command_line import markdown

BASELINE = "b0-queues"

CONFIDENCE = 0.95
"""At least of an interval beside a median of ratios."""

Measurement = dict[str, Any]
Row = Callable[[dict[str, Any], Sequence[Measurement], Sequence[Measurement]], list[str]]
"""Cells of an arm, from its entry, its points at one load, and those of the arm that it is compared with."""

LADDER_HEAD = (
    *("arm", "req/s", "× B0", "p50 s", "p95 s", "p99 s", "first token s", "per token ms", "queue s"),
    *("compute s", "GPU busy", "GPU < 20%", "GPU GB", "seeds"),
)
COMPARE_HEAD = (
    *("arm", "req/s", "spread", "pod ÷ this", "tokens/s", "p50 s", "p95 s", "pod p95 ÷ this", "GPU busy"),
    *("HTTP's CPU ms a request", "engine's cores"),
)


def ladder_table(document: dict[str, Any]) -> str:
    """Every point of a ladder, beside what the original system published, one table a load."""
    return _tables(document, LADDER_HEAD, _ladder_row, BASELINE)


def compare_table(document: dict[str, Any]) -> str:
    """Medians over repetitions and their spread, and the pod's ratio to each peer within repetitions."""
    return _tables(document, COMPARE_HEAD, _compare_row, document["arms"][0]["arm"])


def shown(value: float | None, pattern: str, scale: float = 1.0) -> str:
    """A value, or a dash where it is unknown."""
    return "–" if value is None else pattern.format(value * scale)


def _tables(document: dict[str, Any], head: Sequence[str], row: Row, base: str) -> str:
    parts = []
    for kind, in_flight in _loads(document):
        at = {
            entry["arm"]: [p for p in entry["points"] if (p["load"], p["in_flight"]) == (kind, in_flight)]
            for entry in document["arms"]
        }
        rows = [
            row(entry, at[entry["arm"]], at.get(base, [])) for entry in document["arms"] if at[entry["arm"]]
        ]
        parts.append(f"{kind}, {in_flight} in flight\n\n{markdown(head, rows)}")
    return "\n\n".join(parts + _notes(document))


def _ladder_row(
    entry: dict[str, Any], points: Sequence[Measurement], base: Sequence[Measurement]
) -> list[str]:
    mark = "" if all(point["steady"] for point in points) else " *"
    gpu = _gpu(points)
    return [
        entry["title"],
        shown(_median(points, "requests_per_s"), "{:.1f}" + mark),
        shown(_ratio(points, base, "requests_per_s"), "{:.1f}"),
        *(shown(_median(points, name), "{:.2f}") for name in ("p50_s", "p95_s", "p99_s")),
        shown(_median(points, "first_token_s"), "{:.3f}"),
        shown(_median(points, "per_output_token_s"), "{:.1f}", 1000),
        shown(_median(points, "queue_s"), "{:.2f}"),
        shown(_median(points, "compute_s"), "{:.2f}"),
        shown(_median(gpu, "busy_ratio"), "{:.0%}"),
        shown(_median(gpu, "idle_share"), "{:.0%}"),
        shown(_median(gpu, "memory_bytes"), "{:.1f}", 1e-9),
        entry["published"] or "–",
    ]


def _compare_row(
    entry: dict[str, Any], points: Sequence[Measurement], pod: Sequence[Measurement]
) -> list[str]:
    rates = [point["requests_per_s"] for point in points]
    front_s = [
        point["front_end_cores"] / point["requests_per_s"]
        for point in points
        if point.get("front_end_cores") is not None and point["requests_per_s"]
    ]
    return [
        entry["title"],
        f"{median(rates):.1f}",
        f"{min(rates):.1f}–{max(rates):.1f}",
        _paired(pod, points, "requests_per_s"),
        shown(_median(points, "output_tokens_per_s"), "{:,.0f}"),
        shown(_median(points, "p50_s"), "{:.3f}"),
        shown(_median(points, "p95_s"), "{:.3f}"),
        _paired(pod, points, "p95_s"),
        shown(_median(_gpu(points), "busy_ratio"), "{:.0%}"),
        shown(median(front_s) if front_s else None, "{:.2f}", 1000),
        shown(_median(points, "engine_cores"), "{:.2f}"),
    ]


def median_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Confidence interval of a median, between two of the values; none of fewer than six values can be as sure.

    Source: order statistics and the sign test, https://en.wikipedia.org/wiki/Median_test
    """
    count, outside, rank = len(values), 0.0, 0
    while (outside := outside + 2 * comb(count, rank) / 2**count) <= 1 - CONFIDENCE:
        rank += 1
    ordered = sorted(values)
    return (ordered[rank - 1], ordered[-rank]) if rank else None


def _paired(points: Sequence[Measurement], base: Sequence[Measurement], name: str) -> str:
    """Median of the ratios within repetitions, in which both arms had the same prompts, and its interval."""
    of_base = {point["seed"]: point[name] for point in base}
    ratios = [
        point[name] / reference
        for point in points
        if point[name] and (reference := of_base.get(point["seed"]))
    ]
    if not ratios:
        return "–"
    interval = median_interval(ratios)
    return f"{median(ratios):.3f}" + ("" if interval is None else " ({:.3f}–{:.3f})".format(*interval))


def _loads(document: dict[str, Any]) -> list[tuple[str, int]]:
    return sorted({(p["load"], p["in_flight"]) for entry in document["arms"] for p in entry["points"]})


def _gpu(points: Sequence[Measurement]) -> list[Measurement]:
    return [point["gpu"] for point in points if point["gpu"]]


def _median(points: Sequence[Measurement], name: str) -> float | None:
    # Results of former versions have fewer fields.
    values = [point[name] for point in points if point.get(name) is not None]
    return median(values) if values else None


def _ratio(points: Sequence[Measurement], base: Sequence[Measurement], name: str) -> float | None:
    value, reference = _median(points, name), _median(base, name)
    return value / reference if value and reference else None


def _notes(document: dict[str, Any]) -> list[str]:
    failed = [f"failed: {entry['arm']}: {entry['failed']}" for entry in document["arms"] if entry["failed"]]
    if all(point["steady"] for entry in document["arms"] for point in entry["points"]):
        return failed
    return ["\\* the window began before each request in flight had been answered once", *failed]
