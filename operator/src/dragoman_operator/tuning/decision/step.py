"""The next step of tuning: measure, recommend, try on one replica, apply or reject."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from dragoman_operator.autoscaling.sources.engine_metrics import EngineMetrics
from dragoman_operator.tuning.decision.comparison import Outcome, compare
from dragoman_operator.tuning.decision.measurements import Evidence, Measurements, evidence
from dragoman_operator.tuning.decision.recommendation import Bounds, Recommendation, recommend_max_num_seqs
from dragoman_operator.tuning.decision.state import MAX_TRIALS, Ended, State, Trial

SIDE_BY_SIDE = 2
"""Minimum number of replicas for a side-by-side trial."""

MAX_WINDOWS = 6
"""Windows after which an inconclusive trial is rejected."""

OTHER_LOAD = 1.5
"""Factor above or below the load of a rejected trial from which the value may be tried again."""


@dataclass(frozen=True, slots=True)
class Facts:
    """State of an object.

    Attributes:
        minimum: Smallest size; see `Bounds`.
        start_s: Maximum time for a pod to become ready.
        rested: Whether exactly these are ready, all with one template and the state's value.
        ready: Ready pods by maxNumSeqs.
        failure: Reason why pods of the trial cannot start; None without one.
    """

    apply: bool
    minimum: int
    maximum: int
    window_s: float
    start_s: float
    desired: int
    rested: bool
    ready: dict[int, int]
    failure: str | None = None


class Observation(NamedTuple):
    """Two readings of one pod."""

    max_num_seqs: int
    before: EngineMetrics
    now: EngineMetrics


def observe(state: State, observations: Iterable[Observation]) -> State:
    """The state with the measurements of the pods."""
    current, trial, observations = state.current, state.trial, list(observations)
    # While pods are replaced the load is distributed differently.
    settled = all(observation.max_num_seqs == state.max_num_seqs for observation in observations)
    for observation in observations:
        if trial is None:
            if settled:
                current = current.seen(observation.before, observation.now)
        elif trial.ready is not None and observation.before.at >= trial.ready:
            if observation.max_num_seqs == trial.max_num_seqs:
                trial = replace(trial, after=trial.after.seen(observation.before, observation.now))
            elif observation.max_num_seqs == state.max_num_seqs and trial.side_by_side:
                trial = replace(trial, before=trial.before.seen(observation.before, observation.now))
    return replace(state, current=current, trial=trial)


def next_step(state: State, facts: Facts, now: float) -> State:
    """The state after a tick; its trial and value determine the pods."""
    if not facts.apply:
        state = state.unapplied(now)
    elif state.trial is not None:
        return _tried(state, state.trial, facts, now)
    if now - state.current.started < facts.window_s:
        return state
    latest = _recommendation(state, facts, now)
    if latest is not None:
        same = state.recommendation is not None and latest.max_num_seqs == state.recommendation.max_num_seqs
        since = state.recommended if same else now
        found = seen(state, now)
        state = replace(state, recommendation=latest, recommended=since, evidence=found)
        state = state.with_peak(found.p95, now)
    if latest is not None and (trial := _trial(state, latest, facts, now)) is not None:
        return replace(state, current=Measurements(started=now), previous=None, trial=trial)
    return replace(state, current=Measurements(started=now), previous=state.current)


def seen(state: State, now: float) -> Evidence:
    """Statistics for a recommendation: of the last window and the current one."""
    return evidence(_whole(state), now)


def _whole(state: State) -> Measurements:
    return state.previous.plus(state.current) if state.previous else state.current


def _recommendation(state: State, facts: Facts, now: float) -> Recommendation | None:
    bounds = Bounds(state.max_num_seqs, facts.minimum, facts.maximum, state.busiest)
    return recommend_max_num_seqs(seen(state, now), bounds)


def _trial(state: State, found: Recommendation, facts: Facts, now: float) -> Trial | None:
    """A trial of the recommendation, if no pod is changing and it was not rejected at a similar load."""
    if not facts.apply or not facts.rested or not facts.desired or found.max_num_seqs == state.max_num_seqs:
        return None
    load = seen(state, now).p95
    if any(_rejected(ended, found, load) for ended in state.ended):
        return None
    beside = facts.desired >= SIDE_BY_SIDE
    before = Measurements(started=now) if beside else _whole(state)
    return Trial(found.max_num_seqs, now, beside, load, found.reason, before=before)


def _rejected(ended: Ended, found: Recommendation, load: float) -> bool:
    same = ended.tried == found.max_num_seqs and not ended.applied
    return same and ended.load / OTHER_LOAD < load < ended.load * OTHER_LOAD


def _tried(state: State, trial: Trial, facts: Facts, now: float) -> State:
    if facts.failure is not None:
        return _ended(state, trial, now, False, f"it does not start: {facts.failure}")
    if not facts.desired:
        # Scaled to zero: there is nothing to compare, and new pods have the size in force.
        return replace(state, trial=None, current=Measurements(started=now), previous=None)
    if trial.ready is None:
        if facts.ready.get(trial.max_num_seqs, 0):
            started = replace(trial.after, started=now)
            before = replace(trial.before, started=now) if trial.side_by_side else trial.before
            return replace(state, trial=replace(trial, ready=now, before=before, after=started))
        if now - trial.started > facts.start_s:
            return _ended(
                state, trial, now, False, f"no pod of the trial was ready within {facts.start_s:.0f} s"
            )
        return state
    windows = int((now - trial.ready) / facts.window_s)
    if windows <= trial.evaluated_windows:
        return state
    comparison = compare(trial.before, trial.after, side_by_side=trial.side_by_side)
    if comparison.outcome is Outcome.INCONCLUSIVE:
        if windows < MAX_WINDOWS:
            return replace(state, trial=replace(trial, evaluated_windows=windows))
        return _ended(state, trial, now, False, f"too few measurements: {comparison.reason}")
    return _ended(state, trial, now, comparison.outcome is not Outcome.WORSE, comparison.reason)


def _ended(state: State, trial: Trial, now: float, applied: bool, reason: str) -> State:
    ended = Ended(now, state.max_num_seqs, trial.max_num_seqs, applied, trial.load, reason)
    return replace(
        state,
        max_num_seqs=trial.max_num_seqs if applied else state.max_num_seqs,
        current=Measurements(started=now),
        previous=None,
        trial=None,
        ended=(ended, *state.ended)[:MAX_TRIALS],
    )
