"""Deployments on the local cluster: rollouts as Kubernetes does them."""

import asyncio

import pytest

pytestmark = pytest.mark.cluster


def changed(variable):
    return {"spec": {"containers": [{"name": "main", "env": [{"name": "VERSION", "value": variable}]}]}}


async def test_becomes_ready_and_reports_it(workloads, server):
    await workloads.deploy("web", server(), replicas=2)
    deployment = await workloads.all_ready("web")
    conditions = {condition.type: condition for condition in deployment.status.conditions}
    assert conditions["Available"].status == "True"
    assert conditions["Progressing"].reason == "NewReplicaSetAvailable"
    assert deployment.metadata.annotations["deployment.kubernetes.io/revision"] == "1"
    pods = await workloads.pods("web")
    assert len({pod.status.pod_ip for pod in pods}) == 2
    assert all(pod.status.phase == "Running" and pod.status.pod_ip.startswith("127.") for pod in pods)
    events = await workloads.core.list_namespaced_event(workloads.namespace)
    assert {"ScalingReplicaSet", "SuccessfulCreate", "Scheduled", "Started"} <= {
        e.reason for e in events.items
    }


async def test_rolling_update_keeps_enough_pods_available(workloads, server):
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    await workloads.deploy("web", server(), replicas=2, strategy=strategy)
    await workloads.all_ready("web")
    before = {pod.metadata.name for pod in await workloads.pods("web")}
    await workloads.patch("web", template=changed("2"))

    async def available():
        deployment = await workloads.deployment("web")
        assert (deployment.status.available_replicas or 0) >= 2
        pods = await workloads.pods("web")
        assert len(pods) <= 3
        ready = [
            p
            for p in pods
            if any(c.type == "Ready" and c.status == "True" for c in p.status.conditions or [])
        ]
        return deployment, {pod.metadata.name for pod in ready}

    await workloads.until(available, lambda seen: len(seen[1]) >= 2 and not seen[1] & before)
    deployment = await workloads.all_ready("web")
    assert deployment.metadata.annotations["deployment.kubernetes.io/revision"] == "2"
    assert all(pod.spec.containers[0].env[0].value == "2" for pod in await workloads.pods("web"))


async def test_rolls_back_to_a_former_template(workloads, server):
    await workloads.deploy("web", server(), replicas=1)
    first = await workloads.all_ready("web")
    [pod] = await workloads.pods("web")
    await workloads.patch("web", template=changed("2"))
    await workloads.all_ready("web")
    template = workloads.api.sanitize_for_serialization(first.spec.template)
    back = [{"op": "replace", "path": "/spec/template", "value": template}]
    await workloads.apps.patch_namespaced_deployment("web", workloads.namespace, back)
    deployment = await workloads.all_ready("web")
    [again] = await workloads.pods("web")
    assert again.metadata.labels["pod-template-hash"] == pod.metadata.labels["pod-template-hash"]
    assert deployment.metadata.annotations["deployment.kubernetes.io/revision"] == "3"


async def test_scales_and_replaces_deleted_pods(workloads, server):
    await workloads.deploy("web", server(), replicas=1)
    await workloads.all_ready("web")
    await workloads.patch("web", replicas=3)
    await workloads.all_ready("web")
    await workloads.patch("web", replicas=1)
    await workloads.all_ready("web")
    [pod] = await workloads.pods("web")
    await workloads.core.delete_namespaced_pod(pod.metadata.name, workloads.namespace)
    [other] = await workloads.until(lambda: workloads.pods("web"), lambda pods: len(pods) == 1)
    assert other.metadata.name != pod.metadata.name
    await workloads.all_ready("web")


async def test_gives_up_waiting_for_progress_after_the_deadline(workloads, server):
    await workloads.deploy("web", server(command=["sleep", "60"]), replicas=1, progressDeadlineSeconds=1)
    deployment = await workloads.until(
        lambda: workloads.deployment("web"),
        lambda found: any(c.reason == "ProgressDeadlineExceeded" for c in found.status.conditions or []),
    )
    # A pod that the API refused at first leaves a ReplicaFailure for a moment.
    conditions = {c.type: c.status for c in deployment.status.conditions}
    assert (conditions["Available"], conditions["Progressing"]) == ("False", "False")


async def test_min_ready_seconds_delay_availability(workloads, server):
    await workloads.deploy("web", server(), replicas=1, minReadySeconds=2)
    await workloads.until(lambda: workloads.deployment("web"), lambda found: found.status.ready_replicas == 1)
    assert not (await workloads.deployment("web")).status.available_replicas
    started = asyncio.get_running_loop().time()
    await workloads.all_ready("web")
    assert asyncio.get_running_loop().time() - started < 10


async def test_keeps_no_more_history_than_configured(workloads, server):
    await workloads.deploy("web", server(), replicas=1, revisionHistoryLimit=1)
    await workloads.all_ready("web")
    for version in ("2", "3"):
        await workloads.patch("web", template=changed(version))
        await workloads.all_ready("web")
    replica_sets = await workloads.until(
        lambda: workloads.apps.list_namespaced_replica_set(workloads.namespace),
        lambda found: len(found.items) == 2,
    )
    revisions = {
        item.metadata.annotations["deployment.kubernetes.io/revision"] for item in replica_sets.items
    }
    assert revisions == {"2", "3"}
