import pytest

from dragoman_bench.grid import SEQUENCES, TOKENS, grid_arms, measured, replay
from dragoman_bench.report import grid_table
from dragoman_tune.search import Policy, Setting, Trial


def rate(setting: Setting, in_flight: int) -> float:
    """More sequences help up to those in flight; 16384 tokens a step are best by a little."""
    running = min(setting.max_num_seqs, in_flight)
    return running / (1 + 0.02 * running) * (1.008 if setting.max_num_batched_tokens == 16384 else 1.0)


def document(*in_flight: int) -> dict[str, object]:
    arms = []
    for arm in grid_arms(SEQUENCES, TOKENS):
        setting = Setting(*map(int, arm.name.split("-")[1:]))
        points = [
            {
                "load": "variable",
                "in_flight": each,
                "requests_per_s": rate(setting, each),
                "p95_s": 1.0,
                "steady": True,
            }
            for each in in_flight
        ]
        arms.append({"arm": arm.name, "title": arm.title, "failed": None, "points": points})
    return {"arms": arms, "slo_p95_s": 5.0}


def test_a_grid_has_every_setting_once() -> None:
    names = [arm.name for arm in grid_arms(SEQUENCES, TOKENS)]
    assert len(names) == len(set(names)) == 40
    assert [arm.title for arm in grid_arms((8,), (4, 8, 16))] == ["8 / 8", "8 / 16"]


@pytest.mark.parametrize("in_flight", [4, 20, 200])
def test_the_tuner_is_compared_with_the_best_of_the_grid(in_flight: int) -> None:
    found = replay(measured(document(in_flight), "variable", in_flight), Policy(5.0, in_flight))
    assert found.grid == 40
    assert found.trials <= 40 / 3
    assert found.best is not None
    assert found.best.setting.max_num_batched_tokens == 16384
    assert found.ratio is not None
    assert 0.95 <= found.ratio < 1


def test_a_setting_that_failed_is_a_failed_trial() -> None:
    grid = {
        at: trial
        for at, trial in measured(document(20), "variable", 20).items()
        if at.max_num_batched_tokens != 8192
    }
    found = replay(grid, Policy(5.0, 20))
    assert (found.trials, found.found, found.ratio) == (1, None, None)


def test_where_nothing_keeps_the_slo_nothing_is_best() -> None:
    grid = {Setting(1, 8192): Trial(Setting(1, 8192), 1.0, 9.0)}
    found = replay(grid, Policy(5.0, 1))
    assert (found.found, found.best, found.ratio) == (None, None, None)


def test_the_table_has_what_the_tuner_would_have_found() -> None:
    text = grid_table(document(4, 20))
    assert "variable, 20 in flight: req/s (p95)" in text
    assert text.count("The tuner: ") == 2
    assert "32 / 4096 found, 0.992 of the best, which is 32 / 16384" in text
