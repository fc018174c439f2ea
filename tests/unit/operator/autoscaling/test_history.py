"""The stored history, also from a status that was edited."""

import json

import pytest
from tests.support.decisions import make_clock

from dragoman_operator.autoscaling.decision.values import History, Peak, Policy


@pytest.mark.slow
def test_a_day_of_ticks_stays_small():
    clock = make_clock(4, max_replicas=40)
    for tick in range(1500):
        clock.tick(running=32 + tick % 97, finished_per_s=100 + tick % 13)
    assert len(clock.history.to_json()) < 8_000
    assert History.from_json(clock.history.to_json()).peaks == tuple(
        Peak(round(peak.at, 3), round(peak.replicas, 3)) for peak in clock.history.peaks
    )


@pytest.mark.parametrize(
    "text",
    [None, "", "null", "[]", "3", "{", '{"points": [[1]]}', '{"seen": 7}', '{"observed_since": "x"}',
     '{"peaks": [[1, 1e999]]}', '{"start_s": NaN}', '{"arrived_s": 1e9}', '{"scale_ups": [[1, "many"]]}'],
)  # fmt: skip
def test_what_cannot_be_read_is_no_history(text):
    assert History.from_json(text) == History()


def test_a_newer_operators_fields_do_not_disturb():
    assert History.from_json(json.dumps({"start_s": 60.0, "weather": "fair"})) == History(start_s=60.0)


def test_peaks_keep_the_highest_and_forget_in_time():
    history = History()
    for at, replicas in [(0, 5.0), (40, 3.0), (80, 4.0), (120, 1.0)]:
        history = history.with_peak(at, replicas, keep_s=300)
    assert history.peaks == (Peak(0, 5.0), Peak(80, 4.0), Peak(120, 1.0))
    assert (history.peak(0), history.peak(50), history.peak(100)) == (5.0, 4.0, 1.0)
    assert history.with_peak(310, 0.5, keep_s=300).peaks[0] == Peak(80, 4.0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"min_replicas": 5, "max_replicas": 4},
        {"min_replicas": -1},
        {"min_replicas": 0, "max_replicas": 0},
        {"max_num_seqs": 0},
        {"target_concurrency": 0.0},
        {"target_kv_cache_usage": 1.5},
        {"tick_s": 0.0},
        {"target_queue_time_s": -1.0},
    ],
)
def test_a_policy_that_contradicts_itself_is_refused(wrong):
    with pytest.raises(ValueError, match=r"must|need"):
        Policy(**{"min_replicas": 1, "max_replicas": 4, "max_num_seqs": 8} | wrong)


def test_the_target_is_eight_tenths_of_the_seats_and_at_least_one():
    assert Policy(1, 4, 32).concurrency == pytest.approx(25.6)
    assert Policy(1, 4, 1).concurrency == 1.0
    assert Policy(1, 4, 32, target_concurrency=5.0).concurrency == 5.0
