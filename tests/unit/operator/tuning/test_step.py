"""Watching, trying, going on and back; the state goes through the status after every step, as in a restart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_operator.api.status import decode_state, encode_state
from dragoman_operator.tuning.decision.measurements import Measurements
from dragoman_operator.tuning.decision.step import (
    FORMER_KEYS,
    MAX_WINDOWS,
    Facts,
    Observation,
    State,
    Trial,
    adopted,
    fresh,
    next_step,
    observe,
    resumed,
)

WINDOW_S = 100.0
STATUS_LIMIT = 32_768


def facts(**changes: Any) -> Facts:
    base: dict[str, Any] = {
        "apply": True,
        "minimum": 1,
        "maximum": 8192,
        "window_s": WINDOW_S,
        "start_s": 600.0,
        "desired": 3,
        "rested": True,
        "ready": {16: 3},
    }
    return Facts(**base | changes)


@dataclass
class Fleet:
    """Pods that are as in the state at the next step, and an operator that restarts after each.

    Args:
        pod: Builds a pod.
        load: Requests in flight on each.
        slower: By how much a step takes longer at sizes above 16.
    """

    pod: Callable[..., Any]
    replicas: int = 3
    load: float = 25.0
    slower: float = 1.0
    start: int = 16
    apply: bool = True
    failure: str | None = None
    starts: bool = True
    now: float = field(init=False)
    state: State = field(init=False)
    seen: list[tuple[int, int | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        first = self.pod(self.start)
        self.now = first.now.at
        self.state = fresh("v1", self.start, self.now)
        self._pods = {
            (self.start, number): self.pod(self.start, seed=number) for number in range(self.replicas)
        }

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self._follow()
            before = self.now
            self.now += 5.0
            observations = [
                Observation(size, *pod.sample(self.load, self.now))
                for (size, _), pod in self._pods.items()
                if pod.now.at == before
            ]
            ready: dict[int, int] = {}
            for size, _ in self._pods:
                ready[size] = ready.get(size, 0) + 1
            rested = ready == {self.state.max_num_seqs: self.replicas}
            failure = self.failure if self.state.trial else None
            around = facts(
                apply=self.apply, desired=self.replicas, rested=rested, ready=ready, failure=failure
            )
            state = next_step(observe(self.state, observations), around, self.now)
            self.state = resumed(state.encoded(), "v1", self.start, self.now)
            self.seen.append((self.state.max_num_seqs, state.trial.max_num_seqs if state.trial else None))

    def until(self, holds: Callable[[State], bool], steps: int = 400) -> None:
        for _ in range(steps):
            if holds(self.state):
                return
            self.run(1)
        pytest.fail(f"not within {steps} steps: {self.state}")

    def _follow(self) -> None:
        state = self.state
        tried = state.trial.max_num_seqs if state.trial and self.starts else None
        tries = 0 if tried is None else 1 if state.trial and state.trial.side_by_side else self.replicas
        kept = self.replicas - tries
        wanted = [(state.max_num_seqs, number) for number in range(kept)]
        wanted += [(tried, 100 + number) for number in range(tries) if tried is not None]
        for key in wanted:
            if key not in self._pods:
                self._pods[key] = made = self.pod(key[0], self._pace(key[0]), seed=key[0] + key[1])
                made.now = replace(made.now, at=self.now)
        self._pods = {key: self._pods[key] for key in wanted}

    def _pace(self, size: int) -> Callable[[float], float]:
        factor = self.slower if size > 16 else 1.0
        return lambda running: factor * (0.0025 + 0.00005 * running)


@pytest.fixture
def fleet(build: Any) -> Callable[..., Fleet]:
    return lambda **how: Fleet(build.pod, **how)


MakeFleet = Callable[..., Fleet]


@pytest.mark.parametrize("replicas", [1, 3])
def test_a_better_size_is_tried_and_applied(fleet: MakeFleet, replicas: int) -> None:
    pods = fleet(replicas=replicas)
    pods.until(lambda state: state.trial is not None)
    trial = pods.state.trial
    assert trial is not None
    assert (trial.max_num_seqs, trial.side_by_side) == (32, replicas > 1)
    pods.until(lambda state: state.trial is None)
    (ended,) = pods.state.ended
    assert (ended.before, ended.tried, ended.applied) == (16, 32, True)
    pods.run(100)
    assert (pods.state.max_num_seqs, pods.state.trial, len(pods.state.ended)) == (32, None, 1)


@pytest.mark.parametrize("replicas", [1, 3])
def test_a_worse_size_is_rejected_and_not_tried_again_at_the_same_load(
    fleet: MakeFleet, replicas: int
) -> None:
    pods = fleet(replicas=replicas, slower=2.0)
    pods.until(lambda state: bool(state.ended))
    (ended,) = pods.state.ended
    assert (ended.tried, ended.applied, pods.state.max_num_seqs) == (32, False, 16)
    assert ended.reason.startswith("-")
    pods.run(200)
    assert (len(pods.state.ended), pods.state.trial) == (1, None)
    recommendation = pods.state.recommendation
    assert recommendation is not None
    assert recommendation.max_num_seqs == 32  # as measured, beside the result of the trial
    # At another load it is another question.
    pods.load = 45.0
    pods.until(lambda state: state.trial is not None)


def test_recommend_tries_nothing(fleet: MakeFleet) -> None:
    pods = fleet(apply=False)
    pods.run(200)
    assert set(pods.seen) == {(16, None)}
    recommendation, evidence = pods.state.recommendation, pods.state.evidence
    assert recommendation is not None
    assert evidence is not None
    assert recommendation.max_num_seqs == 32
    assert evidence.p95 == 25.0


def test_from_apply_to_recommend_the_spec_s_size_comes_back_at_once(fleet: MakeFleet) -> None:
    pods = fleet()
    pods.until(lambda state: state.max_num_seqs == 32)
    pods.apply = False
    pods.run(1)
    assert (pods.state.max_num_seqs, pods.state.trial) == (16, None)


def test_a_size_that_does_not_start_is_rejected_at_once(fleet: MakeFleet) -> None:
    pods = fleet(starts=False)
    pods.until(lambda state: state.trial is not None)
    pods.failure = "out of memory"
    pods.run(1)
    assert pods.state.trial is None
    assert pods.state.ended[0].reason == "it does not start: out of memory"
    assert (pods.state.max_num_seqs, pods.state.ended[0].applied) == (16, False)


def test_a_size_that_is_never_ready_is_rejected(fleet: MakeFleet) -> None:
    pods = fleet(starts=False)
    pods.until(lambda state: bool(state.ended))
    assert pods.state.ended[0].reason == "no pod of the trial was ready within 600 s"
    assert not pods.state.ended[0].applied


def test_scaling_to_zero_ends_a_trial_without_a_result(fleet: MakeFleet) -> None:
    pods = fleet()
    pods.until(lambda state: state.trial is not None)
    found = next_step(pods.state, facts(desired=0, ready={}), pods.now)
    assert (found.trial, found.ended, found.max_num_seqs) == (None, (), 16)


def test_an_inconclusive_comparison_ends(fleet: MakeFleet) -> None:
    pods = fleet()
    pods.until(lambda state: state.trial is not None)
    pods.load = 0.0
    pods.run(int(MAX_WINDOWS * WINDOW_S / 5) + 5)
    assert pods.state.trial is None
    assert pods.state.ended[0].reason.startswith("too few measurements")
    assert pods.state.max_num_seqs == 16


@pytest.mark.parametrize(
    "change", [{"rested": False}, {"apply": False}, {"desired": 0}, {"window_s": 10 * WINDOW_S}]
)
def test_nothing_is_tried(build: Any, change: dict[str, Any]) -> None:
    """While pods are replaced or scaled, without any, and before a whole window was seen."""
    pod, state = build.pod(16), fresh("v1", 16, build.t0)
    for _ in range(60):
        state = observe(state, [Observation(16, *pod.sample(25.0))])
        state = next_step(state, facts(**change), pod.now.at)
    assert state.trial is None


def test_pods_of_two_sizes_are_not_watched(build: Any) -> None:
    one, other = build.pod(16), build.pod(32)
    state = observe(
        fresh("v1", 16, 0.0), [Observation(16, *one.sample(9.0)), Observation(32, *other.sample(9.0))]
    )
    assert state.current == Measurements()


def test_another_spec_ends_a_trial_and_keeps_the_size(fleet: MakeFleet) -> None:
    pods = fleet()
    pods.until(lambda state: state.max_num_seqs == 32)
    pods.load = 60.0
    pods.until(lambda state: state.trial is not None)
    other = adopted(pods.state, "v2", 16, pods.now)
    assert (other.trial, other.max_num_seqs, other.recommendation, other.ended) == (None, 32, None, ())
    # Another size in the spec restarts tuning.
    assert adopted(pods.state, "v1", 20, pods.now).max_num_seqs == 20


@pytest.mark.parametrize("word", [None, "", "malformed", 7, "eJwDAAAAAAE="])
def test_a_state_that_cannot_be_read_is_none(word: object) -> None:
    assert resumed(word, "v1", 16, 5.0) == fresh("v1", 16, 5.0)


def test_peaks_are_forgotten_after_a_day() -> None:
    state = fresh("v1", 16, 0.0)
    for hour in range(50):
        state = state.with_peak(100.0 if hour == 3 else 4.0, 3600.0 * hour)
        assert (state.busiest == 100.0) == (3 <= hour < 27)
    assert len(state.peaks) == 24


series = st.lists(
    st.tuples(
        st.sampled_from([0.0, 3.0, 25.0, 300.0]),
        st.booleans(),
        st.sampled_from([0, 1, 2, 5]),
        st.none() | st.just("broken"),
        st.booleans(),
    ),
    max_size=60,
)


@given(series, st.sampled_from([1, 16, 64, 512]), st.integers(1, 64))
def test_state_stays_valid_and_small(
    build: Any, several: list[tuple[float, bool, int, str | None, bool]], size: int, minimum: int
) -> None:
    now, state = build.t0, fresh("v1", size, build.t0)
    pods: dict[int, Any] = {}
    for load, rested, desired, failure, apply in several:
        sizes = {state.max_num_seqs, state.size_of_pods}
        for each in sizes:
            pods.setdefault(each, build.pod(each))
            pods[each].now = replace(pods[each].now, at=now)
        now += 40.0
        observations = [Observation(each, *pods[each].sample(load, now)) for each in sizes]
        around = facts(
            apply=apply,
            minimum=minimum,
            maximum=512,
            desired=desired,
            rested=rested,
            ready=dict.fromkeys(sizes, 1),
            failure=failure,
        )
        state = next_step(observe(state, observations), around, now)
        assert len(state.encoded()) < STATUS_LIMIT
        again = resumed(state.encoded(), "v1", size, now)
        assert (again.max_num_seqs, again.size_of_pods) == (state.max_num_seqs, state.size_of_pods)
        assert again.ended == state.ended
        assert len(state.ended) <= 5
        assert state.trial is None or (apply and state.trial.max_num_seqs != state.max_num_seqs)
        assert apply or state.max_num_seqs == size
        state = again


def test_state_of_an_earlier_operator_is_read() -> None:
    """A lost state would put every pod back to the spec's size."""
    trial = Trial(24, 5.0, True, 20.0, "20 requests wait", evaluated_windows=2)
    state = replace(fresh("v1", 16, 5.0), max_num_seqs=32, trial=trial)
    stored = decode_state(state.encoded())
    for former, name in FORMER_KEYS.items():
        stored = stored.replace(f'"{name}"', f'"{former}"')
    assert stored != decode_state(state.encoded())
    # A trial's reason was named otherwise than that of a recommendation.
    assert resumed(encode_state(stored), "v1", 16, 5.0) == state
