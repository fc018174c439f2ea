"""Whether a rollout surges or lets an old pod go first, and when it goes back."""

import copy
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.support.deployments import (
    DEFAULTS,
    condition,
    make_observed,
    make_pod,
    make_td,
    message,
    planned,
    shown,
    version_of,
)

from dragoman_kube.kinds import DEPLOYMENT
from dragoman_operator.api.v1alpha1 import TranslationDeployment
from dragoman_operator.observed.snapshot import TEMPLATE_HASH, Observed
from dragoman_operator.resources.children import Defaults
from dragoman_operator.rollout import (
    REPLACE,
    STUCK_AFTER_S,
    SURGE,
    UNSCHEDULABLE_TIMEOUT_S,
    Kept,
    permanent_failure,
    strategy,
    time_left_s,
    unschedulable_time_left_s,
    version_to_keep,
)

Pods = list[dict[str, Any]]


def stamp(now: datetime, ago_s: float) -> str:
    return (now - timedelta(seconds=ago_s)).strftime("%Y-%m-%dT%H:%M:%SZ")


def of_template(pod: dict[str, Any], name: str, now: datetime, age_s: float = 300) -> dict[str, Any]:
    created = stamp(now, age_s)
    pod["metadata"] |= {"labels": {TEMPLATE_HASH: name}, "creationTimestamp": created}
    return pod


def placeless(pod: dict[str, Any], now: datetime, for_s: float) -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    pod["status"]["conditions"] = [{**condition, "lastTransitionTime": stamp(now, for_s)}]
    return pod


def failing(pod: dict[str, Any], restarts: int, running: bool = False) -> dict[str, Any]:
    ended = {"terminated": {"exitCode": 1, "message": "no such model"}}
    state = {"running": {}} if running else {"waiting": {"reason": "CrashLoopBackOff"}}
    engine = {"name": "engine", "image": "i", "ready": False, "restartCount": restarts, "lastState": ended}
    sidecar = {"name": "proxy", "image": "i", "ready": True, "restartCount": 9, "state": {"running": {}}}
    pod["status"]["containerStatuses"] = [{**engine, "state": state}, sidecar]
    return pod


def mixed(searching_s: float, update: dict[str, object] | None = None, **td: Any) -> Observed:
    """An old pod that serves, and a new one that waits for a node."""
    observed = make_observed(make_td(**td))
    old = of_template(make_pod("old", ready=True), "old", observed.now)
    new = placeless(of_template(make_pod("new"), "new", observed.now), observed.now, searching_s)
    if update:
        observed.children[DEPLOYMENT]["spec"]["strategy"]["rollingUpdate"] = dict(update)
    return replace(observed, pods=(old, new))


def update_of(td: TranslationDeployment, observed: Observed) -> object:
    return strategy(td.spec.rollout, observed)["rollingUpdate"]


def test_auto_surges_until_a_new_pod_has_long_found_no_node() -> None:
    td = make_td()
    assert update_of(td, mixed(UNSCHEDULABLE_TIMEOUT_S - 1)) == SURGE
    assert unschedulable_time_left_s(mixed(UNSCHEDULABLE_TIMEOUT_S - 1)) == 1
    assert update_of(td, mixed(UNSCHEDULABLE_TIMEOUT_S)) == REPLACE


def test_a_surge_waits_for_the_node_of_an_old_pod_that_terminates() -> None:
    """The first new pod found a node, so there is one to spare: the next one gets that of the pod it replaced."""
    grace_s = 85
    observed = mixed(UNSCHEDULABLE_TIMEOUT_S)
    first = of_template(make_pod("first", ready=True), "new", observed.now)
    second = dict(observed.pods[1]) | {"spec": {"terminationGracePeriodSeconds": grace_s}}
    observed = replace(observed, pods=(observed.pods[0], first, second))
    assert update_of(make_td(), observed) == SURGE
    assert time_left_s(observed) == grace_s
    later = replace(observed, now=observed.now + timedelta(seconds=grace_s))
    assert update_of(make_td(), later) == REPLACE


def test_replacing_continues_until_the_end_of_the_rollout() -> None:
    td = make_td(replicas=1)
    both = mixed(0, REPLACE, replicas=1)
    assert update_of(td, both) == REPLACE
    assert update_of(td, replace(both, pods=both.pods[1:])) == REPLACE, (
        "the old pod is gone, the new one not ready"
    )
    assert update_of(td, replace(both, pods=())) == REPLACE
    assert update_of(td, replace(both, pods=both.pods[:1])) == SURGE


