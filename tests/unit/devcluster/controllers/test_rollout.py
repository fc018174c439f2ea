"""Which ReplicaSets a Deployment creates, scales and removes next."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_devcluster.controllers.rollout import (
    REVISION,
    TEMPLATE_HASH,
    RolloutPlan,
    current_replica_set,
    new_replica_set,
    plan_rollout,
    surge_and_unavailable,
    unsupported,
)


def make_template(image="a"):
    return {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": image}]},
    }


def make_deployment(replicas=3, image="a", **spec):
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "uid": "d", "generation": 1},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": make_template(image),
            **spec,
        },
    }


def rolling(surge, unavailable):
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


def make_replica_set(image="a", replicas=3, available=None, revision=1, **metadata):
    made = new_replica_set(make_deployment(image=image), [])
    made["metadata"] |= {"uid": image, "creationTimestamp": f"2026-01-01T00:00:0{revision}Z", **metadata}
    made["metadata"]["annotations"][REVISION] = str(revision)
    made["spec"]["replicas"] = replicas
    count = replicas if available is None else available
    made["status"] = {"replicas": replicas, "readyReplicas": count, "availableReplicas": count}
    return made


def name(image):
    return make_replica_set(image)["metadata"]["name"]


def test_a_new_deployment_gets_a_replica_set_of_full_size():
    plan = plan_rollout(make_deployment(replicas=3), [])
    created: Any = plan.create
    template_hash = created["metadata"]["labels"][TEMPLATE_HASH]
    assert created["spec"]["replicas"] == 3
    assert created["metadata"]["name"] == f"web-{template_hash}"
    assert created["spec"]["selector"]["matchLabels"] == {"app": "web", TEMPLATE_HASH: template_hash}
    assert created["spec"]["template"]["metadata"]["labels"] == {"app": "web", TEMPLATE_HASH: template_hash}
    assert created["metadata"]["annotations"][REVISION] == "1"
    [owner] = created["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == ("d", True)


def test_the_deployment_is_not_changed_by_planning():
    deployment = make_deployment()
    before = copy.deepcopy(deployment)
    plan_rollout(deployment, [])
    assert deployment == before


def test_the_same_template_is_found_again_whatever_the_hash_label():
    replica_set = make_replica_set("a")
    assert current_replica_set(make_deployment(image="b"), [replica_set]) is None
    assert current_replica_set(make_deployment(image="a"), [replica_set]) is replica_set


def test_a_finished_rollout_plans_nothing():
    assert plan_rollout(make_deployment(), [make_replica_set()]) == RolloutPlan()


@pytest.mark.parametrize(("surge", "first"), [(1, 1), (2, 2), ("50%", 2), ("100%", 3), (0, 0)])
def test_the_surge_bounds_what_a_new_template_starts_with(surge, first):
    deployment = make_deployment(image="b", strategy=rolling(surge, 1))
    created: Any = plan_rollout(deployment, [make_replica_set("a")]).create
    assert created["spec"]["replicas"] == first


def test_old_pods_go_when_new_ones_are_available():
    deployment = make_deployment(image="b", strategy=rolling(1, 0))
    old, new = make_replica_set("a"), make_replica_set("b", 1, available=0, revision=2)
    assert plan_rollout(deployment, [old, new]).scale == {}
    new["status"]["availableReplicas"] = 1
    assert plan_rollout(deployment, [old, new]).scale == {name("a"): 2}


def test_what_may_lack_goes_at_once():
    deployment = make_deployment(image="b", strategy=rolling(0, 2))
    old, new = make_replica_set("a"), make_replica_set("b", 0, revision=2)
    assert plan_rollout(deployment, [old, new]).scale == {name("a"): 1}


def test_broken_old_pods_go_first():
    deployment = make_deployment(image="c", strategy=rolling(1, 0))
    broken, working = make_replica_set("a", 1, available=0), make_replica_set("b", 3, revision=2)
    new = make_replica_set("c", 0, revision=3)
    assert plan_rollout(deployment, [working, broken, new]).scale == {name("a"): 0}


def test_scaling_mid_rollout_changes_the_new_one():
    deployment = make_deployment(replicas=5, image="b", strategy=rolling(1, 0))
    old, new = make_replica_set("a", 2), make_replica_set("b", 2, revision=2)
    assert plan_rollout(deployment, [old, new]).scale == {name("b"): 4}
    assert plan_rollout({**deployment, "spec": {**deployment["spec"], "replicas": 1}}, [old, new]).scale == {
        name("b"): 1
    }


def test_what_is_not_supported_is_named():
    assert "Recreate" in unsupported(make_deployment(strategy={"type": "Recreate"}))
    assert "paused" in unsupported(make_deployment(paused=True))
    assert not unsupported(make_deployment(strategy=rolling(1, 0)))


def test_a_former_template_becomes_the_newest_revision():
    deployment = make_deployment(image="a")
    again, newer = make_replica_set("a", 0), make_replica_set("b", 3, revision=2)
    change = {"metadata": {"annotations": {REVISION: "3"}}}
    assert plan_rollout(deployment, [again, newer]).change == change


def test_the_time_until_available_goes_to_the_newest_alone_and_first():
    deployment = make_deployment(image="b", minReadySeconds=60)
    plan = plan_rollout(deployment, [make_replica_set("a", 3), make_replica_set("b", 1, revision=2)])
    assert plan == RolloutPlan(change={"spec": {"minReadySeconds": 60}})
    held = make_replica_set("b", 1, revision=2)
    held["spec"]["minReadySeconds"] = 60
    assert plan_rollout(deployment, [make_replica_set("a", 3), held]).change is None
    del deployment["spec"]["minReadySeconds"]
    assert plan_rollout(deployment, [make_replica_set("a", 3), held]) == RolloutPlan(
        change={"spec": {"minReadySeconds": 0}}
    )


def test_history_keeps_the_newest():
    deployment = make_deployment(image="c", revisionHistoryLimit=1)
    sets = [make_replica_set("a", 0), make_replica_set("b", 0, revision=2), make_replica_set("c", revision=3)]
    assert plan_rollout(deployment, sets).remove == (name("a"),)
    sets[2]["status"]["availableReplicas"] = 2
    assert plan_rollout(deployment, sets).remove == ()


@pytest.mark.parametrize(
    ("surge", "unavailable", "replicas", "expected"),
    [
        ("25%", "25%", 4, (1, 1)),
        ("25%", "25%", 3, (1, 0)),
        (0, "10%", 5, (0, 1)),
        (0, 0, 2, (0, 1)),
        ("30%", 1, 10, (3, 1)),
    ],
)
def test_percentages(surge, unavailable, replicas, expected):
    deployment = make_deployment(replicas=replicas, strategy=rolling(surge, unavailable))
    assert surge_and_unavailable(deployment) == expected


@given(
    replicas=st.integers(0, 8),
    surge=st.integers(0, 3),
    unavailable=st.integers(0, 3),
    start=st.integers(0, 8),
    choices=st.lists(st.integers(0, 8), max_size=60),
)
def test_a_rollout_keeps_its_bounds_and_ends(replicas, surge, unavailable, start, choices):
    """In every order in which pods become available: never too many, never too few available, and an end."""
    deployment = make_deployment(replicas=replicas, image="b", strategy=rolling(surge, unavailable))
    surge, unavailable = surge_and_unavailable(deployment)
    old = make_replica_set("a", start)
    new: Any = None
    choices = [*choices, *[8] * 60]
    for choice in choices:
        sets = [old] if new is None else [old, new]
        most_before = sum(item["spec"]["replicas"] for item in sets)
        available_before = sum(item["status"]["availableReplicas"] for item in sets)
        plan = plan_rollout(deployment, sets)
        if plan.create:
            new = {**make_replica_set("b", 0, revision=2), "spec": plan.create["spec"]}
            sets = [old, new]
        for item in sets:
            item["spec"]["replicas"] = plan.scale.get(item["metadata"]["name"], item["spec"]["replicas"])
            item["status"]["replicas"] = item["spec"]["replicas"]
            item["status"]["availableReplicas"] = min(
                item["status"]["availableReplicas"], item["spec"]["replicas"]
            )
        assert sum(item["spec"]["replicas"] for item in sets) <= max(replicas + surge, most_before)
        available = sum(item["status"]["availableReplicas"] for item in sets)
        assert available >= min(replicas - unavailable, available_before)
        if new is not None:
            missing = new["spec"]["replicas"] - new["status"]["availableReplicas"]
            new["status"]["availableReplicas"] += min(choice, missing)
    assert (old["spec"]["replicas"], new["spec"]["replicas"]) == (0, replicas)
