"""One reconciliation: what is written, in which order, and what is not."""

from datetime import timedelta
from typing import Any

import pytest
from tests.support.deployments import KEY, make_body
from tests.support.operator_world import RESYNC_S, NoScaler, owned

from dragoman_contract.kubernetes import FIELD_MANAGER
from dragoman_kube.errors import ConflictError, RefusedError
from dragoman_kube.kinds import (
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    HPA,
    POD,
    REPLICA_SET,
    SCALED_OBJECT,
    SERVICE,
    TRIGGER_AUTHENTICATION,
)
from dragoman_kube.objects import Key
from dragoman_kube.times import timestamp
from dragoman_operator.autoscaling.decision.values import Rule
from dragoman_operator.autoscaling.view import ScalingView
from dragoman_operator.autoscaling.writes import REWRITE_EVERY_S
from dragoman_operator.controller.reconcile import KEDA_S, MOUNTING_S, NODE_S, REFUSED_S, SOON_S
from dragoman_operator.observed.snapshot import CHILD_KINDS, TRANSLATION_DEPLOYMENT

MakeWorld = Any
STATUS = "status TranslationDeployment"
DELETED = "2026-01-02T03:04:05Z"


def set_spec(**fields: Any) -> Any:
    """A change of fields of the spec."""
    return lambda found: found["spec"].update(fields)


@pytest.mark.parametrize(
    "status", [None, {"observedGeneration": -1, "conditions": []}], ids=["none", "default"]
)
async def test_first_reconciliation_creates_children_and_reads_nothing(
    make_world: MakeWorld, status: dict[str, Any] | None
) -> None:
    world = make_world(make_body(status=status))
    assert await world.reconciled() == SOON_S
    names = [kind.name for kind in CHILD_KINDS if kind is not HPA]
    assert world.cluster.calls == [f"create {name}" for name in (*names[:-1], "Secret", names[-1])]
    assert world.cluster.reads == []


async def test_second_reconciliation_writes_the_status_and_third_nothing(make_world: MakeWorld) -> None:
    world = make_world(make_body())
    await world.reconciled()
    world.cluster.calls.clear()
    assert await world.reconciled() == RESYNC_S
    assert world.cluster.calls == [STATUS]
    assert await world.written() == []
    assert world.cluster.reads == []


@pytest.mark.parametrize("gone", [True, False])
async def test_deleted_object_is_forgotten(make_world: MakeWorld, gone: bool) -> None:
    world = make_world(make_body())
    if gone:
        world.cluster.remove(TRANSLATION_DEPLOYMENT, KEY)
    else:
        world.edit(TRANSLATION_DEPLOYMENT, lambda td: td["metadata"].update(deletionTimestamp=DELETED))
    assert await world.reconciled() is None
    assert world.cluster.calls == []


async def test_bad_spec_touches_no_child(make_world: MakeWorld) -> None:
    world = make_world(make_body())
    await world.reconciled()
    world.edit(TRANSLATION_DEPLOYMENT, lambda td: td["spec"]["engine"].update(colour="red"))
    world.cluster.remove(SERVICE, KEY)
    assert await world.written() == [STATUS]
    (event,) = (event for event in world.events if event["type"] == "Warning")
    assert event["reason"] == "InvalidSpec"


async def test_refusal_does_not_keep_the_others_from_being_written(make_world: MakeWorld) -> None:
    world = make_world(make_body())
    world.cluster.failures["Service"] = RefusedError("create Service", "denied by policy (403)")
    assert await world.reconciled() == REFUSED_S
    assert "create Deployment" in world.cluster.calls
    assert world.condition("Degraded")["reason"] == "ApplyFailed"
    assert "denied by policy" in world.condition("Degraded")["message"]


async def test_edit_over_which_nothing_can_be_applied_is_forced(make_world: MakeWorld) -> None:
    world = make_world(make_body())
    await world.reconciled()
    world.edit(SERVICE, lambda service: service["spec"]["ports"][0].update(port=81))
    world.cluster.failures["apply Service"] = RefusedError("apply Service", "duplicate port name (422)")
    assert (await world.written())[:2] == ["apply Service", "merge Service"]


async def test_first_edit_of_a_created_child_changes_its_ownership_to_apply(make_world: MakeWorld) -> None:
    world = make_world(make_body())
    await world.reconciled()
    created = {"manager": FIELD_MANAGER, "operation": "Update", "fieldsV1": {"f:spec": {}}}
    world.edit(DEPLOYMENT, lambda found: found["metadata"].update(managedFields=[created]))
    world.edit(TRANSLATION_DEPLOYMENT, lambda td: td["spec"]["engine"].update(maxNumSeqs=9))
    calls = await world.written()
    assert [call for call in calls if "Secret" not in call][:2] == ["merge Deployment", "apply Deployment"]
    assert world.cluster.reads[-1] == DEPLOYMENT.name


