"""State of tuning for one object; stored in the status, so that it survives restarts of the operator."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from dragoman_operator.api.status import decode_state, encode_state
from dragoman_operator.tuning.decision.measurements import LADDER, Evidence, Measurements
from dragoman_operator.tuning.decision.recommendation import Recommendation

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


def _current(value: Any) -> Any:
    """Stored JSON with the keys of today."""
    if isinstance(value, dict):
        return {FORMER_KEYS.get(key, key): _current(inner) for key, inner in value.items()}
    return [_current(inner) for inner in value] if isinstance(value, list) else value


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
        found = _STATE.validate_python(_current(json.loads(decode_state(word))))
    except (ValueError, ValidationError, RecursionError):
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
