"""Curves of a replay, one column per trace: what came, how many replicas stood, how much waited, what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dragoman_simulate.errors import MissingPlotterError
from dragoman_simulate.replay import Outcome
from dragoman_simulate.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"dragoman": "#c1272d", "hpa": "#0072b2", "keda": "#a0a0a0", "kpa": "#d98200", "llm-d": "#009e73"}
"""Distinct for the colour-blind too; ours is the one that stands out."""

COLUMNS = 4
SMOOTH_S = 30
GREY = "#555555"
OUTAGE = "#f4d9d9"
EMPTY = 0.5
"""What an empty queue is drawn as, below the axis of a scale that has no zero."""


def draw(path: Path, traces: Sequence[Trace], outcomes: Mapping[str, Mapping[str, Outcome]]) -> None:
    """Write a PNG (or what the file's ending says) of all traces under all policies.

    Raises:
        MissingPlotterError: matplotlib is not installed.
        OSError: The file cannot be written.
        ValueError: The file's ending is not one that matplotlib writes.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as missing:
        raise MissingPlotterError from missing
    columns = min(COLUMNS, len(traces))
    bands = [traces[start : start + columns] for start in range(0, len(traces), columns)]
    figure = Figure(figsize=(max(7.0, 5.0 * columns), 8.2 * len(bands)), layout="constrained")
    FigureCanvasAgg(figure)
    parts: Any = figure.subfigures(len(bands), 1, squeeze=False)
    for part, band in zip(parts[:, 0], bands, strict=True):
        grid = part.subplots(
            4, columns, squeeze=False, sharex="col", gridspec_kw={"height_ratios": [1, 2, 1.3, 0.85]}
        )
        for column in range(columns):
            if column < len(band):
                _column(grid[:, column], band[column], outcomes[band[column].name], first=column == 0)
            else:
                for axis in grid[:, column]:
                    axis.set_visible(False)
    figure.savefig(path, dpi=90)


def _column(axes: Sequence[Axes], trace: Trace, outcomes: Mapping[str, Outcome], first: bool) -> None:
    arrivals, replicas, queue, figures = axes
    window = np.ones(SMOOTH_S) / SMOOTH_S
    hours = np.arange(trace.duration_s) / 3600
    arrivals.fill_between(hours, np.convolve(trace.counts, window, mode="same"), color="#cfcfcf", linewidth=0)
    arrivals.set_title(trace.name, fontweight="bold", loc="left")
    for name, outcome in outcomes.items():
        ours = name == "dragoman"
        style: dict[str, Any] = {
            "color": COLOURS.get(name, "black"),
            "linewidth": 2.0 if ours else 1.0,
            "alpha": 0.45 if name == "keda" else 0.9,
            "zorder": 3 if ours else 1 if name == "keda" else 2,
        }
        time_h = np.array(outcome.curves.time_s) / 3600
        replicas.step(time_h, outcome.curves.ready, where="post", **style)
        queue.plot(time_h, np.maximum(np.array(outcome.curves.queued), EMPTY), **style)
    queue.set_yscale("log")
    queue.set_ylim(bottom=1)
    queue.set_xlabel("hours")
    queue.tick_params(labelbottom=True)
    replicas.set_ylim(bottom=0)
    replicas.locator_params(axis="y", integer=True)
    arrivals.set_ylim(bottom=0)
    if first:
        arrivals.set_ylabel("requests / s")
        replicas.set_ylabel("ready replicas")
        queue.set_ylabel("requests waiting")
    for axis in (arrivals, replicas, queue):
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", color="#eeeeee")
        axis.set_axisbelow(True)
        axis.margins(x=0)
        for begin, end in trace.outages:
            axis.axvspan(begin / 3600, end / 3600, color=OUTAGE, linewidth=0, zorder=0)
    for begin, end in trace.outages:
        label: dict[str, Any] = {"ha": "center", "fontsize": "small", "color": GREY}
        arrivals.text(
            (begin + end) / 7200, 0.06, "no metrics", transform=arrivals.get_xaxis_transform(), **label
        )
    _figures(figures, outcomes)


def _figures(axis: Axes, outcomes: Mapping[str, Outcome]) -> None:
    """The legend, and what each policy cost, in its colour."""
    axis.set_axis_off()
    step = 1 / (len(outcomes) + 1)
    places = (0.0, 0.50, 0.78, 1.0)
    rows = [("", "replica-hours", "over target", "changes / h", GREY)]
    for name, outcome in outcomes.items():
        share = f"{outcome.over_target_share:.2%}"
        row = (name, f"{outcome.replica_hours:.1f}", share, f"{outcome.changes_per_hour:.1f}")
        rows.append((*row, COLOURS.get(name, "black")))
    for line, (*cells, colour) in enumerate(rows):
        for cell, place in zip(cells, places, strict=True):
            axis.text(
                place,
                1 - line * step,
                cell,
                transform=axis.transAxes,
                ha="right" if place else "left",
                va="top",
                fontsize="small",
                color=colour,
                fontweight="bold" if cells[0] == "dragoman" else "normal",
            )