async def test_waits_shortly_for_what_is_being_deleted(make_world: MakeWorld) -> None:
    world = make_world(make_body())
    await world.reconciled()
    world.edit(SERVICE, lambda service: service["metadata"].update(deletionTimestamp=DELETED))
    assert await world.reconciled() == SOON_S


async def test_same_transition_is_the_same_event(make_world: MakeWorld) -> None:
    world = make_world(make_body())
    for _ in range(3):
        if (DEPLOYMENT.name, KEY) in world.cluster.objects:
            world.cluster.remove(DEPLOYMENT, KEY)
        world.cluster.failures = {"Deployment": RefusedError("create Deployment", "no (403)")}
        await world.reconciled()
        world.cluster.failures = {}
        await world.reconciled()
    refused = [event for event in world.events if event["reason"] == "ApplyFailed"]
    assert len(refused) == 3
    assert len({event["metadata"]["name"] for event in refused}) == 1
    assert refused[0]["involvedObject"]["name"] == "demo"


KEDA = {"autoscaling": {"mode": "KEDA", "maxReplicas": 3, "prometheus": {"url": "http://prom:9090"}}}


async def test_scaled_object_is_created_once_the_status_has_the_mode(make_world: MakeWorld) -> None:
    world = make_world(make_body(**KEDA))
    await world.reconciled(2)
    assert "create ScaledObject" not in world.cluster.calls
    assert world.td["status"]["scaling"]["mode"] == "KEDA"
    assert "create ScaledObject" in await world.written()
    # The mode changes before the next status is written: the object is found nevertheless.
    world.edit(TRANSLATION_DEPLOYMENT, lambda td: td["spec"].pop("autoscaling"))
    assert "delete ScaledObject" in await world.written()


async def test_missing_permission_for_keda_is_reported(make_world: MakeWorld) -> None:
    world = make_world(make_body(**KEDA))
    for kind in (SCALED_OBJECT, TRIGGER_AUTHENTICATION):
        world.cluster.failures[f"get {kind.name}"] = RefusedError(f"get {kind.name}", "forbidden (403)")
    await world.reconciled(2)
    assert world.condition("ScalingActive")["reason"] == "KEDANotInstalled"
    assert "keda.enabled=true" in world.condition("ScalingActive")["message"]


async def test_scaled_object_is_read_again_until_it_is_ready(make_world: MakeWorld) -> None:
    world = make_world(make_body(**KEDA))
    await world.reconciled(3)
    ready = {"type": "Ready", "status": "False", "reason": "TriggerError", "message": "no result"}
    world.edit(SCALED_OBJECT, lambda found: found.update(status={"conditions": [ready]}))
    assert await world.reconciled() == KEDA_S
    ready |= {"status": "True", "reason": "ScaledObjectReady", "message": "ready"}
    world.edit(SCALED_OBJECT, lambda found: found.update(status={"conditions": [ready]}))
    assert await world.reconciled() == RESYNC_S
    condition = world.condition("ScalingActive")
    assert (condition["status"], condition["reason"]) == ("True", "KEDAScaledObjectReady")


async def test_pod_that_waits_for_its_volumes_is_reported_with_the_kubelets_message(
    make_world: MakeWorld,
) -> None:
    world = make_world(make_body(glossary={"configMapKeyRef": {"name": "terms"}}))
    await world.reconciled()
    pod = world.add_pod(
        "demo-1", world.add_replica_set(), spec={"nodeName": "node"}, status={"phase": "Pending"}
    )
    message = 'MountVolume.SetUp failed for volume "glossary" : configmap "terms" not found'
    event = {"message": message, "lastTimestamp": None, "count": 2}
    world.mount_events = [event | {"involvedObject": {"uid": pod["metadata"]["uid"]}}]
    assert await world.reconciled() == MOUNTING_S
    assert world.condition("Degraded")["reason"] == "FailedMount"


