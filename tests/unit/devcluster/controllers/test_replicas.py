"""Which pods a ReplicaSet creates and gives up."""

from datetime import UTC, datetime, timedelta

import pytest

from dragoman_devcluster.controllers.replica_sets import (
    DELETION_COST,
    available_in_s,
    new_pod,
    plan_replicas,
    replica_set_status,
)
from dragoman_kube.times import timestamp

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def make_pod(
    name="p",
    *,
    ready=True,
    phase="Running",
    node="local",
    age_s=100,
    ready_for_s=None,
    cost=None,
    deleting=False,
):
    since = NOW - timedelta(seconds=age_s if ready_for_s is None else ready_for_s)
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": timestamp(since)}
    metadata = {"name": name, "namespace": "default", "uid": name, "labels": {"app": "web"}}
    metadata["creationTimestamp"] = timestamp(NOW - timedelta(seconds=age_s))
    if cost is not None:
        metadata["annotations"] = {DELETION_COST: cost}
    if deleting:
        metadata["deletionTimestamp"] = timestamp(NOW)
    spec = {"nodeName": node} if node else {}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase, "conditions": [condition]}}


def make_replica_set(**spec):
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web-x", "namespace": "default", "uid": "r", "generation": 2},
        "spec": {"replicas": 2, "template": template, **spec},
    }


def deleted(desired, pods):
    return [pod["metadata"]["name"] for pod in plan_replicas(desired, pods, NOW).delete]


def test_creates_what_is_missing_and_counts_no_ended_or_ending_pods():
    pods = [make_pod("a"), make_pod("b", phase="Failed"), make_pod("c", deleting=True)]
    assert plan_replicas(3, pods, NOW).create == 2


def test_as_many_as_wanted_is_no_change():
    plan = plan_replicas(1, [make_pod()], NOW)
    assert (plan.create, plan.delete) == (0, ())


@pytest.mark.parametrize(
    ("worse", "better"),
    [
        (make_pod("x", node=""), make_pod("y")),
        (make_pod("x", phase="Pending", ready=False), make_pod("y", ready=False)),
        (make_pod("x", ready=False, cost="100"), make_pod("y", cost="-100")),
        (make_pod("x", cost="-5"), make_pod("y", age_s=1)),
        (make_pod("x", ready_for_s=10), make_pod("y", ready_for_s=20)),
        (make_pod("x", age_s=50, ready_for_s=1), make_pod("y", age_s=60, ready_for_s=1)),
        (make_pod("x", cost="-1"), make_pod("y", cost="not a number")),
    ],
    ids=[
        "unscheduled",
        "pending",
        "unready before cost",
        "cost before age",
        "ready later",
        "younger",
        "bad cost",
    ],
)
def test_the_least_valuable_goes_first(worse, better):
    assert deleted(1, [worse, better]) == deleted(1, [better, worse]) == ["x"]


def test_status():
    pods = [make_pod("a"), make_pod("b", ready=False), make_pod("c", deleting=True)]
    assert replica_set_status(make_replica_set(), pods, NOW) == {
        "replicas": 2,
        "readyReplicas": 1,
        "availableReplicas": 1,
        "observedGeneration": 2,
    }


def test_available_after_min_ready_seconds():
    assert available_in_s(make_pod(ready_for_s=4), 10, NOW) == 6
    assert available_in_s(make_pod(ready_for_s=10), 10, NOW) == 0
    assert available_in_s(make_pod(ready=False), 10, NOW) is None
    assert (
        replica_set_status(make_replica_set(minReadySeconds=10), [make_pod(ready_for_s=4)], NOW)[
            "availableReplicas"
        ]
        == 0
    )


def test_a_new_pod_belongs_to_its_replica_set():
    pod = new_pod(make_replica_set())
    assert pod["metadata"]["generateName"] == "web-x-"
    assert pod["metadata"]["labels"] == {"app": "web"}
    assert pod["metadata"]["ownerReferences"][0]["uid"] == "r"
