"""What a sweep leaves: a table, a plot, and a patch for the TranslationDeployment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

from dragoman_tune.search import Policy, Stop, Trial

HEAD = ("max_num_seqs", "max_num_batched_tokens", "req/s", "p95 s", "SLO", "")


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table whose columns are aligned."""
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    written = ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines]
    written.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(written)


def table(trials: Sequence[Trial], stop: Stop, policy: Policy) -> str:
    """All trials as a Markdown table, the recommended one marked."""
    rows = []
    for trial in sorted(trials, key=lambda one: one.setting):
        kept = trial.p95_s is not None and trial.p95_s <= policy.slo_p95_s
        note = trial.failed or _note(trial, stop)
        rows.append(
            (
                str(trial.setting.max_num_seqs),
                str(trial.setting.max_num_batched_tokens),
                f"{trial.requests_per_s:.2f}",
                "–" if trial.p95_s is None else f"{trial.p95_s:.2f}",
                "kept" if kept else "broken",
                note,
            )
        )
    return markdown(HEAD, rows)


def _note(trial: Trial, stop: Stop) -> str:
    if trial == stop.best:
        return "← recommended"
    return f"{trial.unanswered_ratio:.0%} without an answer" if trial.unanswered_ratio >= 0.005 else ""


def patch(trial: Trial) -> str:
    """A merge patch for `kubectl patch td NAME --type merge --patch-file`."""
    engine = {
        "maxNumSeqs": trial.setting.max_num_seqs,
        "maxNumBatchedTokens": trial.setting.max_num_batched_tokens,
    }
    return str(yaml.safe_dump({"spec": {"engine": engine}}, sort_keys=False))


def plot(trials: Sequence[Trial], stop: Stop, policy: Policy, path: Path) -> None:
    """Draw throughput and tail over sequences.

    Raises:
        ModuleNotFoundError: matplotlib is not installed.
        OSError: The file cannot be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 6), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots(2, 1, sharex=True)
    for tokens in sorted({trial.setting.max_num_batched_tokens for trial in trials}):
        shown = sorted(
            (
                trial
                for trial in trials
                if trial.setting.max_num_batched_tokens == tokens and trial.failed is None
            ),
            key=lambda trial: trial.setting,
        )
        sequences = [trial.setting.max_num_seqs for trial in shown]
        axes[0].plot(sequences, [t.requests_per_s for t in shown], "o-", label=f"{tokens} tokens a step")
        axes[1].plot(sequences, [t.p95_s for t in shown], "o-")
    axes[1].axhline(policy.slo_p95_s, color="#c1272d", linewidth=1, linestyle="--", label="SLO")
    if stop.best is not None:
        for axis in axes:
            axis.axvline(stop.best.setting.max_num_seqs, color="#009e73", linewidth=1)
    axes[0].set_ylabel("requests / s")
    axes[1].set_ylabel("p95, s")
    axes[1].set_xlabel("max_num_seqs")
    for axis in axes:
        axis.set_xscale("log", base=2)
        axis.set_ylim(bottom=0)
        axis.legend(fontsize="small")
        axis.grid(color="#eeeeee")
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
