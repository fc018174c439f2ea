"""How many pods a PodDisruptionBudget lets go."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dragoman_devcluster.decisions.disruption import disruption_status
from dragoman_kube.times import timestamp

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def make_pod(name, *, ready=True, owner="r"):
    owners = [{"kind": "ReplicaSet", "name": "r", "uid": owner, "controller": True}] if owner else []
    status = {"conditions": [{"type": "Ready", "status": str(ready)}]}
    return {"metadata": {"name": name, "ownerReferences": owners}, "status": status}


def make_budget(status=None, **spec):
    return {"metadata": {"name": "b", "generation": 3}, "spec": spec, "status": status or {}}


def numbers(budget, pods, scales):
    status = disruption_status(budget, pods, scales, NOW)
    return tuple(
        status[name] for name in ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
    )


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"minAvailable": 1}, (3, 1, 2, 1)),
        ({"minAvailable": 3}, (3, 3, 2, 0)),
        ({"minAvailable": "50%"}, (4, 2, 2, 0)),
        ({"maxUnavailable": 1}, (4, 3, 2, 0)),
        ({"maxUnavailable": "50%"}, (4, 2, 2, 0)),
        ({"maxUnavailable": 3}, (4, 1, 2, 1)),
    ],
)
def test_numbers(spec, expected):
    pods = [make_pod("a"), make_pod("b"), make_pod("c", ready=False)]
    assert numbers(make_budget(**spec), pods, {"r": ("d", 4)}) == expected


def test_two_replica_sets_of_one_deployment_count_once():
    pods = [make_pod("a", owner="r1"), make_pod("b", owner="r2")]
    assert numbers(make_budget(maxUnavailable=1), pods, {"r1": ("d", 2), "r2": ("d", 2)})[0] == 2


def test_no_pods_no_disruptions():
    assert numbers(make_budget(maxUnavailable=1), [], {}) == (0, 0, 0, 0)


def test_a_granted_eviction_counts_until_it_is_late():
    granted = {"a": timestamp(NOW - timedelta(seconds=10)), "b": timestamp(NOW - timedelta(seconds=200))}
    budget = make_budget({"disruptedPods": {**granted, "gone": timestamp(NOW)}}, minAvailable=1)
    status = disruption_status(budget, [make_pod("a"), make_pod("b")], {}, NOW)
    assert status["disruptedPods"] == {"a": granted["a"]}
    assert (status["currentHealthy"], status["disruptionsAllowed"]) == (1, 0)


def test_the_condition_keeps_its_time():
    budget = make_budget(minAvailable=1)
    pods = [make_pod("a"), make_pod("b")]
    budget["status"] = disruption_status(budget, pods, {}, NOW)
    assert budget["status"]["conditions"][0]["reason"] == "SufficientPods"
    assert disruption_status(budget, pods, {}, NOW + timedelta(hours=1)) == budget["status"]
