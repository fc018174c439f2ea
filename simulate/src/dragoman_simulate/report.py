"""Results of a replay: a table, and one JSON object."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from dragoman.command_line import markdown
from dragoman_simulate.replay import ReplayOutcome

SHARE_BOUND = 0.8
NOTHING = 1e-6
"""A share of requests below one in a million is none: a fluid does not know single ones."""

OURS = "dragoman"


@dataclass(frozen=True)
class Comparison:
    """Our policy against the best of the others on one trace.

    Best is the rule with the lowest share of requests over the target, and of those with none, or as few, the one
    with the fewest replica-hours.

    Attributes:
        hours_ratio: Our replica-hours over its.
        share_ratio: Our share over its; 0 where both have none, None where it has none and we have some.
        met: Whether we need no more hours and at most `SHARE_BOUND` of the share.
    """

    best: str
    hours_ratio: float
    share_ratio: float | None
    met: bool


def compared(outcomes: Mapping[str, ReplayOutcome]) -> Comparison | None:
    """Compare; None where ours or all others were left out."""
    others = {name: outcome for name, outcome in outcomes.items() if name != OURS}
    if OURS not in outcomes or not others:
        return None
    ours = outcomes[OURS]
    best = min(others, key=lambda name: (round(_share(others[name]), 6), others[name].replica_hours))
    share, bound = _share(ours), _share(others[best])
    ratio = share / bound if bound else None if share else 0.0
    hours_ratio = ours.replica_hours / others[best].replica_hours
    met = hours_ratio <= 1 + 1e-9 and ratio is not None and ratio <= SHARE_BOUND
    return Comparison(best, hours_ratio, ratio, met)


def table(outcomes: Mapping[str, ReplayOutcome]) -> str:
    """One line per policy."""
    head = (
        "policy",
        "replica-h",
        "over target",
        "p50 s",
        "p95 s",
        "p99 s",
        "changes/h",
        "max",
        "removed blind",
    )
    rows = [
        (
            name,
            f"{outcome.replica_hours:.2f}",
            f"{_share(outcome):.3%}",
            f"{outcome.wait_p50_s:.1f}",
            f"{outcome.wait_p95_s:.1f}",
            f"{outcome.wait_p99_s:.1f}",
            f"{outcome.changes_per_hour:.1f}",
            str(outcome.replicas_max),
            str(outcome.removed_blind),
        )
        for name, outcome in outcomes.items()
    ]
    return markdown(head, rows)


def sentence(comparison: Comparison) -> str:
    """The comparison in a sentence."""
    share = (
        "some where it has none"
        if comparison.share_ratio is None
        else f"{comparison.share_ratio:.2f} of its share over target"
    )
    hours = f"{comparison.hours_ratio:.3f} of its hours"
    against = f"dragoman against {comparison.best}, the best of the others: {hours}, {share}"
    return f"{against} ({'within' if comparison.met else 'NOT within'} 1.0 and {SHARE_BOUND})"


def as_json(outcomes: Mapping[str, Mapping[str, ReplayOutcome]]) -> str:
    """One line: `{"policies": …}` for one trace, and `{"traces": {name: {"policies": …}}}` for several."""
    documents = {
        trace: {"policies": {name: _figures(outcome) for name, outcome in policies.items()}}
        for trace, policies in outcomes.items()
    }
    if len(documents) == 1:
        return json.dumps(next(iter(documents.values())))
    return json.dumps({"traces": documents})


def fronts_as_json(fronts: Mapping[str, Mapping[str, Sequence[Any]]]) -> str:
    """One line: by trace and rule the settings of its front, the cheapest first."""
    return json.dumps(
        {
            trace: {
                rule: [{name: round(figure, 6) for name, figure in asdict(each).items()} for each in settings]
                for rule, settings in rules.items()
            }
            for trace, rules in fronts.items()
        }
    )


def _figures(outcome: ReplayOutcome) -> dict[str, Any]:
    names = (field.name for field in fields(outcome) if field.name != "curves")
    return {name: round(getattr(outcome, name), 6) for name in names}


def _share(outcome: ReplayOutcome) -> float:
    return outcome.over_target_share if outcome.over_target_share > NOTHING else 0.0