def test_a_version_that_serves_is_rolled_out_even_if_other_replicas_find_no_node() -> None:
    """Else it could be rolled back much later, for a failure that its rollout has nothing to do with."""
    observed = mixed(1000, REPLACE)
    for pod in observed.pods:
        pod["metadata"]["labels"][TEMPLATE_HASH] = "new"
    assert update_of(make_td(), observed) == SURGE


def test_a_missing_claim_terminates_no_old_pod() -> None:
    observed = mixed(1000)
    observed.pods[1]["status"]["conditions"][0]["message"] = 'persistentvolumeclaim "modles" not found'
    assert update_of(make_td(), observed) == SURGE
    assert unschedulable_time_left_s(observed) is None


NO_ROOM = {
    "labels": "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.",
    "taints": "0/2 nodes are available: 1 node(s) had untolerated taint {a: b}, 1 node(s) were unschedulable.",
    "too large": "0/2 nodes are available: 2 Insufficient memory. preemption: 0/2 nodes are available: 2 Preemption is "
    "not helpful for scheduling.",
    "another resource": "0/2 nodes are available: 1 Insufficient cpu, 2 Insufficient nvidia.com/gpu.",
    "labels and another resource": "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) didn't match "
    "Pod's node affinity/selector.",
    "no nodes": "no nodes available to schedule pods",
}
ROOM = {
    "in use": "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: "
    "2 No preemption victims found for incoming pod.",
    "on one node": "0/2 nodes are available: 1 Insufficient memory, 1 node(s) had untolerated taint {a: b}. "
    "preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful "
    "for scheduling.",
    "ports": "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.",
    "unknown": "the scheduler of another vendor found no node",
}


