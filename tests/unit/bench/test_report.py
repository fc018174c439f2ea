from typing import Any

import pytest

from dragoman_bench.report import compare_table, ladder_table, median_interval


def point(rate: float, **more: Any) -> dict[str, Any]:
    empty = dict.fromkeys(
        ("p50_s", "p95_s", "p99_s", "first_token_s", "per_output_token_s", "queue_s", "compute_s", "gpu")
    )
    fixed = {"load": "variable", "in_flight": 25, "seed": 1, "steady": True, "output_tokens_per_s": None}
    return {**empty, **fixed, "requests_per_s": rate, **more}


def arm(name: str, *points: dict[str, Any], failed: str | None = None) -> dict[str, Any]:
    return {"arm": name, "title": name.upper(), "published": "", "failed": failed, "points": list(points)}


def test_a_ladder_has_multiples_of_its_first_arm() -> None:
    document = {
        "arms": [arm("b0-queues", point(5)), arm("final", point(60, p95_s=0.8)), arm("x", failed="killed")]
    }
    table = ladder_table(document)
    assert "variable, 25 in flight" in table
    assert [cell.strip() for cell in table.splitlines()[5].split("|")][1:6] == [
        "FINAL",
        "60.0",
        "12.0",
        "–",
        "0.80",
    ]
    assert "failed: x: killed" in table


def test_an_unsteady_point_is_marked() -> None:
    assert "5.0 *" in ladder_table({"arms": [arm("b0-queues", point(5, steady=False))]})


def row(table: str, title: str) -> list[str]:
    rows = [[cell.strip() for cell in line.split("|")] for line in table.splitlines()]
    return next(cells for cells in rows if title in cells)


def test_repetitions_are_a_median_and_a_spread() -> None:
    rates = enumerate((100, 90, 130))
    pod = arm("pod", *(point(rate, p95_s=1.0, front_end_cores=0.5, seed=seed) for seed, rate in rates))
    peer = arm("peer", *(point(rate, p95_s=2.0, seed=seed) for seed, rate in enumerate((80, 45, 104))))
    table = compare_table({"arms": [pod, peer]})
    found = row(table, "PEER")
    assert found[2:5] == ["80.0", "45.0–104.0", "1.250"]
    assert found[8] == "0.500"
    assert found[-3:-1] == ["–", "–"]
    assert row(table, "POD")[-3] == "5.00"


def test_a_repetition_that_one_arm_lacks_is_in_no_ratio() -> None:
    pod = arm("pod", point(100, seed=1), point(900, seed=2))
    assert row(compare_table({"arms": [pod, arm("peer", point(50, seed=1))]}), "PEER")[4] == "2.000"


def test_a_ratio_of_many_pairs_has_an_interval() -> None:
    pod = arm("pod", *(point(100 + seed, seed=seed) for seed in range(12)))
    peer = arm("peer", *(point(100, seed=seed) for seed in range(12)))
    assert row(compare_table({"arms": [pod, peer]}), "PEER")[4] == "1.055 (1.020–1.090)"


@pytest.mark.parametrize(
    ("count", "ranks"),
    # Ranks of the sign test's tables at 95%.
    [(1, None), (5, None), (6, (1, 6)), (9, (2, 8)), (12, (3, 10)), (20, (6, 15))],
)
def test_interval_of_a_median(count: int, ranks: tuple[int, int] | None) -> None:
    assert median_interval(range(count, 0, -1)) == ranks
