"""State of tuning for one object, and its next step: measure, recommend, try on one replica, apply or reject.

The state is stored in the status, so that it survives restarts of the operator.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from dragoman_operator.api.status import decode_state, encode_state
from dragoman_operator.autoscaling.sources.engine_metrics import EngineMetrics
from dragoman_operator.tuning.decision.measurements import LADDER, Evidence, Measurements, evidence
from dragoman_operator.tuning.decision.recommendation import (
    Bounds,
    Outcome,
    Recommendation,
    compare,
    recommend_max_num_seqs,
)

NONE = Measurements()
MAX_TRIALS = 5
"""Maximum number of stored trials."""
HOURS = 24
"""Number of hours whose peaks are stored."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A maxNumSeqs that runs on one replica.

    Attributes:
        side_by_side: Whether replicas with the former value run at the same time.
        load: Requests in flight per replica at the 95th percentile, on which the recommendation is based.
        ready: Time at which the first pod with this value was ready; None before.
        before: Measurements of the former value: before the trial, or side by side since `ready`.
        after: Measurements of this value since `ready`.
        evaluated_windows: Windows at the last evaluation; evaluating every sample would favour chance results.
    """

    max_num_seqs: int
    started: float
    side_by_side: bool
    load: float
    reason: str
    ready: float | None = None
    before: Measurements = NONE
    after: Measurements = NONE
    evaluated_windows: int = 0


@dataclass(frozen=True, slots=True)
class Ended:
    """A completed trial.

    Attributes:
        load: As in `Trial`; a rejected value is not tried again at a similar load.
    """

    at: float
    before: int
    tried: int
    applied: bool
    load: float
    reason: str


@dataclass(frozen=True, slots=True)
class State:
    """See the module.

    Attributes:
        version: Digest of the measured spec, without maxNumSeqs.
        spec_size: `spec.engine.maxNumSeqs` at the start of tuning.
        max_num_seqs: The value in use, without that of a trial.
        recommended: Time since which it has the same value, Unix seconds.
        peaks: Requests in flight at the 95th percentile of the busiest window of each hour of the last day, by the hour
            since 1970; the oldest first.
    """

    version: str
    spec_size: int
    max_num_seqs: int
    current: Measurements
    previous: Measurements | None = None
    recommendation: Recommendation | None = None
    recommended: float = 0.0
    evidence: Evidence | None = None
    trial: Trial | None = None
    ended: tuple[Ended, ...] = ()
    peaks: tuple[tuple[int, float], ...] = ()

    @property
    def size_of_pods(self) -> int:
        """The value in the Deployment's template."""
        return self.trial.max_num_seqs if self.trial else self.max_num_seqs

    @property
    def busiest(self) -> float:
        """The maximum of the peaks."""
        return max((load for _, load in self.peaks), default=0.0)

    def with_peak(self, load: float, now: float) -> State:
        """The state with a window that ended now."""
        hour = int(now // 3600)
        kept = dict(found for found in self.peaks if found[0] > hour - HOURS)
        kept[hour] = max(load, kept.get(hour, 0.0))
        return replace(self, peaks=tuple(sorted(kept.items())))

    def unapplied(self, now: float) -> State:
        """The state if values are only recommended: the pods have the spec's own."""
        if self.trial is None and self.max_num_seqs == self.spec_size:
            return self
        started = Measurements(started=now)
        return replace(self, max_num_seqs=self.spec_size, trial=None, current=started, previous=None)

    def encoded(self) -> str:
        """Encoded for the status."""
        return encode_state(_STATE.dump_json(self).decode())


_STATE: TypeAdapter[State] = TypeAdapter(State)


FORMER_KEYS = {
    "began": "started",
    "judged": "evaluated_windows",
    "looks": "samples",
    "pace": "throughput",
    "pace_squares": "throughput_squares",
    "paced": "rated",
    "why": "reason",
}
"""Keys that an earlier operator stored, at any depth."""


def _current(stored: dict[str, Any]) -> dict[str, Any]:
    """An object of stored JSON with the keys of today."""
    return {FORMER_KEYS.get(key, key): value for key, value in stored.items()}


def fresh(version: str, spec_size: int, now: float) -> State:
    """The initial state."""
    return State(version, spec_size, spec_size, Measurements(started=now))


def resumed(word: object, version: str, spec_size: int, now: float) -> State:
    """The state from a status, as far as it applies to this spec.

    If the user changed `maxNumSeqs`, tuning starts again from that value. After another change of model, image or
    settings the throughput differs: measurements are discarded and a trial ends, but the value stays. A malformed
    state is ignored.
    """
    try:
        found = _STATE.validate_python(json.loads(decode_state(word), object_hook=_current))
    except (ValueError, RecursionError):
        return fresh(version, spec_size, now)
    if not all(1 <= size <= LADDER[-1] for size in (found.max_num_seqs, found.size_of_pods)):
        return fresh(version, spec_size, now)
    return adopted(found, version, spec_size, now)


def adopted(state: State, version: str, spec_size: int, now: float) -> State:
    """The state for a spec that may have changed; see `resumed`."""
    if state.spec_size != spec_size or state.max_num_seqs < 1:
        return fresh(version, spec_size, now)
    if state.version != version:
        known = replace(fresh(version, spec_size, now), max_num_seqs=state.max_num_seqs)
        return replace(known, peaks=state.peaks)
    return state


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
    bounds = Bounds(state.max_num_seqs, facts.minimum, facts.maximum, state.busiest)
    found = seen(state, now)
    latest = recommend_max_num_seqs(found, bounds)
    if latest is not None:
        same = state.recommendation is not None and latest.max_num_seqs == state.recommendation.max_num_seqs
        since = state.recommended if same else now
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
