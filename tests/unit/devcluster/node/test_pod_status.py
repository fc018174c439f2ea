"""A pod's phase and conditions."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from dragoman_devcluster.node.pod_status import (
    ContainerView,
    PodView,
    pod_status,
    running,
    terminated,
    waiting,
)
from dragoman_kube.times import timestamp

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
RUNS = running(NOW)
CREATING = waiting("ContainerCreating")


def ended(code):
    return terminated(code, NOW, NOW, "", "process://1")


def make_container(state=RUNS, *, ready=True, name="main", **fields):
    return ContainerView(name=name, image="none", state=state, ready=ready, started=ready, **fields)


def make_view(*containers, policy="Always", conditions=(), mounted=True, **spec):
    metadata = {"name": "p", "namespace": "default", "uid": "p"}
    pod = {
        "metadata": metadata,
        "spec": {"restartPolicy": policy, **spec},
        "status": {"conditions": list(conditions)},
    }
    return PodView(pod, containers, "127.64.0.1", "127.0.0.1", NOW, mounted)


def phase(*containers, **fields):
    return pod_status(make_view(*containers, **fields), NOW)["phase"]


def conditions(*containers, **fields):
    found = pod_status(make_view(*containers, **fields), NOW)["conditions"]
    return {condition["type"]: condition for condition in found}


@pytest.mark.parametrize(
    ("states", "policy", "expected"),
    [
        ([CREATING], "Always", "Pending"),
        ([RUNS, CREATING], "Always", "Pending"),
        ([RUNS], "Always", "Running"),
        ([ended(1)], "Always", "Running"),
        ([ended(0)], "Always", "Running"),
        ([ended(0)], "Never", "Succeeded"),
        ([ended(0), RUNS], "Never", "Running"),
        ([ended(0), ended(1)], "Never", "Failed"),
        ([ended(0)], "OnFailure", "Succeeded"),
        ([ended(1)], "OnFailure", "Running"),
    ],
)
def test_phase(states, policy, expected):
    containers = [make_container(state, name=f"c{index}") for index, state in enumerate(states)]
    assert phase(*containers, policy=policy) == expected


def test_a_crash_loop_is_running():
    looping = make_container(waiting("CrashLoopBackOff"), ready=False, last_state=ended(1), restart_count=2)
    assert phase(looping) == "Running"


def test_conditions_of_a_ready_pod():
    found = conditions(make_container())
    names = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    assert {name: found[name]["status"] for name in names} == dict.fromkeys(names, "True")


def test_containers_that_are_not_ready_are_named():
    found = conditions(make_container(ready=False, name="a"), make_container(name="b"))
    assert found["Ready"]["reason"] == "ContainersNotReady"
    assert found["Ready"]["message"] == "containers with unready status: [a]"
    assert found["ContainersReady"]["status"] == "False"


def test_a_condition_keeps_its_time_while_its_status_stays():
    before = [{"type": "Ready", "status": "True", "lastTransitionTime": timestamp(NOW - timedelta(hours=1))}]
    assert (
        conditions(make_container(), conditions=before)["Ready"]["lastTransitionTime"]
        == "2026-01-01T11:00:00Z"
    )
    changed = conditions(make_container(ready=False), conditions=before)["Ready"]
    assert changed["lastTransitionTime"] == timestamp(NOW)


def initialising(*init, policy="Always"):
    view = replace(make_view(make_container(CREATING, ready=False), policy=policy), init=init)
    return pod_status(view, NOW)


def test_init_containers_are_reported_and_a_pod_is_initialized_after_all_of_them():
    first, second = (
        make_container(ended(0), ready=False, name="first"),
        make_container(RUNS, ready=False, name="second"),
    )
    status = initialising(first, second)
    assert status["phase"] == "Pending"
    assert [found["ready"] for found in status["initContainerStatuses"]] == [True, False]
    (initialized,) = (found for found in status["conditions"] if found["type"] == "Initialized")
    assert (initialized["status"], initialized["reason"]) == ("False", "ContainersNotInitialized")
    assert initialized["message"] == "containers with incomplete status: [second]"
    (initialized,) = (found for found in initialising(first)["conditions"] if found["type"] == "Initialized")
    assert initialized["status"] == "True"


def test_an_init_container_that_is_not_restarted_fails_the_pod():
    assert initialising(make_container(ended(1), name="first"), policy="Never")["phase"] == "Failed"
    assert initialising(make_container(ended(1), name="first"))["phase"] == "Pending"