@pytest.mark.parametrize(
    ("why", "update"),
    [*((why, SURGE) for why in NO_ROOM.values()), *((why, REPLACE) for why in ROOM.values())],
    ids=[*NO_ROOM, *ROOM],
)
def test_an_old_pod_goes_only_where_that_can_make_room(why: str, update: object) -> None:
    td = make_td()
    observed = mixed(UNSCHEDULABLE_TIMEOUT_S)
    old, new = map(dict, observed.pods)
    observed = replace(observed, pods=(old, new))
    old["spec"] = {"containers": [{"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}
    new["status"]["conditions"][0]["message"] = why
    assert update_of(td, observed) == update
    observed.children[DEPLOYMENT]["spec"]["strategy"]["rollingUpdate"] = dict(REPLACE)
    assert update_of(td, observed) == update, "also while pods of an earlier change are being replaced"
    assert update_of(make_td(rollout={"surge": "Never"}), observed) == REPLACE
    expected = ("True", "Unschedulable") if update == SURGE else ("False", "AsExpected")
    of_template(new, "new", observed.now, age_s=20)
    assert condition(shown(td, observed), "Degraded") == expected


def test_an_old_pod_stays_while_a_cluster_autoscaler_adds_a_node() -> None:
    observed = mixed(1000)
    observed.pods[1]["metadata"]["uid"] = "new"
    assert update_of(make_td(), replace(observed, provisioned=frozenset({"new"}))) == SURGE


def test_a_pod_without_a_node_is_no_rollout_by_itself() -> None:
    observed = mixed(1000)
    for pod in observed.pods:
        pod["metadata"]["labels"][TEMPLATE_HASH] = "same"
    assert update_of(make_td(), observed) == SURGE
    assert unschedulable_time_left_s(observed) is None


def test_old_pods_that_are_leaving_do_not_count() -> None:
    observed = mixed(1000)
    observed.pods[0]["metadata"]["deletionTimestamp"] = stamp(observed.now, 1)
    assert update_of(make_td(), observed) == SURGE


def test_a_quota_that_refuses_one_pod_more_is_no_room() -> None:
    message = 'pods "demo-2" is forbidden: exceeded quota: gpus'
    failure = {"type": "ReplicaFailure", "status": "True", "message": message}
    assert update_of(make_td(), make_observed(make_td(), conditions=[failure])) == REPLACE


@pytest.mark.parametrize(("limit", "update"), [(3, REPLACE), (1, SURGE)])
def test_a_quota_below_the_request_is_not_freed_by_an_old_pod(limit: int, update: object) -> None:
    amounts = (
        f"requested: requests.cpu=2,pods=1, used: requests.cpu=1,pods=1, limited: requests.cpu={limit},pods=9"
    )
    message = f'pods "demo-2" is forbidden: exceeded quota: gpus, {amounts}'
    failure = {"type": "ReplicaFailure", "status": "True", "message": message}
    assert update_of(make_td(), make_observed(make_td(), conditions=[failure])) == update


@pytest.mark.parametrize(("surge", "update"), [("Always", SURGE), ("Never", REPLACE)])
def test_a_spec_that_decides_is_followed(surge: str, update: object) -> None:
    assert update_of(make_td(rollout={"surge": surge}), mixed(1000)) == update


@pytest.mark.parametrize(
    ("restarts", "state", "failed"),
    [
        (0, {"waiting": {"reason": "CrashLoopBackOff"}}, False),
        (1, {"waiting": {"reason": "CrashLoopBackOff"}}, True),
        (1, {"running": {}}, False),
        (9, {"terminated": {"exitCode": 0}}, False),
    ],
)
def test_a_download_that_failed_twice_is_a_permanent_failure(
    restarts: int, state: dict[str, Any], failed: bool
) -> None:
    observed = make_observed()
    pod = of_template(make_pod("new"), "new", observed.now)
    ended = {"terminated": {"exitCode": 1, "message": "no such model"}}
    fetch = {"name": "fetch", "image": "i", "ready": False, "restartCount": restarts, "lastState": ended}
    pod["status"]["initContainerStatuses"] = [{**fetch, "state": state}]
    found = permanent_failure([pod], observed)
    assert (found is not None) is failed


def former(name: str) -> dict[str, Any]:
    labels = {TEMPLATE_HASH: name, "app": "x"}
    return {
        "metadata": {"labels": labels},
        "spec": {"template": {"metadata": {"labels": labels}, "spec": {}}},
    }


def replaced(restarts: int, running: bool = False) -> Observed:
    observed = mixed(0, REPLACE)
    new = failing(of_template(make_pod("new"), "new", observed.now), restarts, running)
    status = {"rollout": {"lastReadyTemplateHash": "old"}}
    return replace(observed, pods=(new,), replica_sets=(former("old"), former("new")), status=status)


def test_a_replacement_that_fails_repeatedly_is_rolled_back() -> None:
    td = make_td()
    version = version_of(td)
    once = replaced(restarts=0)
    assert version_to_keep(version, once) is None
    trying_again = replaced(restarts=1, running=True)
    assert version_to_keep(version, trying_again) is None
    twice = replaced(restarts=1)
    found = version_to_keep(version, twice)
    assert found is not None
    assert found.template["metadata"]["labels"] == {"app": "x"}
    assert found.reason == "no such model"

    found_plan = planned(td, twice)
    (change,) = found_plan.changes
    assert change.manifest is not None
    assert change.manifest["spec"]["template"]["spec"] == {}
    status = shown(td, twice, plan=found_plan)
    assert status["rollout"] == {
        "lastReadyTemplateHash": "old",
        "lastReadySource": "",
        "failedTemplateDigest": version.source,
        "reason": "no such model",
    }
    assert condition(status, "Degraded") == ("True", "RolledBack")

    later = replace(twice, pods=(), status=status)
    assert version_to_keep(version, later) is not None
    edited = make_td(engine={"maxNumSeqs": 9})
    assert version_to_keep(version_of(edited), later) is None


def test_a_replacement_that_never_mounts_is_rolled_back() -> None:
    td = make_td(glossary={"configMapKeyRef": {"name": "terms"}})
    version = version_of(td)
    observed = replaced(restarts=0)
    waiting = of_template(make_pod("new"), "new", observed.now, age_s=0)
    waiting["metadata"]["uid"] = "new"
    failures = {"new": 'MountVolume.SetUp failed for volume "glossary" : configmap "terms" not found'}
    observed = replace(observed, pods=(waiting,), mount_failures=failures)
    assert version_to_keep(version, observed) is None
    later = replace(observed, now=observed.now + timedelta(seconds=STUCK_AFTER_S))
    found = version_to_keep(version, later)
    assert found is not None
    assert 'configmap "terms" not found' in str(found.reason)


def test_a_replacement_that_fits_on_no_node_is_rolled_back() -> None:
    td = make_td(replicas=1)
    version = version_of(td)
    grace_s = 75
    limit_s = UNSCHEDULABLE_TIMEOUT_S + grace_s + STUCK_AFTER_S

    def waiting(for_s: float, others: int = 0) -> Observed:
        both = mixed(for_s, REPLACE, replicas=1 + others)
        new = of_template(dict(both.pods[1]), "new", both.now, age_s=for_s)
        new["spec"] = {"terminationGracePeriodSeconds": grace_s}
        new["status"]["conditions"][0]["message"] = "0/1 nodes are available: 1 Insufficient cpu."
        status = {"rollout": {"lastReadyTemplateHash": "old"}}
        return replace(
            both,
            pods=(*both.pods[:others], new),
            replica_sets=(former("old"), former("new")),
            status=status,
        )

    assert version_to_keep(version, waiting(limit_s - 1)) is None
    assert time_left_s(waiting(limit_s - 1)) == 1
    assert time_left_s(waiting(limit_s)) is None
    assert time_left_s(waiting(1)) == STUCK_AFTER_S - 1, (
        "other failures are permanent earlier, and cause no event"
    )
    found = version_to_keep(version, waiting(limit_s))
    assert found is not None
    assert "Insufficient cpu" in str(found.reason)
    assert version_to_keep(version, waiting(limit_s, others=1)) is None, "another replica serves"


@pytest.mark.parametrize(
    ("surge", "age_s", "is_degraded"), [("Auto", 20, False), ("Auto", 1000, True), ("Always", 20, True)]
)
def test_a_pod_that_gets_the_node_of_an_old_one_is_no_problem(
    surge: str, age_s: float, is_degraded: bool
) -> None:
    td = make_td(rollout={"surge": surge})
    observed = mixed(age_s)
    of_template(dict(observed.pods[1]), "new", observed.now, age_s=age_s)
    status = shown(td, observed)
    assert (condition(status, "Degraded")[0] == "True") is is_degraded


def test_a_pod_that_gets_the_node_of_a_terminating_one_is_no_problem() -> None:
    td = make_td(replicas=1)
    observed = make_observed(td)
    waiting = placeless(of_template(make_pod("new"), "same", observed.now), observed.now, 5)
    leaving = of_template(make_pod("old"), "same", observed.now)
    reasons = []
    for left_s in (30, -1):
        leaving["metadata"]["deletionTimestamp"] = stamp(observed.now, -left_s)
        status = shown(td, replace(observed, pods=(waiting, leaving)))
        reasons += [one["reason"] for one in status["conditions"] if one["type"] == "Degraded"]
    assert reasons == ["AsExpected", "Unschedulable"]


def test_replicas_that_were_rolled_back_run_the_former_version() -> None:
    td = make_td(replicas=1)
    observed = make_observed(td, [make_pod("a", ready=True)], updatedReplicas=1)
    status = shown(td, observed, kept=Kept({}, "no such model"))
    assert message(status, "Progressing") == "all 1 replicas run the last version that worked"


def test_a_surging_rollout_keeps_its_old_pods_and_needs_no_way_back() -> None:
    td, observed = make_td(), replaced(restarts=5)
    observed.children[DEPLOYMENT]["spec"]["strategy"]["rollingUpdate"] = dict(SURGE)
    assert version_to_keep(version_of(td), observed) is None


def test_a_version_is_good_once_all_its_pods_are_ready() -> None:
    td = make_td(replicas=1)
    observed = make_observed(td, updatedReplicas=1)
    half = replace(observed, pods=(of_template(make_pod("a"), "first", observed.now),))
    assert "rollout" not in shown(td, half, plan=planned(td, half))
    whole = replace(observed, pods=(of_template(make_pod("a", ready=True), "first", observed.now),))
    assert shown(td, whole, plan=planned(td, whole))["rollout"] == {
        "lastReadyTemplateHash": "first",
        "lastReadySource": version_of(td).source,
    }


def test_a_pod_that_was_evicted_does_not_keep_a_version_from_being_good() -> None:
    """Kubernetes keeps it, with the template of its time; a rollback would else be to a version before the last."""
    td = make_td(replicas=1)
    observed = make_observed(td, updatedReplicas=1)
    evicted = of_template(make_pod("a", phase="Failed", reason="Evicted"), "first", observed.now)
    pods = (evicted, of_template(make_pod("b", ready=True), "second", observed.now))
    status = shown(td, replace(observed, pods=pods), plan=planned(td, observed))
    assert status["rollout"]["lastReadyTemplateHash"] == "second"


def test_version_that_works_is_no_failure_when_the_spec_returns_to_it() -> None:
    """A failed change is reverted while the pod that failed is still there."""
    td, other = make_td(), make_td(engine={"maxNumSeqs": 99})
    observed = make_observed(td)
    found = observed.children[DEPLOYMENT]
    strategy = {"type": "RollingUpdate", "rollingUpdate": dict(REPLACE)}
    deployment = {**found, "spec": {**found["spec"], "strategy": strategy}}
    version = version_of(td)
    former = {"metadata": {"labels": {TEMPLATE_HASH: "old"}}, "spec": {"template": version.template}}
    status = {"rollout": {"lastReadyTemplateHash": "old"}}
    observed = replace(
        observed,
        children={**observed.children, DEPLOYMENT: deployment},
        pods=(of_template(failing(make_pod(), 3), "new", observed.now),),
        replica_sets=(former,),
        status=status,
    )
    assert version_to_keep(version, observed) is None
    assert version_to_keep(version_of(other), observed) is not None


RESTARTED = "kubectl.kubernetes.io/restartedAt"


def by_another_operator(td: TranslationDeployment, **rollout: str) -> Observed:
    """A ready pod, whose template an operator made that sets no resources; a user has restarted it."""
    template = copy.deepcopy(dict(version_of(td).template))
    del template["spec"]["containers"][0]["resources"]
    metadata = {"labels": {TEMPLATE_HASH: "old"}}
    labels = {**template["metadata"]["labels"], TEMPLATE_HASH: "old"}
    restarted = {**template, "metadata": {"labels": labels, "annotations": {RESTARTED: "today"}}}
    observed = make_observed(td, updatedReplicas=1)
    observed.children[DEPLOYMENT]["spec"]["template"] = template
    return replace(
        observed,
        pods=(of_template(make_pod("a", ready=True), "old", observed.now),),
        replica_sets=({"metadata": metadata, "spec": {"template": restarted}},),
        status={"rollout": {"lastReadyTemplateHash": "old", **rollout}},
    )


def kept_template(td: TranslationDeployment, observed: Observed, defaults: Defaults = DEFAULTS) -> Any:
    (change,) = planned(td, observed, defaults).changes
    assert change.kind is DEPLOYMENT
    assert change.manifest is not None
    return change.manifest["spec"]["template"]


def test_a_newer_operator_replaces_no_pods() -> None:
    td = make_td(replicas=1)
    source = version_of(td).source
    observed = by_another_operator(td, lastReadySource=source)
    template = kept_template(td, observed)
    assert template == observed.children[DEPLOYMENT]["spec"]["template"]
    status = shown(td, observed, plan=planned(td, observed))
    assert status["rollout"] == {"lastReadyTemplateHash": "old", "lastReadySource": source}
    assert condition(status, "Degraded") == ("False", "AsExpected")


@pytest.mark.parametrize(
    "change", [{"engine": {"maxNumSeqs": 9}}, {"image": "another"}, {"podTemplate": {"labels": {"a": "b"}}}]
)
def test_with_the_next_change_its_template_is_used(change: dict[str, Any]) -> None:
    td = make_td(replicas=1)
    observed = by_another_operator(td, lastReadySource=version_of(td).source)
    edited = make_td(replicas=1, **change)
    template = kept_template(edited, observed)
    assert template == version_of(edited).template
    other_images = replace(DEFAULTS, cpu="engine:newer")
    assert "resources" in kept_template(td, observed, other_images)["spec"]["containers"][0]


def test_a_version_that_failed_stays_rolled_back() -> None:
    td = make_td(replicas=1)
    version = version_of(td)
    of_another = by_another_operator(td, failedTemplateDigest=version.source, reason="no such model")
    found = version_to_keep(version, of_another)
    assert found is not None
    assert found.reason == "no such model"
    status = shown(td, of_another, plan=planned(td, of_another))
    assert status["rollout"]["failedTemplateDigest"] == version.source
    assert version_to_keep(version, replace(of_another, status=status)) is not None