async def test_node_of_a_cluster_autoscaler_is_expected_by_its_event(make_world: MakeWorld) -> None:
    world = make_world(make_body())
    await world.reconciled()
    placeless = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"}
    status = {"phase": "Pending", "conditions": [placeless]}
    pod = world.add_pod("demo-1", world.add_replica_set(), status=status)
    assert await world.reconciled() == NODE_S
    assert world.condition("Degraded")["reason"] == "Unschedulable"
    world.cluster.put(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "scaled", "namespace": KEY.namespace},
            "involvedObject": {"kind": "Pod", "uid": pod["metadata"]["uid"]},
            "reason": "TriggeredScaleUp",
            "lastTimestamp": timestamp(world.cluster.now),
        }
    )
    await world.reconciled()
    assert world.condition("Degraded")["reason"] == "AsExpected"
    world.cluster.now += timedelta(hours=1)
    await world.reconciled()
    assert world.condition("Degraded")["reason"] == "Unschedulable"


async def test_pods_of_others_are_not_in_the_status(make_world: MakeWorld) -> None:
    seen: list[int] = []

    async def before_scale_down(pods: Any) -> None:
        seen.append(len(list(pods)))

    world = make_world(make_body(replicas=2), before_scale_down=before_scale_down)
    await world.reconciled()
    other = world.cluster.put(owned(DEPLOYMENT, "other", None, spec={"replicas": 1}))
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    world.add_pod("ours", world.add_replica_set(), **ready)
    world.add_pod("theirs", world.add_replica_set("of-other", other), **ready)
    world.add_pod("bare", None, **ready)
    await world.reconciled()
    assert (world.td["status"]["replicas"], world.td["status"]["readyReplicas"]) == (1, 1)
    world.edit(TRANSLATION_DEPLOYMENT, set_spec(replicas=1))
    await world.reconciled()
    assert seen == [1]


def rewrites(manifest: dict[str, Any]) -> None:
    """A webhook that rewrites fields of the Deployment and adds one to the budget."""
    if manifest["kind"] == DEPLOYMENT.name:
        container = manifest["spec"]["template"]["spec"]["containers"][0]
        container["image"] = "mirror.example.org/engine:cpu"
        container["env"] = [{"name": "ADDED", "value": "1"}]
        manifest["metadata"]["labels"].pop("app.kubernetes.io/name", None)
    if manifest["kind"] == DISRUPTION_BUDGET.name:
        manifest["spec"]["unhealthyPodEvictionPolicy"] = "AlwaysAllow"


async def test_webhook_that_rewrites_our_fields_costs_one_write(make_world: MakeWorld) -> None:
    world = make_world(make_body())
    world.cluster.admit = rewrites

    async def writes() -> list[str]:
        return [call for call in await world.written() if call != STATUS and "Secret" not in call]

    await writes()
    world.edit(DEPLOYMENT, lambda found: found.update(status={"observedGeneration": 1}))
    assert [await writes(), await writes()] == [[], []]
    assert world.condition("Progressing")["reason"] == "Starting"
    # Our field, edited by another client after our last apply.
    world.edit(DEPLOYMENT, set_spec(replicas=9))
    assert "apply Deployment" in await writes()
    assert await writes() == []
    # Fields of others do not matter.
    world.edit(
        DEPLOYMENT, lambda found: found["metadata"]["annotations"].update({"example.com/note": "mine"})
    )
    assert await writes() == []
    world.edit(TRANSLATION_DEPLOYMENT, lambda td: td["spec"]["engine"].update(maxNumSeqs=9))
    assert (await writes()).count("apply Deployment") == 1
    assert await writes() == []
    world.restarted()
    assert (await writes()).count("apply Deployment") == 1
    assert [await writes(), await writes()] == [[], []]


async def test_child_that_lost_its_label_is_ours_and_not_created_again(make_world: MakeWorld) -> None:
    world = make_world(make_body())
    await world.reconciled(2)
    world.edit(SERVICE, lambda service: service["metadata"].pop("labels"))
    with pytest.raises(ConflictError):
        await world.reconciled()
    assert "apply Service" in await world.written()
    assert "labels" in world.found(SERVICE)["metadata"]


def theirs(kind: str, **fields: Any) -> dict[str, Any]:
    """An object of another owner with the name of the TranslationDeployment."""
    owner = {"apiVersion": "v1", "kind": "Rollout", "name": "o", "uid": "o", "controller": True}
    metadata = {"name": KEY.name, "namespace": KEY.namespace, "uid": "theirs", "ownerReferences": [owner]}
    return {"kind": kind, "metadata": metadata, **fields}


async def test_child_of_another_owner_is_an_obstacle_although_it_is_not_mirrored(
    make_world: MakeWorld,
) -> None:
    world = make_world(make_body(), theirs("Service"))
    with pytest.raises(ConflictError):
        await world.reconciled()
    assert await world.reconciled() == REFUSED_S
    assert world.cluster.calls.count("create Service") == 1
    assert "apply Service" not in world.cluster.calls
    assert "create Secret" not in world.cluster.calls, "its pods would trust the address of another owner"
    assert "Service demo exists and is owned by something else" in str(world.td["status"])


