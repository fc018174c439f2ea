"""Sudden rises of the arrivals, and what they were followed by."""

import pytest
from tests.support.decisions import make_clock

from dragoman_operator.autoscaling.decision.rises import GROWTHS, extrapolates, growth, risen
from dragoman_operator.autoscaling.decision.values import History


@pytest.mark.parametrize(
    ("late", "early", "expected"),
    [
        (100, 100, 0),
        (115, 100, 0),
        (50, 300, 0),
        (400, 100, 8 * 80),
        (1000, 900, 0),
        (160, 40, 32 + 2 * 77.6 / 25 * 62.5),
    ],
)
def test_what_a_rise_lets_expect(late, early, expected):
    assert risen(late, early, span=5, ahead=60) == pytest.approx(min(expected, 8 * late / 5), rel=0.05)


@pytest.mark.parametrize(
    ("arrivals", "start", "expected"),
    [
        ((100, 100, 100, 100, 100, 100), 2, None),
        ((100, 100, 300, 600, 900, 900), 2, 3.0),
        ((100, 100, 300, 300, 300, 300), 2, 1.0),
        ((100, 100, 300, 100, 100, 100), 2, 1 / 3),
        ((4, 4, 6, 12, 12, 12), 2, None),
        ((100, 100, 120, 300, 300, 300), 2, None),
        ((300, 600), 2, None),
        ((), 1, None),
    ],
    ids=["steady", "a crowd", "a step", "a burst", "chance", "no clear rise", "too short", "none"],
)
def test_growth_is_what_arrives_when_a_replica_would_be_ready_by_what_rose(arrivals, start, expected):
    assert growth(arrivals, start) == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(("start_s", "expected"), [(20.0, True), (30.0, True), (60.0, False)])
def test_before_enough_rises_one_is_extrapolated_where_a_start_is_short(start_s, expected):
    assert extrapolates(History(start_s=start_s, growths=(0.5, 0.5))) is expected


def test_rises_of_crowds_are_extrapolated_and_those_of_bursts_are_not():
    crowd = [40.0] * 20 + [80.0, 140.0, 200.0, 260.0, 320.0, 380.0] + [400.0] * 20 + [40.0] * 10
    burst = [40.0] * 20 + [400.0] * 8 + [40.0] * 20
    for load, expected in ((crowd, True), (burst, False)):
        clock = make_clock(4)
        for _ in range(3):
            for rate in load:
                clock.tick(running=rate / 10, finished_per_s=rate, follow=False, time_to_ready_s=20.0)
        assert len(clock.history.growths) >= 3
        assert extrapolates(clock.history) is expected


def test_only_the_latest_growths_are_stored():
    clock = make_clock(4)
    for _ in range(GROWTHS):
        for rate in (40.0, 40.0, 400.0, 400.0):
            clock.tick(running=rate / 10, finished_per_s=rate, follow=False, time_to_ready_s=5.0)
    assert len(clock.history.growths) == GROWTHS
