import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dragoman.fleet import ADVICE, age, details, row, wanted, what_to_do

ROOT = Path(__file__).parents[3]
NOW = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)


def condition(kind: str, status: str, reason: str, message: str = "") -> dict[str, str]:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-11-24T11:55:00Z",
    }


def european(**status: Any) -> dict[str, Any]:
    change = {
        "time": "2026-11-24T11:57:00Z",
        "from": 1,
        "to": 3,
        "rule": "Backlog",
        "reason": "60 requests wait",
    }
    return {
        "metadata": {"name": "european", "namespace": "team"},
        "spec": {"model": {"uri": "hf://tencent/Hy-MT2-7B", "promptFamily": "hy-mt2"}, "replicas": 2},
        "status": {
            "readyReplicas": 2,
            "desiredReplicas": 3,
            "languages": "en>de,fr",
            "url": "http://european.team.svc:8000",
            "scaling": {
                "rule": "Load",
                "reason": "80 requests at 25.6 a replica",
                "evaluationTime": "2026-11-24T11:59:58Z",
                "signals": {"running": 64.0, "waiting": 12.0, "queuedAtRouters": 4, "kvCacheUsage": 0.42},
                "changes": [change],
            },
            "conditions": [
                condition("Available", "True", "Ready", "2 of 3 replicas are ready"),
                condition("Progressing", "True", "Starting", "others start"),
                condition("Degraded", "False", "AsExpected", "nothing needs attention"),
            ],
            **status,
        },
    }


def test_a_line_has_replicas_load_and_the_last_decision() -> None:
    expected = ("team", "european", "2/3", "64", "16", "1 → 3 Backlog, 3m ago", "Starting")
    assert row(european(), NOW) == expected


def test_what_is_not_known_is_a_dash_and_no_zero() -> None:
    line = row(european(scaling={"rule": "Spec", "reason": "replicas 2"}, conditions=[]), NOW)
    assert (line.running, line.queue, line.decision, line.state) == ("-", "-", "Spec", "NotReconciled")


def test_an_object_that_no_operator_has_seen() -> None:
    fresh = {"metadata": {"name": "new", "namespace": "team"}, "spec": {}}
    assert wanted(fresh) == 1
    assert row(fresh, NOW).state == "NotReconciled"
    assert "is it running?" in "\n".join(details(fresh, NOW))


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (
            [condition("Available", "True", "Ready"), condition("Degraded", "True", "EngineFailed")],
            "EngineFailed",
        ),
        ([condition("Available", "False", "ScaledToZero")], "ScaledToZero"),
        ([condition("Available", "True", "Ready"), condition("Progressing", "False", "Complete")], "Ready"),
    ],
)
def test_the_state_is_what_matters_most(conditions: list[dict[str, str]], expected: str) -> None:
    assert row(european(conditions=conditions), NOW).state == expected


def test_one_object_is_explained() -> None:
    text = "\n".join(details(european(), NOW))
    assert "team/european: 2 of 3 replicas are ready" in text
    assert "3 replicas (Load): 80 requests at 25.6 a replica" in text
    assert "64 running, 12 wait in engines, 4 wait in routers, KV cache 42% used, measured 2s ago" in text
    assert re.search(r"3m ago  1 → 3  Backlog: 60 requests wait", text)
    assert re.search(r"Available +yes +for 5m +Ready: 2 of 3 replicas are ready", text)
    assert "What to do" not in text


def test_a_single_replica_is_counted_as_one() -> None:
    assert "  1 replica (Load): " in "\n".join(details(european(desiredReplicas=1), NOW))


def test_a_failure_says_what_to_do_with_the_objects_name() -> None:
    found = european(conditions=[condition("Degraded", "True", "EngineFailed", "no such model")])
    (step,) = what_to_do(found)
    assert step.startswith("EngineFailed: change the setting")
    assert "--namespace team --selector dragoman.io/deployment=european" in step


def test_a_reason_without_advice_has_that_of_its_condition() -> None:
    (step,) = what_to_do(european(conditions=[condition("Degraded", "True", "SomethingNew")]))
    assert step == f"SomethingNew: {ADVICE['Degraded']}"


@pytest.mark.parametrize(
    "conditions",
    [
        [condition("Available", "False", "ScaledToZero")],
        [condition("Available", "False", "NoReadyReplicas"), condition("Progressing", "True", "Starting")],
    ],
)
def test_what_is_wanted_or_passes_asks_for_nothing(conditions: list[dict[str, str]]) -> None:
    assert [*what_to_do(european(conditions=conditions))] == []


def test_every_reason_of_degraded_in_the_documentation_has_advice() -> None:
    page = (ROOT / "docs/how-to/troubleshooting.md").read_text()
    causes = set(
        re.findall(r"^### (\w+)$", page.partition("## Degraded")[2].partition("\n## ")[0], re.MULTILINE)
    )
    causes -= {"AsExpected"}
    assert causes
    assert causes <= ADVICE.keys()


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0, "0s"), (119, "119s"), (120, "2m"), (3600, "1h"), (7300, "2h"), (200_000, "2d"), (-5, "0s")],
)
def test_ages_are_in_their_largest_unit(seconds: int, expected: str) -> None:
    assert age(timedelta(seconds=seconds)) == expected
