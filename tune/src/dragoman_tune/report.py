"""Output of a sweep: a table, and a patch for the TranslationDeployment."""

from __future__ import annotations

from collections.abc import Sequence

import yaml

from dragoman.command_line import markdown
from dragoman_tune.search import Goal, Stop, Trial

HEAD = ("max_num_seqs", "max_num_batched_tokens", "req/s", "p95 s", "SLO", "")


def table(trials: Sequence[Trial], stop: Stop, policy: Goal) -> str:
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
