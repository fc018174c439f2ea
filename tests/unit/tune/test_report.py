"""The table of a sweep."""

from dragoman_tune.report import table
from dragoman_tune.search import EngineSetting, Goal, Stop, Trial

POLICY = Goal(slo_p95_s=3, in_flight=64)
TRIALS = [
    Trial(EngineSetting(4, 8192), 20, 2.5),
    Trial(EngineSetting(1, 8192), 5, None, None, 0.97),
    Trial(EngineSetting(8, 8192), 0, None, "not enough GPU memory"),
]
STOP = Stop(TRIALS[0], "8 sequences do not run: not enough GPU memory")


def test_every_trial_has_its_outcome() -> None:
    _, _, *rows = table(TRIALS, STOP, POLICY).splitlines()
    assert [[cell.strip() for cell in row.split("|")[3:-1]] for row in rows] == [
        ["5.00", "–", "broken", "97% without an answer"],
        ["20.00", "2.50", "kept", "← recommended"],
        ["0.00", "–", "broken", "not enough GPU memory"],
    ]
