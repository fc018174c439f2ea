from typing import Any

from dragoman_bench.report import compare_table, ladder_table


def point(rate: float, **more: Any) -> dict[str, Any]:
    empty = dict.fromkeys(
        ("p50_s", "p95_s", "p99_s", "first_token_s", "per_output_token_s", "queue_s", "compute_s", "gpu")
    )
    fixed = {"load": "variable", "in_flight": 25, "steady": True, "output_tokens_per_s": None}
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


def test_repetitions_are_a_median_and_a_spread() -> None:
    pod = arm("pod", *(point(rate, p95_s=1.0, front_end_cores=0.5) for rate in (100, 90, 130)))
    peer = arm("peer", *(point(rate, p95_s=2.0) for rate in (80, 70, 82)))
    rows = [
        [cell.strip() for cell in line.split("|")]
        for line in compare_table({"arms": [pod, peer]}).splitlines()
    ]
    found = next(row for row in rows if "PEER" in row)
    assert found[2:5] == ["80.0", "70.0–82.0", "1.250"]
    assert found[8] == "0.500"
    assert found[-3:-1] == ["–", "–"]
    assert next(row for row in rows if "POD" in row)[-3] == "5.00"
