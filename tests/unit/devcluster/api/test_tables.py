import datetime
from typing import Any

import pytest

from dragoman_devcluster.api.jsonpath import JsonPathError, compiled
from dragoman_devcluster.api.tables import COLUMNS, cell, human, pod_reason

OBJ = {
    "spec": {"n": 1, "labels": {"a.b/c": "x"}, "list": [{"k": "a", "v": 1}, {"k": "b", "v": 2}]},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.n", [1]),
        (".spec.labels['a.b/c']", ["x"]),
        (r".spec.labels.a\.b/c", ["x"]),
        (".spec.list[0].k", ["a"]),
        (".spec.list[-1].k", ["b"]),
        (".spec.list[*].v", [1, 2]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        ('.status.conditions[?(@.type != "Ready")].status', []),
        (".spec.list[?(@.v==2)].k", ["b"]),
        (".missing.n", []),
    ],
)
def test_json_paths(path: str, found: list[Any]) -> None:
    assert list(compiled(path)(OBJ)) == found


def test_a_json_path_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(JsonPathError, match=r"cannot read the JSONPath '\.a\.\.b'"):
        compiled(".a..b")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (330, "5m30s"), (11 * 60, "11m"), (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"), (47 * 3600, "47h"), (49 * 3600, "2d1h"), (8 * 86400, "8d"), (800 * 86400, "2y70d"),
    ],
)  # fmt: skip
def test_ages(seconds: int, text: str) -> None:
    assert human(seconds) == text


def pod(state: dict[str, Any] | None = None, phase: str = "Running", **metadata: Any) -> dict[str, Any]:
    statuses = (
        [{"name": "a", "state": state, "ready": "running" in state, "restartCount": 2}] if state else []
    )
    return {
        "metadata": {"name": "p", "creationTimestamp": "2026-01-01T00:00:00Z", **metadata},
        "spec": {"containers": [{"name": "a"}], "nodeName": "one"},
        "status": {"phase": phase, "containerStatuses": statuses, "podIP": "127.1.2.3"},
    }


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        (pod(phase="Pending"), "Pending"),
        (pod({"running": {}}), "Running"),
        (pod({"waiting": {"reason": "CrashLoopBackOff"}}), "CrashLoopBackOff"),
        (pod({"terminated": {"exitCode": 0, "reason": "Completed"}}, "Succeeded"), "Completed"),
        (pod({"running": {}}, deletionTimestamp="2026-01-01T00:00:00Z"), "Terminating"),
    ],
)
def test_the_status_of_a_pod(shown: dict[str, Any], reason: str) -> None:
    assert pod_reason(shown) == reason


def test_the_row_of_a_pod() -> None:
    now = datetime.datetime(2026, 1, 1, 0, 5, tzinfo=datetime.UTC)
    shown = pod({"running": {}})
    cells = [cell(column, shown, now) for column in COLUMNS["pods"]]
    assert cells == ["1/1", "Running", 2, "5m", "127.1.2.3", "one"]
