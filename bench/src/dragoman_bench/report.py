"""Tables from results, as Markdown that reads as plain text too."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from dragoman_bench.grid import measured, replay
from dragoman_tune.report import markdown
from dragoman_tune.search import Policy, Trial

BASELINE = "b0-queues"

Point = dict[str, Any]


def ladder_table(document: dict[str, Any]) -> str:
    """Every point of a ladder, beside what the seeds published, one table a load."""
    parts = []
    for kind in dict.fromkeys(point["load"] for entry in document["arms"] for point in entry["points"]):
        for in_flight in sorted({p["in_flight"] for e in document["arms"] for p in e["points"]}):
            rows = _ladder_rows(document, kind, in_flight)
            if rows:
                parts.append(f"{kind}, {in_flight} in flight\n\n{markdown(LADDER_HEAD, rows)}")
    return "\n\n".join(parts + _failures(document))


LADDER_HEAD = (
    "arm",
    "req/s",
    "× B0",
    "p50 s",
    "p95 s",
    "p99 s",
    "first token s",
    "per token ms",
    "queue s",
    "compute s",
    "GPU busy",
    "GPU < 20%",
    "GPU GB",
    "seeds",
)


def _ladder_rows(document: dict[str, Any], kind: str, in_flight: int) -> list[list[str]]:
    found = {
        entry["arm"]: (entry, point)
        for entry in document["arms"]
        for point in entry["points"]
        if point["load"] == kind and point["in_flight"] == in_flight
    }
    base = found[BASELINE][1]["requests_per_s"] if BASELINE in found else None
    rows = []
    for entry, point in found.values():
        gpu = point["gpu"] or {}
        mark = "" if point["steady"] else " *"
        rows.append(
            [
                entry["title"],
                f"{point['requests_per_s']:.1f}{mark}",
                shown(point["requests_per_s"] / base if base else None, "{:.1f}"),
                *(shown(point[name], "{:.2f}") for name in ("p50_s", "p95_s", "p99_s")),
                shown(point["first_token_s"], "{:.3f}"),
                shown(point["per_output_token_s"], "{:.1f}", 1000),
                shown(point["queue_s"], "{:.2f}"),
                shown(point["compute_s"], "{:.2f}"),
                shown(gpu.get("busy_ratio"), "{:.0%}"),
                shown(gpu.get("idle_share"), "{:.0%}"),
                shown(gpu.get("memory_bytes"), "{:.1f}", 1e-9),
                entry["published"] or "–",
            ]
        )
    return rows


def compare_table(document: dict[str, Any]) -> str:
    """Medians over repetitions, their spread, and the pod's ratio to each peer."""
    points = [point for entry in document["arms"] for point in entry["points"]]
    parts = []
    for kind, in_flight in sorted({(point["load"], point["in_flight"]) for point in points}):
        rows = []
        for entry in document["arms"]:
            mine = _at(entry, kind, in_flight)
            if mine:
                pod = _at(document["arms"][0], kind, in_flight)
                rows.append([entry["title"], *_compared(mine, pod)])
        head = (
            "arm",
            "req/s",
            "spread",
            "pod ÷ this",
            "tokens/s",
            "p50 s",
            "p95 s",
            "pod p95 ÷ this",
            "GPU busy",
            "HTTP's CPU ms a request",
            "engine's cores",
        )
        parts.append(f"{kind}, {in_flight} in flight\n\n{markdown(head, rows)}")
    return "\n\n".join(parts + _failures(document))


def _compared(mine: Sequence[Point], pod: Sequence[Point]) -> list[str]:
    rates = [point["requests_per_s"] for point in mine]
    ours, p95 = _median(pod, "requests_per_s"), _median(mine, "p95_s")
    pods_p95 = _median(pod, "p95_s")
    busy = [point["gpu"]["busy_ratio"] for point in mine if point["gpu"]]
    front = [
        point["front_end_cores"] / point["requests_per_s"]
        for point in mine
        if point.get("front_end_cores") is not None and point["requests_per_s"]
    ]
    return [
        f"{median(rates):.1f}",
        f"{min(rates):.1f}–{max(rates):.1f}",
        shown(ours / median(rates) if ours else None, "{:.3f}"),
        shown(_median(mine, "output_tokens_per_s"), "{:,.0f}"),
        shown(_median(mine, "p50_s"), "{:.3f}"),
        shown(p95, "{:.3f}"),
        shown(pods_p95 / p95 if pods_p95 and p95 else None, "{:.3f}"),
        shown(median(busy) if busy else None, "{:.0%}"),
        shown(median(front) if front else None, "{:.2f}", 1000),
        shown(_median(mine, "engine_cores"), "{:.2f}"),
    ]


def grid_table(document: dict[str, Any]) -> str:
    """Throughput of every setting, one table a load, and what the tuner would have found."""
    parts = []
    points = [point for entry in document["arms"] for point in entry["points"]]
    for kind, in_flight in sorted({(point["load"], point["in_flight"]) for point in points}):
        grid = measured(document, kind, in_flight)
        steps = sorted({setting.max_num_batched_tokens for setting in grid})
        cells = {(at.max_num_seqs, at.max_num_batched_tokens): _trial(trial) for at, trial in grid.items()}
        rows = [
            [str(most), *(cells.get((most, step), "–") for step in steps)]
            for most in sorted({setting.max_num_seqs for setting in grid})
        ]
        head = ("sequences", *(f"{step} tokens a step" for step in steps))
        parts.append(f"{kind}, {in_flight} in flight: req/s (p95)\n\n{markdown(head, rows)}")
        tuned = replay(grid, Policy(document["slo_p95_s"], in_flight))
        parts.append(
            f"The tuner: {tuned.trials} of {tuned.grid} settings tried, {_setting(tuned.found)} found, "
            f"{shown(tuned.ratio, '{:.3f}')} of the best, which is {_setting(tuned.best)}. {tuned.why}."
        )
    return "\n\n".join(parts + _failures(document))


def _trial(trial: Trial) -> str:
    return f"{trial.requests_per_s:.1f} ({shown(trial.p95_s, '{:.2f}')})"


def _setting(trial: Trial | None) -> str:
    if trial is None:
        return "nothing"
    return f"{trial.setting.max_num_seqs} / {trial.setting.max_num_batched_tokens}"


def _at(entry: dict[str, Any], kind: str, in_flight: int) -> list[Point]:
    return [p for p in entry["points"] if p["load"] == kind and p["in_flight"] == in_flight]


def _median(points: Sequence[Point], name: str) -> float | None:
    # Results of former versions have fewer figures.
    values = [point[name] for point in points if point.get(name) is not None]
    return median(values) if values else None


def _failures(document: dict[str, Any]) -> list[str]:
    failed = [f"failed: {entry['arm']}: {entry['failed']}" for entry in document["arms"] if entry["failed"]]
    unsteady = any(not point["steady"] for entry in document["arms"] for point in entry["points"])
    note = (
        ["\\* not all requests in flight had been answered once before the window began"] if unsteady else []
    )
    return note + failed


def shown(value: float | None, pattern: str, scale: float = 1.0) -> str:
    """A figure, or a dash where it is unknown."""
    return "–" if value is None else pattern.format(value * scale)
