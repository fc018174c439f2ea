"""Each rule swept over its own knob, and compared at each budget."""

import json

import pytest

from dragoman_simulate.__main__ import main
from dragoman_simulate.fronts import KnobSetting, budgets, front, sweep, table
from dragoman_simulate.policies import KNOBS, POLICIES
from dragoman_simulate.replay import fluid


def settings(*points):
    return [KnobSetting(hours, share, 0.5) for hours, share in points]


def test_a_front_has_no_setting_that_another_one_matches_for_less():
    found = front(settings((5, 0.2), (4, 0.3), (6, 0.2), (7, 0.1), (4.5, 0.4)))
    assert found == settings((4, 0.3), (5, 0.2), (7, 0.1))


def test_ours_is_compared_wherever_the_best_other_rule_improves():
    fronts = {
        "dragoman": settings((3, 0.5), (5, 0.1), (8, 0.0)),
        "hpa": settings((2, 0.6), (4, 0.25), (9, 0.0005)),
        "kpa": settings((4, 0.3), (6, 0.2)),
    }
    found = budgets(fronts)
    assert [(each.replica_hours, each.ours, each.best, each.share) for each in found] == [
        (2, None, "hpa", 0.6),
        (4, 0.5, "hpa", 0.25),
        (6, 0.1, "kpa", 0.2),
        (9, 0.0, "hpa", 0.0005),
    ]
    assert [each.ratio for each in found] == [None, 2.0, 0.5, 0.0]
    assert [each.met for each in found] == [False, False, True, True]
    *_, third, last = table(fronts).splitlines()
    assert [cell.strip() for cell in third.split("|")[1:5]] == [
        "6.00 to 9.00",
        "10.00%",
        "20.00% kpa",
        "0.50",
    ]
    assert last.startswith("| 9.00 ")


def test_where_another_rule_has_none_and_ours_has_some_the_ratio_is_infinite():
    (found,) = budgets({"dragoman": settings((1, 0.01)), "hpa": settings((1, 0.0))})
    assert found.ratio == float("inf")
    assert not found.met


@pytest.mark.parametrize("rule", POLICIES)
def test_a_knob_changes_its_rule_and_has_the_default_among_its_values(build, rule):
    limits = build.limits()
    trace = build.trace([60 + 2 * (second % 150) for second in range(450)])
    swept = sweep(trace, rule, limits, build.speed)
    if rule != "keda":  # Here its queue is empty or far over any target.
        assert len({(each.replica_hours, each.over_target_share) for each in swept}) > 3
    default = fluid(trace, POLICIES[rule](limits), limits, build.speed)
    hours = default.replica_hours / (trace.duration_s / 3600)
    assert any(each.replica_hours == pytest.approx(hours) for each in swept)
    assert [each.value for each in swept] == list(KNOBS[rule].values)


def test_the_knob_of_keda_is_its_number_of_waiting_requests(build):
    view = build.view(0, 4, running=128, waiting=24)
    knob = KNOBS["keda"]
    assert [knob.make(build.limits(), value).decide(view) for value in (2, 5, 20)] == [8, 5, 4]


@pytest.mark.slow
def test_the_command_prints_and_draws_them(rush, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "fronts.png"
    arguments = ["--fronts", "--policy", "dragoman,hpa", "--start-up", "20", "--json", "--plot", str(picture)]
    assert main(["--trace", str(rush), *arguments]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert any("best other" in line for line in lines)
    assert list(json.loads(last)["rush"]) == ["dragoman", "hpa"]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_fronts_need_ours_and_another_rule(rush, capsys):
    assert main(["--trace", str(rush), "--fronts", "--policy", "hpa,kpa"]) == 2
    assert "--fronts compares dragoman with others" in capsys.readouterr().err
