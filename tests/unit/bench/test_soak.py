"""The soak's decisions: which fault comes when, whether a process grows, what is counted."""

import json

import pytest
from faults.growth import SHORTEST_S, WARM_UP_S, Lifetime, grown, growth
from faults.schedule import CALM_S, KINDS, schedule

HOUR_S = 3600.0


def test_equal_seeds_give_equal_schedules():
    assert schedule(7, HOUR_S) == schedule(7, HOUR_S)
    assert schedule(7, HOUR_S) != schedule(8, HOUR_S)


def test_a_longer_schedule_begins_like_a_shorter_one():
    short = schedule(7, 600)
    assert schedule(7, HOUR_S)[: len(short)] == short


@pytest.mark.parametrize("seed", range(20))
def test_times_between_faults(seed):
    times = [fault.at_s for fault in schedule(seed, HOUR_S)]
    gaps = [later - earlier for earlier, later in zip([0.0, *times], times, strict=False)]
    # Times are rounded to tenths.
    assert all(9.9 <= gap <= 30.1 for gap in gaps)
    assert times[-1] <= HOUR_S - CALM_S


@pytest.mark.parametrize("seed", range(20))
def test_each_kind_comes_first_once(seed):
    first = schedule(seed, HOUR_S)[: len(KINDS)]
    assert {fault.kind for fault in first} == set(KINDS)


def test_parameters():
    faults = [fault for seed in range(20) for fault in schedule(seed, HOUR_S)]
    by_kind = {kind: [fault.parameters for fault in faults if fault.kind == kind] for kind in KINDS}
    assert all(by_kind.values())
    assert {each["seconds"] for each in by_kind["pod SIGSTOP"]} == {20.0}
    assert all(1 <= each["seconds"] <= 20 for each in by_kind["API gone"])
    assert {each["router"] for each in by_kind["router SIGKILL"]} == {0, 1}
    assert all(0 <= each["pick"] < 1 or each["pick"] == 1.0 for each in by_kind["pod SIGKILL"])


def test_a_schedule_is_json():
    faults = [vars(fault) for fault in schedule(3, 600)]
    assert json.loads(json.dumps(faults)) == faults


def test_a_short_run_has_every_kind():
    assert {fault.kind for fault in schedule(1, 90, (3.0, 5.0))} == set(KINDS)


def lifetime(values, *, role="router", name="router-0", step_s=10.0) -> Lifetime:
    """A process with these values of memory; its file descriptors are as many all the time."""
    at_s = [500 + step_s * number for number in range(len(values))]
    return Lifetime(role, name, at_s, list(values), [30.0] * len(values))


def noisy(count, base, per_sample=0.0):
    return [base + per_sample * number + (number * 5 % 6) / 2 for number in range(count)]


def test_no_growth():
    rows, sentences = grown([lifetime(noisy(360, 60))])
    assert sentences == []
    row = next(row for row in rows if (row["role"], row["measure"]) == ("router", "rss_mb"))
    assert (row["processes"], row["long_enough"]) == (1, 1)
    assert abs(row["per_hour"]) < 3


def test_what_a_process_needs_to_warm_up_is_no_growth():
    warm_up = int(WARM_UP_S / 10)
    assert grown([lifetime([*(20 + 5 * n for n in range(warm_up)), *noisy(300, 80)])])[1] == []


def test_a_few_steps_are_no_growth():
    # An operator's, with the API's outages.
    steps = [97.0] * 40 + [102.0] * 50 + [107.0] * 20 + [113.0] * 30 + [117.0] * 120
    assert grown([lifetime(steps)])[1] == []
    assert grown([lifetime([value + number / 10 for number, value in enumerate(steps)])])[1]


def test_steps_that_add_up_to_half_of_a_process_are_growth():
    steps = [80.0 + 10 * (number // 60) for number in range(360)]
    assert grown([lifetime(steps)])[1] == ["router-0: rss_mb grew from 80.0 to 130.0 in 44 min"]


def test_a_steady_leak_in_one_process():
    _, sentences = grown([lifetime(noisy(360, 60, 0.1))])
    assert any(each.startswith("router-0: rss_mb grew from") for each in sentences)


def test_a_leak_of_file_descriptors():
    process = lifetime(noisy(360, 60))
    process.fds = [30.0 + number for number in range(360)]
    assert any(each.startswith("router-0: fds grew from") for each in grown([process])[1])


def test_the_connections_of_a_load_are_no_growth():
    process = lifetime(noisy(360, 60))
    process.sockets = [10.0] * 200 + [900.0] * 160
    process.fds = [20 + sockets for sockets in process.sockets]
    process.rss_mb = [
        value + 0.02 * sockets for value, sockets in zip(process.rss_mb, process.sockets, strict=True)
    ]
    assert grown([process])[1] == []
    process.fds = [sockets + number for number, sockets in enumerate(process.sockets)]
    process.rss_mb = [value + number / 10 for number, value in enumerate(process.rss_mb)]
    assert len([each for each in grown([process])[1] if each.startswith("router-0:")]) == 2


def test_a_small_leak_in_many_short_lives():
    # Each grows by less than one process may.
    lives = [lifetime(noisy(60, 60, 0.2), name=f"router-{number}") for number in range(12)]
    sentences = grown(lives)[1]
    assert [each.split(":")[0] for each in sentences] == ["router processes"]


def test_short_lives_say_nothing():
    count = int((WARM_UP_S + SHORTEST_S) / 10) - 1
    rows, sentences = grown([lifetime(noisy(count, 60, 5)) for _ in range(5)])
    assert sentences == []
    assert all(row["long_enough"] == 0 for row in rows)
    assert growth([], []) is None


def test_a_single_peak_is_no_growth():
    values = noisy(360, 60)
    values[350] = 500
    assert grown([lifetime(values)])[1] == []


def test_what_is_not_ours_is_not_judged():
    assert grown([lifetime(noisy(360, 60, 1), role="other", name="API")])[1] == []
