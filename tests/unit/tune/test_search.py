"""The sweep against synthetic curves: it must find what a full grid finds, in a third of its time."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_tune.report import table
from dragoman_tune.search import EngineSetting, Goal, Stop, Trial, Try, best, decide

RESULTS = Path(__file__).parents[3] / "bench" / "results"
SEQUENCES = tuple(2**power for power in range(10))
TOKENS = (2048, 4096, 8192, 16384)


@dataclass(frozen=True)
class Curve:
    """A server in a closed loop.

    Step time is `fixed_s + each_s × running`; places beyond `in_flight` cost `oversize` each doubling, which is what
    the original system saw; tokens per step help or hurt by `tokens_ratio` for each doubling away from `tokens_peak`.
    """

    in_flight: int
    fixed_s: float
    each_s: float
    oversize: float
    tokens_peak: int
    tokens_ratio: float
    noise: float

    def measured(self, setting: EngineSetting) -> Trial:
        running = min(setting.max_num_seqs, self.in_flight)
        rate = running / (85 * (self.fixed_s + self.each_s * running))
        doublings = max(0, (setting.max_num_seqs // max(1, self.in_flight)).bit_length() - 1)
        rate *= (1 - self.oversize) ** doublings
        away = abs(setting.max_num_batched_tokens.bit_length() - self.tokens_peak.bit_length())
        rate *= (1 - self.tokens_ratio) ** away
        rate *= 1 + Random(f"{self}{setting}").uniform(-self.noise, self.noise)
        return Trial(setting, rate, 1.6 * self.in_flight / rate)


curves = st.builds(
    Curve,
    in_flight=st.sampled_from((4, 20, 200)),
    fixed_s=st.floats(0.001, 0.02),
    each_s=st.floats(0.000005, 0.002),
    oversize=st.floats(0, 0.1),
    tokens_peak=st.sampled_from(TOKENS),
    tokens_ratio=st.floats(0, 0.15),
    noise=st.floats(0, 0.005),
)


def swept(measure: Callable[[EngineSetting], Trial], policy: Goal) -> tuple[Stop, list[Trial]]:
    trials: list[Trial] = []
    while isinstance(step := decide(trials, policy), Try):
        assert step.setting not in [trial.setting for trial in trials]
        trials.append(measure(step.setting))
        assert len(trials) <= len(SEQUENCES) * len(TOKENS)
    return step, trials


def grid(curve: Curve, policy: Goal) -> Trial | None:
    found = [curve.measured(EngineSetting(seqs, tokens)) for seqs in SEQUENCES for tokens in TOKENS]
    return best(found, replace(policy, same_ratio=0.0))


@given(curves)
def test_within_five_percent_of_the_grid_in_a_third_of_its_trials(curve: Curve) -> None:
    policy = Goal(slo_p95_s=1e9, in_flight=curve.in_flight)
    stop, trials = swept(curve.measured, policy)
    wanted = grid(curve, policy)
    assert stop.best is not None
    assert wanted is not None
    assert stop.best.requests_per_s >= 0.95 * wanted.requests_per_s
    assert 3 * len(trials) <= len(SEQUENCES) * len(TOKENS)


@pytest.mark.parametrize(("in_flight", "trials", "ratio"), [(4, 6, 0.89), (20, 9, 0.94), (200, 11, 1.00)])
def test_over_the_measured_grid_it_finds_what_the_docs_have(
    in_flight: int, trials: int, ratio: float
) -> None:
    """Single windows on one H200, which differ by a tenth from one to the next."""
    measured: dict[EngineSetting, Trial] = {}
    for arm in json.loads((RESULTS / "h200/grid.json").read_text())["arms"]:
        setting = EngineSetting(*map(int, arm["arm"].split("-")[1:]))
        for point in arm["points"]:
            if point["in_flight"] == in_flight:
                measured[setting] = Trial(setting, point["requests_per_s"], point["p95_s"])
    policy = Goal(slo_p95_s=5.0, in_flight=in_flight)
    stop, tried = swept(lambda setting: measured[setting], policy)
    fastest = best([*measured.values()], replace(policy, same_ratio=0.0))
    assert stop.best is not None
    assert fastest is not None
    assert len(measured) == 40
    assert len(tried) == trials
    assert stop.best.requests_per_s / fastest.requests_per_s == pytest.approx(ratio, abs=0.005)


@given(curves, st.floats(0.5, 3))
def test_what_it_recommends_keeps_the_slo_and_none_is_recommended_that_breaks_it(
    curve: Curve, slack: float
) -> None:
    reachable = grid(curve, Goal(slo_p95_s=1e9, in_flight=curve.in_flight))
    assert reachable is not None
    assert reachable.p95_s is not None
    policy = Goal(slo_p95_s=slack * reachable.p95_s, in_flight=curve.in_flight)
    stop, _ = swept(curve.measured, policy)
    if stop.best is not None:
        assert stop.best.p95_s is not None
        assert stop.best.p95_s <= policy.slo_p95_s
    else:
        assert slack < 1.06
        assert "no setting keeps p95" in stop.why


@given(curves, st.randoms())
def test_the_order_of_trials_changes_nothing(curve: Curve, random: Random) -> None:
    policy = Goal(slo_p95_s=1e9, in_flight=curve.in_flight)
    stop, trials = swept(curve.measured, policy)
    random.shuffle(trials)
    assert decide(trials, policy) == stop


@pytest.mark.parametrize(("in_flight", "most"), [(4, 4), (20, 32), (200, 256)])
def test_no_sequences_are_tried_that_no_request_could_fill(in_flight: int, most: int) -> None:
    curve = Curve(in_flight, 0.01, 0.00001, 0, 8192, 0, 0)
    _, trials = swept(curve.measured, Goal(slo_p95_s=1e9, in_flight=in_flight))
    assert max(trial.setting.max_num_seqs for trial in trials) == most


def test_a_setting_that_does_not_run_ends_the_doubling_and_is_not_recommended() -> None:
    def trial(seqs: int, rate: float, failed: str | None = None) -> Trial:
        return Trial(EngineSetting(seqs, 8192), rate, None if failed else 1.0, failed)

    trials = [trial(1, 1), trial(2, 2), trial(4, 0, "not enough GPU memory")]
    step = decide(trials, Goal(slo_p95_s=2, in_flight=100))
    assert step == Try(EngineSetting(2, 16384), "twice the tokens per step")
    trials += [Trial(EngineSetting(2, 16384), 2, 1.0), Trial(EngineSetting(2, 4096), 2, 1.0)]
    stop = decide(trials, Goal(slo_p95_s=2, in_flight=100))
    assert isinstance(stop, Stop)
    assert stop.best is not None
    assert stop.best.setting.max_num_seqs == 2
    assert "not enough GPU memory" in stop.why


def test_without_a_setting_that_runs_there_is_no_recommendation() -> None:
    stop = decide([Trial(EngineSetting(1, 8192), 0, None, "no usable GPU")], Goal(slo_p95_s=2, in_flight=8))
    assert stop == Stop(None, "no setting could be measured: no usable GPU")


def refusing(seqs: int, rate: float, unanswered_ratio: float) -> Trial:
    return Trial(EngineSetting(seqs, 8192), rate, None, None, unanswered_ratio)


def test_a_setting_that_refuses_is_not_good_enough_and_more_sequences_are_tried() -> None:
    policy = Goal(slo_p95_s=3, in_flight=64)
    trials = [refusing(1, 5, 0.97), refusing(2, 9, 0.8), Trial(EngineSetting(4, 8192), 20, 2.5)]
    for known in range(1, 4):
        step = decide(trials[:known], policy)
        assert step == Try(EngineSetting(2**known, 8192), "twice the sequences")
    assert best(trials[:2], policy) is None


def test_without_a_setting_that_answers_enough_there_is_no_recommendation() -> None:
    stop = decide([refusing(1, 5, 0.97), refusing(2, 9, 0.42)], Goal(slo_p95_s=3, in_flight=2))
    assert isinstance(stop, Stop)
    assert stop.best is None
    assert "2 sequences leave 42% without an answer" in stop.why


def test_equal_throughput_recommends_the_smaller_setting() -> None:
    trials = [Trial(EngineSetting(8, 8192), 99.5, 1.0), Trial(EngineSetting(16, 8192), 100, 1.0)]
    found = best(trials, Goal(slo_p95_s=2, in_flight=8))
    assert found is not None
    assert found.setting.max_num_seqs == 8


def test_the_table_has_the_outcome_of_every_trial() -> None:
    goal = Goal(slo_p95_s=3, in_flight=64)
    trials = [
        Trial(EngineSetting(4, 8192), 20, 2.5),
        Trial(EngineSetting(1, 8192), 5, None, None, 0.97),
        Trial(EngineSetting(8, 8192), 0, None, "not enough GPU memory"),
    ]
    _, _, *rows = table(trials, Stop(trials[0], "8 sequences do not run"), goal).splitlines()
    assert [[cell.strip() for cell in row.split("|")[3:-1]] for row in rows] == [
        ["5.00", "–", "broken", "97% without an answer"],
        ["20.00", "2.50", "kept", "← recommended"],
        ["0.00", "–", "broken", "not enough GPU memory"],
    ]
