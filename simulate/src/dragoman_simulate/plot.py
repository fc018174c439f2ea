"""Pictures. Of a replay, one column per trace: arrivals, ready replicas and queue of each policy, with its costs.

Of fronts, one panel per trace: share over target against replicas.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dragoman_simulate.errors import SimulateError
from dragoman_simulate.fronts import KnobSetting
from dragoman_simulate.replay import ReplayOutcome
from dragoman_simulate.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"dragoman": "#c1272d", "hpa": "#0072b2", "keda": "#c0c0c0", "kpa": "#d98200", "llm-d": "#009e73"}
"""Distinct for the colour-blind too."""

COLUMNS = 4
SMOOTH_S = 30
LEAST_SHARE = 0.0001
"""What none is drawn as in fronts."""
EMPTY = 0.5
"""What an empty queue is drawn as: a logarithmic scale has no zero."""


def draw(path: Path, traces: Sequence[Trace], outcomes: Mapping[str, Mapping[str, ReplayOutcome]]) -> None:
    """Write a PNG (or the format of the file's ending) of all traces under all policies.

    Raises:
        SimulateError: matplotlib is not installed.
        OSError: The file cannot be written.
        ValueError: matplotlib does not write files with that ending.
    """
    columns = min(COLUMNS, len(traces))
    bands = [traces[start : start + columns] for start in range(0, len(traces), columns)]
    figure = _figure(max(7.0, 5.0 * columns), 8.2 * len(bands))
    axes: Any = figure.subplots(3 * len(bands), columns, squeeze=False)
    for axis in axes[:, len(bands[-1]) :][-3:].flat:
        axis.set_visible(False)
    for number, band in enumerate(bands):
        for column, trace in enumerate(band):
            _column(axes[3 * number : 3 * number + 3, column], trace, outcomes[trace.name])
    figure.savefig(path, dpi=90)


def draw_fronts(path: Path, fronts: Mapping[str, Mapping[str, Sequence[KnobSetting]]]) -> None:
    """Write a picture of the fronts of all traces.

    Raises:
        SimulateError: matplotlib is not installed.
        OSError: The file cannot be written.
        ValueError: matplotlib does not write files with that ending.
    """
    columns = min(COLUMNS, len(fronts))
    rows = math.ceil(len(fronts) / columns)
    figure = _figure(max(6.0, 4.2 * columns), 3.6 * rows)
    axes = figure.subplots(rows, columns, squeeze=False).flat
    for axis, (trace, rules) in zip(axes, fronts.items(), strict=False):
        for name, settings in list(rules.items())[::-1]:
            hours = [each.replica_hours for each in settings]
            shares = [100 * max(each.over_target_share, LEAST_SHARE) for each in settings]
            style: dict[str, Any] = {"color": COLOURS.get(name, "black"), "marker": "o", "markersize": 3}
            style["linewidth"] = 2.0 if name == "dragoman" else 1.0
            axis.step(hours, shares, where="post", label=name, **style)
        axis.set_title(trace, fontweight="bold", loc="left")
        axis.set_yscale("log")
        axis.set_xlabel("replicas on average")
        axis.set_ylabel("% of requests over target")
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(color="#eeeeee")
        axis.legend(fontsize="small", reverse=True)
    for axis in axes:
        axis.set_visible(False)
    figure.savefig(path, dpi=90)


def _figure(width_in: float, height_in: float) -> Any:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as missing:
        raise SimulateError("--plot needs matplotlib: pip install matplotlib") from missing
    figure = Figure(figsize=(width_in, height_in), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _column(axes: Sequence[Axes], trace: Trace, outcomes: Mapping[str, ReplayOutcome]) -> None:
    arrivals, replicas, queue = axes
    window = np.ones(SMOOTH_S) / SMOOTH_S
    hours = np.arange(trace.duration_s) / 3600
    arrivals.fill_between(hours, np.convolve(trace.counts, window, mode="same"), color="#cfcfcf", linewidth=0)
    arrivals.set_title(trace.name, fontweight="bold", loc="left")
    for name, outcome in list(outcomes.items())[::-1]:
        style: dict[str, Any] = {"color": COLOURS.get(name, "black"), "alpha": 0.9}
        style["linewidth"] = 2.0 if name == "dragoman" else 1.0
        time_h = np.array(outcome.curves.time_s) / 3600
        label = f"{name}: {outcome.replica_hours:.1f} h, {outcome.over_target_share:.2%} over target"
        replicas.step(time_h, outcome.curves.ready, where="post", **style)
        queue.plot(time_h, np.maximum(np.array(outcome.curves.queued), EMPTY), label=label, **style)
    arrivals.set_ylabel("requests / s")
    replicas.set_ylabel("ready replicas")
    queue.set_ylabel("requests waiting")
    queue.set_yscale("log")
    queue.set_xlabel("hours")
    queue.legend(fontsize="small", reverse=True, loc="upper left", bbox_to_anchor=(0, -0.2))
    for axis, bottom in zip(axes, (0, 0, 1), strict=True):
        axis.set_ylim(bottom=bottom)
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", color="#eeeeee")
        axis.set_axisbelow(True)
        axis.margins(x=0)
        for begin, end in trace.outages:
            axis.axvspan(begin / 3600, end / 3600, color="#f4d9d9", linewidth=0, zorder=0)
