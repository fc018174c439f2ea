"""State of tuning for one object, and its next step: measure a window, recommend.

The state is stored in the status, so that it survives restarts of the operator.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from pydantic import TypeAdapter

from dragoman_operator.api.status import decode_state, encode_state
from dragoman_operator.scraping.values import EngineMetrics
from dragoman_operator.tuning.decision.measurements import LADDER, Evidence, Measurements, evidence
from dragoman_operator.tuning.decision.recommendation import Bounds, Recommendation, recommend_max_num_seqs

HOURS = 24
"""Number of hours whose peaks are stored."""


@dataclass(frozen=True, slots=True)
class State:
    """See the module.

    Attributes:
        version: Digest of the measured spec, without maxNumSeqs.
        spec_size: `spec.engine.maxNumSeqs` at the start of tuning.
        current: Measurements of the current window.
        previous: Those of the window before it.
        recommended: Time since which the recommendation has the same value, Unix seconds.
        peaks: Requests in flight at the 95th percentile of the busiest window of each hour of the last day, by the hour
            since 1970; the oldest first.
        since: Start of the first window, Unix seconds; it outlives changes of the spec.
    """

    version: str
    spec_size: int
    current: Measurements
    previous: Measurements | None = None
    recommendation: Recommendation | None = None
    recommended: float = 0.0
    evidence: Evidence | None = None
    peaks: tuple[tuple[int, float], ...] = ()
    since: float = 0.0

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

    def encoded(self) -> str:
        """Encoded for the status."""
        return encode_state(_STATE.dump_json(self).decode())


_STATE: TypeAdapter[State] = TypeAdapter(State)


def fresh(version: str, spec_size: int, now: float) -> State:
    """The initial state."""
    return State(version, spec_size, Measurements(started=now), since=now)


def restored(word: object, version: str, spec_size: int, now: float) -> State:
    """The state from a status, as far as it applies to this spec.

    After a change of maxNumSeqs, model, image or settings the measurements are discarded. A malformed state is ignored.
    """
    try:
        found = _STATE.validate_json(decode_state(word))
    except ValueError:
        return fresh(version, spec_size, now)
    if found.recommendation is not None and not 1 <= found.recommendation.max_num_seqs <= LADDER[-1]:
        return fresh(version, spec_size, now)
    return adopted(found, version, spec_size, now)


def adopted(state: State, version: str, spec_size: int, now: float) -> State:
    """The state for a spec that may have changed; see `restored`."""
    if (state.version, state.spec_size) == (version, spec_size):
        return state
    # The load does not depend on the engine.
    return replace(fresh(version, spec_size, now), peaks=state.peaks, since=state.since)


class Observation(NamedTuple):
    """Two readings of one pod."""

    max_num_seqs: int
    before: EngineMetrics
    now: EngineMetrics


def with_observations(state: State, observations: Iterable[Observation]) -> State:
    """The state with the measurements of the pods."""
    observations = list(observations)
    # While pods are replaced the load is distributed differently.
    if any(each.max_num_seqs != state.spec_size for each in observations):
        return state
    current = state.current
    for each in observations:
        current = current.seen(each.before, each.now)
    return replace(state, current=current)


def next_step(state: State, minimum: int, maximum: int, window_s: float, now: float) -> State:
    """The state after a tick: a recommendation at the end of each window with enough requests.

    Args:
        state: With the measurements up to now.
        minimum: See `Bounds`.
        maximum: See `Bounds`.
        window_s: Length of a window in seconds.
        now: Unix seconds.
    """
    if now - state.current.started < window_s:
        return state
    whole = state.previous.plus(state.current) if state.previous else state.current
    found = evidence(whole, now)
    covers_a_day = now - state.since >= HOURS * 3600
    bounds = Bounds(state.spec_size, minimum, maximum, state.busiest, covers_a_day)
    latest = recommend_max_num_seqs(found, bounds)
    if latest is not None:
        same = state.recommendation is not None and latest.max_num_seqs == state.recommendation.max_num_seqs
        since = state.recommended if same else now
        state = replace(state, recommendation=latest, recommended=since, evidence=found)
        state = state.with_peak(found.p95, now)
    return replace(state, current=Measurements(started=now), previous=state.current)
