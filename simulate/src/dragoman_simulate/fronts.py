"""Fronts: each rule swept over its own knob, and what it reaches for each budget of replica-hours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from dragoman.command_line import markdown
from dragoman_simulate.policies import KNOBS
from dragoman_simulate.replay import fluid
from dragoman_simulate.report import OURS, SHARE_BOUND
from dragoman_simulate.speed import SpeedTable
from dragoman_simulate.trace import Trace
from dragoman_simulate.view import ScalingLimits

NEGLIGIBLE = 0.001
"""Shares over target that are not told apart."""


@dataclass(frozen=True, order=True)
class KnobSetting:
    """One value of a rule's knob on one trace.

    Attributes:
        replica_hours: For each hour of the trace: the mean number of replicas.
        over_target_share: 0 to 1.
        value: Of the knob.
    """

    replica_hours: float
    over_target_share: float
    value: float


@dataclass(frozen=True)
class Budget:
    """Ours and the best other rule within a number of replica-hours.

    Attributes:
        replica_hours: The budget, per hour of the trace.
        ours: The least share over target of our settings within it; None: none is within it.
        best: The rule with the least share of the others.
        share: Its share.
    """

    replica_hours: float
    ours: float | None
    best: str
    share: float

    @property
    def ratio(self) -> float | None:
        """Our share divided by the best other's; 0 where both are negligible, None where ours has none to compare."""
        if self.ours is None:
            return None
        if max(self.ours, self.share) < NEGLIGIBLE:
            return 0.0
        return self.ours / self.share if self.share else float("inf")

    @property
    def met(self) -> bool:
        """Whether ours is at most `SHARE_BOUND` of the best other's share."""
        return self.ratio is not None and self.ratio <= SHARE_BOUND


def sweep(trace: Trace, rule: str, limits: ScalingLimits, speed: SpeedTable) -> list[KnobSetting]:
    """All values of a rule's knob on a trace; each begins with the same replicas."""
    knob, hours = KNOBS[rule], trace.duration_s / 3600
    outcomes = ((value, fluid(trace, knob.make(limits, value), limits, speed)) for value in knob.values)
    return [
        KnobSetting(each.replica_hours / hours, each.over_target_share, value) for value, each in outcomes
    ]


def front(settings: Iterable[KnobSetting]) -> list[KnobSetting]:
    """The settings that no other one matches with fewer replica-hours; the cheapest first."""
    found: list[KnobSetting] = []
    for setting in sorted(settings):
        if not found or setting.over_target_share < found[-1].over_target_share:
            found.append(setting)
    return found


def budgets(fronts: Mapping[str, list[KnobSetting]]) -> list[Budget]:
    """Compare at each number of replica-hours at which the best other rule improves, the smallest first."""
    others = {rule: settings for rule, settings in fronts.items() if rule != OURS}
    found: list[Budget] = []
    for hours in sorted({setting.replica_hours for settings in others.values() for setting in settings}):
        reached = {rule: _least(settings, hours) for rule, settings in others.items()}
        shares = {rule: share for rule, share in reached.items() if share is not None}
        best = min(shares, key=lambda rule: shares[rule])
        if not found or shares[best] < found[-1].share:
            found.append(Budget(hours, _least(fronts[OURS], hours), best, shares[best]))
    return found


def _least(settings: Iterable[KnobSetting], hours: float) -> float | None:
    return min(
        (each.over_target_share for each in settings if each.replica_hours <= hours + 1e-9), default=None
    )


def table(fronts: Mapping[str, list[KnobSetting]]) -> str:
    """Ours and the best other at each budget; the last column is the ratio of the shares."""
    rows = []
    for budget, after in pairwise([*budgets(fronts), None]):
        assert budget is not None
        end = "" if after is None else f" to {after.replica_hours:.2f}"
        ratio = "none as cheap" if budget.ratio is None else f"{budget.ratio:.2f}"
        ours = "–" if budget.ours is None else f"{budget.ours:.2%}"
        met = "" if budget.met else " (not met)"
        rows.append(
            (f"{budget.replica_hours:.2f}{end}", ours, f"{budget.share:.2%} {budget.best}", ratio + met)
        )
    return markdown(("replicas on average", OURS, "best other", "ratio"), rows)
