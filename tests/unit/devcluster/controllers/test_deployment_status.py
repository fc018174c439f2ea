"""What a Deployment reports."""

from datetime import UTC, datetime, timedelta

from dragoman_devcluster.controllers.deployment_status import deadline_in_s, deployment_status
from dragoman_devcluster.controllers.rollout import new_replica_set
from dragoman_kube.objects import condition_of
from dragoman_kube.times import timestamp

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def make_deployment(replicas=2, status=None, **spec):
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}
    selector = {"matchLabels": {"app": "web"}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "uid": "d", "generation": 4},
        "spec": {"replicas": replicas, "selector": selector, "template": template, **spec},
        "status": status or {},
    }


def make_replica_set(deployment, replicas=2, available=2, age_s=0, **status):
    made = new_replica_set(deployment, [])
    made["metadata"] |= {"uid": "r", "creationTimestamp": timestamp(NOW - timedelta(seconds=age_s))}
    made["spec"]["replicas"] = replicas
    made["status"] = {
        "replicas": replicas,
        "readyReplicas": available,
        "availableReplicas": available,
        **status,
    }
    return made


def condition(status, kind):
    return condition_of({"status": status}, kind)


def progressing(status):
    return condition(status, "Progressing")


def test_counts_and_completion():
    deployment = make_deployment()
    status = deployment_status(deployment, [make_replica_set(deployment)], NOW)
    counts = {name: value for name, value in status.items() if name != "conditions"}
    assert counts == {
        "observedGeneration": 4,
        "replicas": 2,
        "updatedReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "unavailableReplicas": 0,
    }
    assert condition(status, "Available")["status"] == "True"
    assert progressing(status)["reason"] == "NewReplicaSetAvailable"


def test_reporting_again_changes_nothing():
    deployment = make_deployment()
    sets = [make_replica_set(deployment)]
    deployment["status"] = deployment_status(deployment, sets, NOW)
    assert deployment_status(deployment, sets, NOW + timedelta(hours=1)) == deployment["status"]


def test_no_minimum_availability():
    deployment = make_deployment(replicas=1)
    status = deployment_status(deployment, [make_replica_set(deployment, 1, 0)], NOW)
    assert condition(status, "Available")["reason"] == "MinimumReplicasUnavailable"
    assert status["unavailableReplicas"] == 1


def test_the_deadline_runs_from_the_last_progress():
    deployment = make_deployment(progressDeadlineSeconds=30)
    sets = [make_replica_set(deployment, 2, 0)]
    deployment["status"] = deployment_status(deployment, sets, NOW)
    assert deadline_in_s(deployment, deployment["status"], NOW) == 30
    sets = [make_replica_set(deployment, 2, 1)]
    later = NOW + timedelta(seconds=20)
    deployment["status"] = deployment_status(deployment, sets, later)
    assert deadline_in_s(deployment, deployment["status"], later) == 30
    status = deployment_status(deployment, sets, later + timedelta(seconds=30))
    assert (progressing(status)["status"], progressing(status)["reason"]) == (
        "False",
        "ProgressDeadlineExceeded",
    )


def test_late_success_still_counts():
    deployment = make_deployment(progressDeadlineSeconds=1)
    late = NOW + timedelta(seconds=5)
    deployment["status"] = deployment_status(deployment, [make_replica_set(deployment, 2, 0)], NOW)
    deployment["status"] = deployment_status(deployment, [make_replica_set(deployment, 2, 0)], late)
    assert progressing(deployment["status"])["status"] == "False"
    status = deployment_status(deployment, [make_replica_set(deployment)], late)
    assert (progressing(status)["status"], progressing(status)["reason"]) == (
        "True",
        "NewReplicaSetAvailable",
    )


def test_a_crash_after_the_rollout_is_no_new_rollout():
    deployment = make_deployment(progressDeadlineSeconds=1)
    deployment["status"] = deployment_status(deployment, [make_replica_set(deployment)], NOW)
    crashed = [make_replica_set(deployment, 2, 1, age_s=3600)]
    status = deployment_status(deployment, crashed, NOW + timedelta(hours=1))
    assert progressing(status)["reason"] == "NewReplicaSetAvailable"


def test_a_new_template_starts_the_clock_afresh():
    deployment = make_deployment(progressDeadlineSeconds=10)
    old = make_replica_set(deployment)
    deployment["status"] = deployment_status(deployment, [old], NOW - timedelta(hours=1))
    deployment["spec"]["template"]["spec"] = {"containers": [{"name": "new"}]}
    status = deployment_status(deployment, [old], NOW)
    assert (progressing(status)["status"], progressing(status)["reason"]) == ("True", "ReplicaSetUpdated")
    assert deadline_in_s(deployment, status, NOW) == 10


def test_the_reason_why_pods_cannot_be_created_is_carried_up():
    deployment = make_deployment()
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "quota"}
    status = deployment_status(deployment, [make_replica_set(deployment, 0, 0, conditions=[failure])], NOW)
    assert condition(status, "ReplicaFailure")["message"] == "quota"
