"""What tuning remembers of one object, between two looks and over a restart of the operator: small, in the status."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pydantic import TypeAdapter, ValidationError

from dragoman_operator.api.packing import packed, unpacked
from dragoman_operator.tuning.decision.evidence import Evidence
from dragoman_operator.tuning.decision.size import Recommendation
from dragoman_operator.tuning.decision.tally import LADDER, Tally

NONE = Tally()
KEPT = 5
"""Trials that are remembered."""
HOURS = 24
"""Whose peaks are remembered."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A size that runs on one replica, or on the only one.

    Attributes:
        max_num_seqs: The size.
        began: When it was asked for, Unix seconds.
        side_by_side: Whether replicas of the former size run beside it.
        load: Requests in flight on a replica at the 95th percentile, for which it was recommended.
        why: The recommendation's reason.
        ready: When the first pod of this size was ready; None before.
        before: What was seen of the former size: before the trial, or side by side since `ready`.
        after: What is seen of this one since then.
        judged: Windows after which it was judged: to ask at every look is to wait for chance to say something.
    """

    max_num_seqs: int
    began: float
    side_by_side: bool
    load: float
    why: str
    ready: float | None = None
    before: Tally = NONE
    after: Tally = NONE
    judged: int = 0


@dataclass(frozen=True, slots=True)
class Ended:
    """A trial that is over.

    Attributes:
        at: When, Unix seconds.
        before: The size that was there.
        tried: The one that was tried.
        applied: Whether it is the size since then.
        load: As in `Trial`; a size that was turned down is not tried again at the same load.
        reason: Why it came to that.
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
        version: Digest of the spec that the figures belong to, the size left out.
        spec_size: `spec.engine.maxNumSeqs`, at which tuning began.
        max_num_seqs: The size of the pods, but for a trial's.
        current: What is seen of it in the window that is under way.
        previous: What was seen in the one before; None until there was one.
        recommendation: The last one.
        recommended: Since when it is the same size, Unix seconds.
        evidence: What it rests on.
        trial: The one that is under way.
        ended: The last ones, the newest first.
        peaks: Requests in flight at the 95th percentile of the busiest window of each hour of the last day, by the hour
            since 1970; the oldest first.
    """

    version: str
    spec_size: int
    max_num_seqs: int
    current: Tally
    previous: Tally | None = None
    recommendation: Recommendation | None = None
    recommended: float = 0.0
    evidence: Evidence | None = None
    trial: Trial | None = None
    ended: tuple[Ended, ...] = ()
    peaks: tuple[tuple[int, float], ...] = ()

    @property
    def size_of_pods(self) -> int:
        """The size that the Deployment's template has."""
        return self.trial.max_num_seqs if self.trial else self.max_num_seqs

    @property
    def busiest(self) -> float:
        """The highest of the peaks."""
        return max((load for _, load in self.peaks), default=0.0)

    def with_peak(self, load: float, now: float) -> State:
        """The state with a window that ended now."""
        hour = int(now // 3600)
        kept = dict(found for found in self.peaks if found[0] > hour - HOURS)
        kept[hour] = max(load, kept.get(hour, 0.0))
        return replace(self, peaks=tuple(sorted(kept.items())))

    def unapplied(self, now: float) -> State:
        """The state where sizes are only recommended: the pods have the spec's own."""
        if self.trial is None and self.max_num_seqs == self.spec_size:
            return self
        began = Tally(began=now)
        return replace(self, max_num_seqs=self.spec_size, trial=None, current=began, previous=None)

    def packed(self) -> str:
        """As a word for the status."""
        return packed(_STATE.dump_json(_rounded(self)).decode())


_STATE: TypeAdapter[State] = TypeAdapter(State)


def fresh(version: str, spec_size: int, now: float) -> State:
    """Nothing seen yet, and the pods as the spec has them."""
    return State(version, spec_size, spec_size, Tally(began=now))


def resumed(word: object, version: str, spec_size: int, now: float) -> State:
    """The state that a status has, as far as it is one of this spec.

    Where the spec's own size was changed the user has chosen anew, and tuning begins there. Another model, image or
    setting has another pace: what was seen is forgotten and a trial ends, but the size stays. What cannot be read
    is no state.

    Args:
        word: `State.packed`.
        version: Digest of the spec as it is now.
        spec_size: Its size.
        now: Unix seconds.
    """
    try:
        found = _STATE.validate_json(unpacked(word))
    except (ValueError, ValidationError):
        return fresh(version, spec_size, now)
    if not all(1 <= size <= LADDER[-1] for size in (found.max_num_seqs, found.size_of_pods)):
        return fresh(version, spec_size, now)
    return adopted(found, version, spec_size, now)


def adopted(state: State, version: str, spec_size: int, now: float) -> State:
    """The state under a spec that may have changed; see `resumed`."""
    if state.spec_size != spec_size or state.max_num_seqs < 1:
        return fresh(version, spec_size, now)
    if state.version != version:
        known = replace(fresh(version, spec_size, now), max_num_seqs=state.max_num_seqs)
        return replace(known, peaks=state.peaks)
    return state


def _rounded(state: State) -> State:
    trial = state.trial
    if trial is not None:
        trial = replace(trial, before=trial.before.rounded(), after=trial.after.rounded())
    previous = state.previous.rounded() if state.previous else None
    return replace(state, current=state.current.rounded(), previous=previous, trial=trial)
