"""What happens next: watch, recommend, try on one replica, go on or back. No step needs more than state and facts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from dragoman_operator.tuning.decision.counters import Counters
from dragoman_operator.tuning.decision.evidence import Evidence, evidence
from dragoman_operator.tuning.decision.size import Bounds, Recommendation, recommend_size
from dragoman_operator.tuning.decision.state import KEPT, Ended, State, Trial
from dragoman_operator.tuning.decision.tally import Tally
from dragoman_operator.tuning.decision.verdict import Outcome, judge

SIDE_BY_SIDE = 2
"""Replicas from which on a size is tried beside the former one."""

PATIENT_WINDOWS = 6
"""Windows after which a comparison that says nothing is given up."""

OTHER_LOAD = 1.5
"""Times the load at which a size was turned down, from which on it may be tried again; as far below, likewise."""


@dataclass(frozen=True, slots=True)
class Facts:
    """One look at an object.

    Attributes:
        apply: Whether sizes may be tried, or only recommended.
        least: Smallest size; see `size.Bounds`.
        most: Largest size.
        window_s: `spec.tuning.window`.
        start_s: How long a pod may take to become ready.
        desired: Replicas that there should be.
        rested: Whether exactly these are ready, all of one template and of the state's size.
        ready: Ready pods by their size.
        failure: Why pods of the trial's size will not start; None where they may.
    """

    apply: bool
    least: int
    most: int
    window_s: float
    start_s: float
    desired: int
    rested: bool
    ready: dict[int, int]
    failure: str | None = None


class Look(NamedTuple):
    """One pod between two readings."""

    max_num_seqs: int
    before: Counters
    now: Counters


def observe(state: State, looks: Iterable[Look]) -> State:
    """The state with what was seen of the pods.

    Args:
        state: Before.
        looks: Ready pods.
    """
    current, trial, looks = state.current, state.trial, list(looks)
    # While pods are replaced the load is not spread as it will be.
    settled = all(look.max_num_seqs == state.max_num_seqs for look in looks)
    for look in looks:
        if trial is None:
            if settled:
                current = current.seen(look.before, look.now)
        elif trial.ready is not None and look.before.at >= trial.ready:
            if look.max_num_seqs == trial.max_num_seqs:
                trial = replace(trial, after=trial.after.seen(look.before, look.now))
            elif look.max_num_seqs == state.max_num_seqs and trial.side_by_side:
                trial = replace(trial, before=trial.before.seen(look.before, look.now))
    return replace(state, current=current, trial=trial)


def next_step(state: State, facts: Facts, now: float) -> State:
    """The state after a look; its trial and its size say what pods there should be.

    Args:
        state: With what was seen.
        facts: The object as it is.
        now: Unix seconds.
    """
    if not facts.apply:
        state = state.unapplied(now)
    elif state.trial is not None:
        return _tried(state, state.trial, facts, now)
    if now - state.current.began < facts.window_s:
        return state
    latest = _recommendation(state, facts, now)
    if latest is not None:
        same = state.recommendation is not None and latest.max_num_seqs == state.recommendation.max_num_seqs
        since = state.recommended if same else now
        figures = seen(state, now)
        state = replace(state, recommendation=latest, recommended=since, evidence=figures)
        state = state.with_peak(figures.p95, now)
    if latest is not None and (trial := _trial(state, latest, facts, now)) is not None:
        return replace(state, current=Tally(began=now), previous=None, trial=trial)
    return replace(state, current=Tally(began=now), previous=state.current)


def seen(state: State, now: float) -> Evidence:
    """The figures that a recommendation rests on: of the last window and of the one under way."""
    return evidence(_whole(state), now)


def _whole(state: State) -> Tally:
    return state.previous.plus(state.current) if state.previous else state.current


def _recommendation(state: State, facts: Facts, now: float) -> Recommendation | None:
    bounds = Bounds(state.max_num_seqs, facts.least, facts.most, state.busiest)
    return recommend_size(seen(state, now), bounds)


def _trial(state: State, found: Recommendation, facts: Facts, now: float) -> Trial | None:
    """Try what is recommended, where all is at rest and it was not turned down at such a load."""
    if not facts.apply or not facts.rested or not facts.desired or found.max_num_seqs == state.max_num_seqs:
        return None
    load = seen(state, now).p95
    if any(_turned_down(ended, found, load) for ended in state.ended):
        return None
    beside = facts.desired >= SIDE_BY_SIDE
    before = Tally(began=now) if beside else _whole(state)
    return Trial(found.max_num_seqs, now, beside, load, found.reason, before=before)


def _turned_down(ended: Ended, found: Recommendation, load: float) -> bool:
    same = ended.tried == found.max_num_seqs and not ended.applied
    return same and ended.load / OTHER_LOAD < load < ended.load * OTHER_LOAD


def _tried(state: State, trial: Trial, facts: Facts, now: float) -> State:
    if facts.failure is not None:
        return _ended(state, trial, now, False, f"it does not start: {facts.failure}")
    if not facts.desired:
        # Scaled to zero: there is nothing to compare, and those that come back have the size in force.
        return replace(state, trial=None, current=Tally(began=now), previous=None)
    if trial.ready is None:
        if facts.ready.get(trial.max_num_seqs, 0):
            started = replace(trial.after, began=now)
            before = replace(trial.before, began=now) if trial.side_by_side else trial.before
            return replace(state, trial=replace(trial, ready=now, before=before, after=started))
        if now - trial.began > facts.start_s:
            return _ended(state, trial, now, False, f"no pod of it was ready within {facts.start_s:.0f} s")
        return state
    windows = int((now - trial.ready) / facts.window_s)
    if windows <= trial.judged:
        return state
    verdict = judge(trial.before, trial.after, side_by_side=trial.side_by_side)
    if verdict.outcome is Outcome.UNSURE:
        if windows < PATIENT_WINDOWS:
            return replace(state, trial=replace(trial, judged=windows))
        return _ended(state, trial, now, False, f"too little to tell by: {verdict.reason}")
    return _ended(state, trial, now, verdict.outcome is not Outcome.WORSE, verdict.reason)


def _ended(state: State, trial: Trial, now: float, applied: bool, reason: str) -> State:
    ended = Ended(now, state.max_num_seqs, trial.max_num_seqs, applied, trial.load, reason)
    return replace(
        state,
        max_num_seqs=trial.max_num_seqs if applied else state.max_num_seqs,
        current=Tally(began=now),
        previous=None,
        trial=None,
        ended=(ended, *state.ended)[:KEPT],
    )