FIFTY = {
    "spec": {"replicas": 50},
    "status": {"replicas": 50, "updatedReplicas": 50, "observedGeneration": 1},
}


@pytest.mark.parametrize("labelled", [True, False])
async def test_deployment_of_another_owner_is_not_counted(make_world: MakeWorld, labelled: bool) -> None:
    seen: list[object] = []

    class Scaler(NoScaler):
        def view(self, *arguments: object) -> None:
            seen.append(arguments[2])

    deployment = theirs("Deployment", **FIFTY)
    if labelled:
        deployment["metadata"]["labels"] = {"dragoman.io/deployment": KEY.name}
    world = make_world(make_body(), deployment, scaler=Scaler())
    for _ in range(3):
        try:
            await world.reconciled()
        except ConflictError:
            assert not labelled
    status = world.td["status"]
    assert (status["replicas"], status["desiredReplicas"]) == (0, 2)
    assert "Deployment demo exists and is owned by something else" in status["message"]
    assert set(seen) == {None}, "the autoscaler does not continue from it"


async def test_replica_sets_of_a_foreign_deployment_have_no_pods_of_ours(make_world: MakeWorld) -> None:
    deployment = theirs("Deployment", **FIFTY)
    deployment["metadata"]["labels"] = {"dragoman.io/deployment": KEY.name}
    world = make_world(make_body(), deployment | {"apiVersion": "apps/v1"})
    await world.cluster.settle()
    world.add_pod("theirs", world.add_replica_set())
    await world.reconciled()
    assert world.td["status"]["replicas"] == 0
    assert world.mirror.list(POD)
    assert world.mirror.list(REPLICA_SET)


class Decided(NoScaler):
    """Mode Internal with a fixed decision."""

    def __init__(self, replicas: int) -> None:
        self.replicas = replicas
        self.acknowledged: list[int] = []

    def view(self, *seen: object) -> Any:
        return ScalingView(self.replicas, Rule.LOAD, "measured", at=0.0)

    def acknowledge(self, key: Key, replicas: int) -> None:
        self.acknowledged.append(replicas)


INTERNAL = {"autoscaling": {"minReplicas": 1, "maxReplicas": 5}}


async def test_decision_is_written_to_spec_replicas_before_the_children(make_world: MakeWorld) -> None:
    scaler = Decided(4)
    world = make_world(make_body(**INTERNAL), scaler=scaler)
    await world.reconciled(2)
    assert world.cluster.calls[0] == "scale 4"
    assert world.cluster.calls.count(STATUS) == 1
    assert scaler.acknowledged == [4]
    assert (world.td["spec"]["replicas"], world.found(DEPLOYMENT)["spec"]["replicas"]) == (4, 4)
    assert world.td["status"]["observedGeneration"] == world.td["metadata"]["generation"]
    world.restarted()
    assert not [call for call in await world.written() if call.startswith("scale")]


async def test_same_decision_is_written_back_once_a_minute(make_world: MakeWorld) -> None:
    scaler = Decided(4)
    world = make_world(make_body(**INTERNAL), scaler=scaler)
    await world.reconciled()
    world.edit(TRANSLATION_DEPLOYMENT, set_spec(replicas=1))
    world.clock += REWRITE_EVERY_S - 20
    world.cluster.calls.clear()
    assert await world.reconciled() == 20
    assert "scale 4" not in world.cluster.calls
    assert world.found(DEPLOYMENT)["spec"]["replicas"] == 4
    world.clock += 20
    assert "scale 4" in await world.written()
    # Another decision is written at once.
    scaler.replicas = 5
    await world.reconciled()
    assert world.td["spec"]["replicas"] == 5


async def test_refused_write_of_spec_replicas_is_logged_once_and_the_deployment_follows(
    make_world: MakeWorld, caplog: pytest.LogCaptureFixture
) -> None:
    scaler = Decided(4)
    world = make_world(make_body(**INTERNAL), scaler=scaler)
    world.cluster.failures["scale TranslationDeployment"] = RefusedError("scale", "denied by policy (403)")
    for _ in range(3):
        assert (await world.reconciled() or 0) <= REWRITE_EVERY_S
        world.clock += REWRITE_EVERY_S
    assert world.cluster.calls.count("scale 4") == 3
    assert scaler.acknowledged == []
    assert [record.message for record in caplog.records].count(
        "spec.replicas stays at 2: scale: denied by policy (403)"
    ) == 1
    assert world.found(DEPLOYMENT)["spec"]["replicas"] == 4
