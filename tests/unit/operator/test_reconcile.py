"""One reconciliation: what is written, in which order, and what is not."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import pytest

from dragoman_contract.kubernetes import FIELD_MANAGER
from dragoman_kube.errors import ConflictError, RefusedError
from dragoman_kube.events import EventRecorder
from dragoman_kube.kinds import DEPLOYMENT, DISRUPTION_BUDGET, HPA, POD, REPLICA_SET, SERVICE, Kind
from dragoman_kube.objects import Key
from dragoman_operator.autoscaling.decision.values import Rule
from dragoman_operator.autoscaling.view import ScalingView
from dragoman_operator.autoscaling.writes import REWRITE_EVERY_S, SpecReplicas
from dragoman_operator.controller.cache import CACHED_KINDS, Cache
from dragoman_operator.controller.reconcile import KEDA_S, MOUNTING_S, REFUSED_S, SOON_S, Reconciler
from dragoman_operator.observed.snapshot import CHILD_KINDS, TRANSLATION_DEPLOYMENT
from dragoman_operator.resources.children import Defaults

KEY = Key("default", "demo")
RESYNC_S = 300.0


class Index(Mapping[Key, list[dict[str, Any]]]):
    """What is in memory now, by `KEY`."""

    def __init__(self, read: Callable[[], list[dict[str, Any]]]) -> None:
        self._read = read

    def __getitem__(self, key: Key) -> list[dict[str, Any]]:
        return copy.deepcopy(self._read()) if key == KEY else []

    def __iter__(self) -> Iterator[Key]:
        return iter([KEY])

    def __len__(self) -> int:
        return 1


class Api:
    """Objects in memory; `calls` are the writes, in order. `cache` has them too, `listed` by their label."""

    def __init__(self, *objects: dict[str, Any]) -> None:
        self.objects = {found["kind"]: found for found in objects}
        self.listed: dict[Kind, list[dict[str, Any]]] = {}
        self.reads: list[str] = []
        self.cache = Cache()
        self.cache.bind({kind.plural: Index(partial(self._indexed, kind)) for kind in CACHED_KINDS})
        self.events: list[dict[str, Any]] = []
        self.calls: list[str] = []
        self.refused: dict[str, str] = {}
        self.now = 0.0
        self.mount_events: list[dict[str, Any]] = []

    async def get(self, kind: Kind, key: Key) -> dict[str, Any] | None:
        if f"get {kind.name}" in self.refused:
            raise RefusedError(f"get {kind.name}", self.refused[f"get {kind.name}"])
        self.reads.append(kind.name)
        return copy.deepcopy(self.objects.get(kind.name))

    def _indexed(self, kind: Kind) -> list[dict[str, Any]]:
        found = self.objects.get(kind.name)
        return self.listed.get(kind, [found] if found else [])

    async def serves(self, kind: Kind) -> bool:
        return True

    async def create(self, kind: Kind, manifest: dict[str, Any]) -> dict[str, Any]:
        if kind.name in self.objects:
            raise ConflictError(f"create {kind.name}", "already exists")
        return self._stored("create", kind, manifest)

    async def apply(self, kind: Kind, manifest: dict[str, Any], subresource: str = "") -> dict[str, Any]:
        if subresource:
            return await self._write_status(manifest)
        return self._stored("apply", kind, manifest)

    def _stored(self, verb: str, kind: Kind, manifest: dict[str, Any]) -> dict[str, Any]:
        self.calls.append(f"{verb} {kind.name}")
        if kind.name in self.refused:
            raise RefusedError(f"{verb} {kind.name}", self.refused[kind.name])
        stored = copy.deepcopy(manifest)
        stored["metadata"] |= {"uid": kind.name, "generation": 1, "resourceVersion": "1"}
        self.objects[kind.name] = stored
        return stored

    async def merge(
        self, kind: Kind, key: Key, fields: dict[str, Any], subresource: str = ""
    ) -> dict[str, Any]:
        if subresource:
            return self._scale(self.objects[kind.name], fields)
        self.calls.append(f"merge {kind.name}")
        return self.objects[kind.name]

    def _scale(self, stored: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
        self.calls.append(f"scale {fields['spec']['replicas']}")
        if "scale" in self.refused:
            raise RefusedError("scale", self.refused["scale"])
        metadata = stored["metadata"]
        if fields["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
            raise ConflictError("scale", "changed")
        stored["spec"]["replicas"] = fields["spec"]["replicas"]
        metadata["generation"] += 1
        metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)
        return {"kind": "Scale", "metadata": {"resourceVersion": metadata["resourceVersion"]}}

    async def delete(self, kind: Kind, key: Key, uid: str) -> None:
        self.calls.append(f"delete {kind.name} {uid}")

    async def _write_status(self, manifest: dict[str, Any]) -> dict[str, Any]:
        self.calls.append("status")
        self.objects["TranslationDeployment"]["status"] = manifest["status"]
        return copy.deepcopy(self.objects["TranslationDeployment"])

    def put(self, event: dict[str, Any]) -> None:
        self.events.append(event)


class NoScaler:
    """Decides nothing."""

    def view(self, *seen: object) -> None:
        return None

    def forget(self, key: Key) -> None:
        return None


@pytest.fixture
def reconciler(defaults: Defaults) -> Callable[[Api], Reconciler]:
    async def before_scale_down(pods: object) -> None:
        return None

    return lambda api: _reconciler(api, defaults, before_scale_down=before_scale_down)


def _reconciler(
    api: Api, defaults: Defaults, scaler: Any = None, sizer: Any = None, before_scale_down: Any = None
) -> Reconciler:
    scaler, sizer = scaler or NoScaler(), sizer or NoScaler()
    kube: Any = api
    spec_replicas = SpecReplicas(kube, lambda: api.now)
    return Reconciler(
        kube,
        api.cache,
        defaults,
        scaler,
        spec_replicas,
        sizer,
        before_scale_down,
        _events(api),
        lambda: api.mount_events,
        dict,
        RESYNC_S,
    )


def _events(api: Api) -> EventRecorder:
    return EventRecorder(api, "dragoman-operator", "me")  # type: ignore[arg-type]


MakeBody = Callable[..., dict[str, Any]]
Make = Callable[[Api], Reconciler]


async def test_first_reconciliation_creates_children_and_reads_nothing(
    make_body: MakeBody, reconciler: Make
) -> None:
    api = Api(make_body())
    assert await reconciler(api)(KEY) == SOON_S
    wanted = [kind.name for kind in CHILD_KINDS if kind is not HPA]
    assert api.calls == [f"create {name}" for name in wanted]
    assert api.reads == []


async def test_second_reconciliation_writes_the_status_and_third_nothing(
    make_body: MakeBody, reconciler: Make
) -> None:
    api = Api(make_body())
    reconcile = reconciler(api)
    await reconcile(KEY)
    api.calls.clear()
    assert await reconcile(KEY) == RESYNC_S
    assert api.calls == ["status"]
    api.calls.clear()
    await reconcile(KEY)
    assert api.calls == []


@pytest.mark.parametrize("change", [{}, {"deletionTimestamp": "2026-01-02T03:04:05Z"}])
async def test_deleted_object_is_forgotten(
    change: dict[str, Any], make_body: MakeBody, reconciler: Make
) -> None:
    api = Api(make_body())
    api.objects["TranslationDeployment"]["metadata"] |= change
    if not change:
        del api.objects[TRANSLATION_DEPLOYMENT.name]
    assert await reconciler(api)(KEY) is None
    assert api.calls == []


async def test_bad_spec_touches_no_child(make_body: MakeBody, reconciler: Make) -> None:
    api = Api(make_body())
    reconcile = reconciler(api)
    await reconcile(KEY)
    api.calls.clear()
    api.objects["TranslationDeployment"]["spec"]["engine"]["colour"] = "red"
    del api.objects["Service"]
    await reconcile(KEY)
    assert api.calls == ["status"]
    (event,) = (event for event in api.events if event["type"] == "Warning")
    assert event["reason"] == "InvalidSpec"


async def test_refusal_does_not_keep_the_others_from_being_written(
    make_body: MakeBody, reconciler: Make
) -> None:
    api = Api(make_body())
    api.refused = {"Service": "denied by policy (403)"}
    assert await reconciler(api)(KEY) == REFUSED_S
    assert "create Deployment" in api.calls
    conditions = {
        found["type"]: found for found in api.objects["TranslationDeployment"]["status"]["conditions"]
    }
    assert conditions["Degraded"]["reason"] == "ApplyFailed"
    assert "denied by policy" in conditions["Degraded"]["message"]


async def test_edit_over_which_nothing_can_be_applied_is_forced(
    make_body: MakeBody, reconciler: Make
) -> None:
    api = Api(make_body())
    reconcile = reconciler(api)
    await reconcile(KEY)
    api.objects["Service"]["spec"]["ports"][0]["port"] = 81
    api.refused = {"Service": "duplicate port name (422)"}
    api.calls.clear()
    await reconcile(KEY)
    assert api.calls[:2] == ["apply Service", "merge Service"]


async def test_first_edit_of_a_created_child_changes_its_ownership_to_apply(
    make_body: MakeBody, reconciler: Make
) -> None:
    api = Api(make_body())
    reconcile = reconciler(api)
    await reconcile(KEY)
    created = {"manager": FIELD_MANAGER, "operation": "Update", "fieldsV1": {"f:spec": {}}}
    api.objects[DEPLOYMENT.name]["metadata"]["managedFields"] = [created]
    api.objects["TranslationDeployment"]["spec"]["engine"]["maxNumSeqs"] = 9
    api.calls.clear()
    await reconcile(KEY)
    assert api.calls[:2] == ["merge Deployment", "apply Deployment"]
    assert api.reads[-1] == DEPLOYMENT.name


async def test_waits_shortly_for_what_is_being_deleted(make_body: MakeBody, reconciler: Make) -> None:
    api = Api(make_body())
    reconcile = reconciler(api)
    await reconcile(KEY)
    api.objects[SERVICE.name]["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    assert await reconcile(KEY) == SOON_S


async def test_same_transition_is_the_same_event(make_body: MakeBody, reconciler: Make) -> None:
    api = Api(make_body())
    reconcile = reconciler(api)
    for _ in range(3):
        api.refused = {"Deployment": "no (403)"}
        api.objects.pop(DEPLOYMENT.name, None)
        api.cache.forget(DEPLOYMENT, KEY, DEPLOYMENT.name)
        await reconcile(KEY)
        api.refused = {}
        await reconcile(KEY)
    refused = [event for event in api.events if event["reason"] == "ApplyFailed"]
    assert len(refused) == 3
    assert len({event["metadata"]["name"] for event in refused}) == 1
    assert refused[0]["involvedObject"]["name"] == "demo"


async def test_scaled_object_is_created_once_the_status_has_the_mode(
    make_body: MakeBody, reconciler: Make
) -> None:
    scaling = {"mode": "KEDA", "maxReplicas": 3, "prometheus": {"url": "http://prom:9090"}}
    api = Api(make_body(autoscaling=scaling))
    reconcile = reconciler(api)
    await reconcile(KEY)
    await reconcile(KEY)
    assert "create ScaledObject" not in api.calls
    assert api.objects["TranslationDeployment"]["status"]["scaling"]["mode"] == "KEDA"
    await reconcile(KEY)
    assert "create ScaledObject" in api.calls
    # The mode changes before the next status is written: the object is found nevertheless.
    del api.objects["TranslationDeployment"]["spec"]["autoscaling"]
    await reconcile(KEY)
    assert "delete ScaledObject ScaledObject" in api.calls


async def test_missing_permission_for_keda_is_reported(make_body: MakeBody, reconciler: Make) -> None:
    scaling = {"mode": "KEDA", "maxReplicas": 3, "prometheus": {"url": "http://prom:9090"}}
    api = Api(make_body(autoscaling=scaling))
    api.refused["get ScaledObject"] = "forbidden (403)"
    reconcile = reconciler(api)
    await reconcile(KEY)
    await reconcile(KEY)
    conditions = api.objects["TranslationDeployment"]["status"]["conditions"]
    (condition,) = (found for found in conditions if found["type"] == "ScalingActive")
    assert condition["reason"] == "KEDANotInstalled"
    assert "keda.enabled=true" in condition["message"]


async def test_scaled_object_is_read_again_until_it_is_ready(make_body: MakeBody, reconciler: Make) -> None:
    scaling = {"mode": "KEDA", "maxReplicas": 3, "prometheus": {"url": "http://prom:9090"}}
    api = Api(make_body(autoscaling=scaling))
    reconcile = reconciler(api)
    for _ in range(3):
        await reconcile(KEY)
    ready = {"type": "Ready", "status": "False", "reason": "TriggerError", "message": "no result"}
    api.objects["ScaledObject"]["status"] = {"conditions": [ready]}
    assert await reconcile(KEY) == KEDA_S
    ready |= {"status": "True", "reason": "ScaledObjectReady", "message": "ready"}
    assert await reconcile(KEY) == RESYNC_S
    conditions = api.objects["TranslationDeployment"]["status"]["conditions"]
    (condition,) = (found for found in conditions if found["type"] == "ScalingActive")
    assert (condition["status"], condition["reason"]) == ("True", "KEDAScaledObjectReady")


class Mounting(Api):
    """A pod waits for its volumes, and the kubelet's Event has the reason."""

    def __init__(self, *objects: dict[str, Any]) -> None:
        super().__init__(*objects)
        deployment = {"kind": "Deployment", "uid": DEPLOYMENT.name, "controller": True}
        owner = {"kind": "ReplicaSet", "uid": "rs", "controller": True}
        metadata = {"name": "demo-1", "uid": "pod", "ownerReferences": [owner]}
        pod = {"metadata": metadata, "spec": {"nodeName": "node"}, "status": {"phase": "Pending"}}
        replica_set = {"metadata": {"uid": "rs", "ownerReferences": [deployment]}}
        self.listed = {REPLICA_SET: [replica_set], POD: [pod]}

        message = 'MountVolume.SetUp failed for volume "glossary" : configmap "terms" not found'
        event = {"message": message, "lastTimestamp": None, "count": 2, "involvedObject": {"uid": "pod"}}
        self.mount_events = [event]


async def test_pod_that_waits_for_its_volumes_is_reported_with_the_kubelets_message(
    make_body: MakeBody, reconciler: Make
) -> None:
    api = Mounting(make_body(glossary={"configMapKeyRef": {"name": "terms"}}))
    reconcile = reconciler(api)
    await reconcile(KEY)
    assert await reconcile(KEY) == MOUNTING_S
    (degraded,) = (
        found
        for found in api.objects["TranslationDeployment"]["status"]["conditions"]
        if found["type"] == "Degraded"
    )
    assert degraded["reason"] == "FailedMount"


async def test_pods_of_others_are_not_in_the_status(make_body: MakeBody, defaults: Defaults) -> None:
    seen: list[int] = []

    async def before_scale_down(pods: object) -> None:
        seen.append(len(list(pods)))  # type: ignore[call-overload]

    api = Api(make_body(replicas=2))
    reconcile = _reconciler(api, defaults, before_scale_down=before_scale_down)
    await reconcile(KEY)
    deployment = api.objects[DEPLOYMENT.name]
    of_deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "controller": True}
    own = {
        "metadata": {"uid": "rs", "ownerReferences": [of_deployment | {"uid": deployment["metadata"]["uid"]}]}
    }
    foreign = {"metadata": {"uid": "other", "ownerReferences": [of_deployment | {"uid": "e"}]}}

    def pod(name: str, replica_set: str | None) -> dict[str, Any]:
        owner = {"kind": "ReplicaSet", "uid": replica_set, "controller": True}
        ready = {"type": "Ready", "status": "True"}
        metadata = {"name": name, "uid": name, "ownerReferences": [owner] if replica_set else None}
        return {"metadata": metadata, "status": {"conditions": [ready]}}

    api.listed = {
        REPLICA_SET: [own, foreign],
        POD: [pod("ours", "rs"), pod("bare", None), pod("theirs", "other")],
    }
    await reconcile(KEY)
    status = api.objects["TranslationDeployment"]["status"]
    assert (status["replicas"], status["readyReplicas"]) == (1, 1)
    api.objects["TranslationDeployment"]["spec"]["replicas"] = 1
    await reconcile(KEY)
    assert seen == [1]


class Mutating(Api):
    """An API server with a webhook that rewrites fields of the Deployment and adds one to the budget."""

    async def create(self, kind: Kind, manifest: dict[str, Any]) -> dict[str, Any]:
        return copy.deepcopy(self.mutated(await super().create(kind, manifest)))

    async def apply(self, kind: Kind, manifest: dict[str, Any], subresource: str = "") -> dict[str, Any]:
        return copy.deepcopy(self.mutated(await super().apply(kind, manifest, subresource)))

    async def merge(
        self, kind: Kind, key: Key, fields: dict[str, Any], subresource: str = ""
    ) -> dict[str, Any]:
        return copy.deepcopy(self.mutated(await super().merge(kind, key, fields, subresource)))

    def mutated(self, stored: dict[str, Any]) -> dict[str, Any]:
        if stored.get("kind") == DEPLOYMENT.name:
            container = stored["spec"]["template"]["spec"]["containers"][0]
            container["image"] = "mirror.example.org/engine:cpu"
            container["env"] = [{"name": "ADDED", "value": "1"}]
            stored["metadata"]["labels"].pop("app.kubernetes.io/name", None)
        if stored.get("kind") == DISRUPTION_BUDGET.name:
            stored["spec"]["unhealthyPodEvictionPolicy"] = "AlwaysAllow"
        return stored


async def test_webhook_that_rewrites_our_fields_costs_one_write(
    make_body: MakeBody, reconciler: Make
) -> None:
    api = Mutating(make_body())
    reconcile = reconciler(api)

    async def writes() -> list[str]:
        api.calls.clear()
        await reconcile(KEY)
        return [call for call in api.calls if call != "status"]

    await writes()
    api.objects[DEPLOYMENT.name]["status"] = {"observedGeneration": 1}
    assert [await writes(), await writes()] == [[], []]
    conditions = api.objects["TranslationDeployment"]["status"]["conditions"]
    (progressing,) = (found for found in conditions if found["type"] == "Progressing")
    assert progressing["reason"] == "Starting"

    # Our field, edited by another client after our last apply.
    api.objects[DEPLOYMENT.name]["spec"]["replicas"] = 9
    assert "apply Deployment" in await writes()
    assert await writes() == []
    # Fields of others do not matter.
    api.objects[DEPLOYMENT.name]["metadata"]["annotations"]["example.com/note"] = "mine"
    assert await writes() == []
    api.objects["TranslationDeployment"]["spec"]["engine"]["maxNumSeqs"] = 9
    assert (await writes()).count("apply Deployment") == 1
    assert await writes() == []

    reconcile = reconciler(api)
    assert (await writes()).count("apply Deployment") == 1
    assert [await writes(), await writes()] == [[], []]


async def test_reconciliation_of_a_complete_object_reads_nothing_live(
    make_body: MakeBody, reconciler: Make
) -> None:
    api = Api(make_body())
    reconcile = reconciler(api)
    await reconcile(KEY)
    await reconcile(KEY)
    await reconcile(KEY)
    assert api.reads == []


class Stale(Api):
    """An index that shows the objects as they were when `catch_up` was last called."""

    def __init__(self, *objects: dict[str, Any]) -> None:
        super().__init__(*objects)
        self.version = 100
        self.catch_up()

    def catch_up(self) -> None:
        self.shown = copy.deepcopy(self.objects)

    def _indexed(self, kind: Kind) -> list[dict[str, Any]]:
        return [self.shown[kind.name]] if kind.name in self.shown else []

    async def create(self, kind: Kind, manifest: dict[str, Any]) -> dict[str, Any]:
        return self._numbered(await super().create(kind, manifest))

    async def apply(self, kind: Kind, manifest: dict[str, Any], subresource: str = "") -> dict[str, Any]:
        stored = await super().apply(kind, manifest, subresource)
        return stored if subresource else self._numbered(stored)

    async def _write_status(self, manifest: dict[str, Any]) -> dict[str, Any]:
        stored = self.objects["TranslationDeployment"]
        if manifest["metadata"]["resourceVersion"] != stored["metadata"]["resourceVersion"]:
            raise ConflictError("write the status", "changed")
        await super()._write_status(manifest)
        return self._numbered(stored)

    def _numbered(self, stored: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        stored["metadata"]["resourceVersion"] = str(self.version)
        return copy.deepcopy(stored)


async def test_index_that_lags_behind_causes_no_second_write(make_body: MakeBody, reconciler: Make) -> None:
    api = Stale(make_body())
    reconcile = reconciler(api)
    await reconcile(KEY)
    api.calls.clear()
    await reconcile(KEY)
    assert set(api.calls) <= {"status"}
    api.calls.clear()
    await reconcile(KEY)
    assert api.calls == []
    api.catch_up()
    await reconcile(KEY)
    assert api.calls == []


async def test_status_over_a_newer_object_is_a_conflict_and_no_lost_write(
    make_body: MakeBody, reconciler: Make
) -> None:
    api = Stale(make_body())
    reconcile = reconciler(api)
    await reconcile(KEY)
    await reconcile(KEY)
    api.objects["TranslationDeployment"]["spec"]["replicas"] = 7
    api._numbered(api.objects["TranslationDeployment"])
    api.objects[DEPLOYMENT.name]["status"] = {"observedGeneration": 1, "readyReplicas": 1}
    api.shown[DEPLOYMENT.name] = api._numbered(api.objects[DEPLOYMENT.name])
    with pytest.raises(ConflictError):
        await reconcile(KEY)
    api.catch_up()
    await reconcile(KEY)
    assert api.objects[DEPLOYMENT.name]["spec"]["replicas"] == 7


async def test_child_that_lost_its_label_is_ours_and_not_created_again(
    make_body: MakeBody, reconciler: Make
) -> None:
    api = Stale(make_body())
    reconcile = reconciler(api)
    await reconcile(KEY)
    api.catch_up()
    service = api.objects[SERVICE.name]
    del service["metadata"]["labels"]
    api._numbered(service)
    api.cache.forget(SERVICE, KEY, service["metadata"]["uid"])
    del api.shown[SERVICE.name]
    api.calls.clear()
    with pytest.raises(ConflictError):
        await reconcile(KEY)
    await reconcile(KEY)
    assert "apply Service" in api.calls
    assert "labels" in api.objects[SERVICE.name]["metadata"]


async def test_child_of_another_owner_is_an_obstacle_although_it_is_not_cached(
    make_body: MakeBody, reconciler: Make
) -> None:
    theirs = {"kind": "Service", "metadata": {"name": "demo", "namespace": "default", "uid": "theirs"}}
    api = Stale(make_body(), theirs)
    del api.shown[SERVICE.name]
    reconcile = reconciler(api)
    with pytest.raises(ConflictError):
        await reconcile(KEY)
    assert await reconcile(KEY) == REFUSED_S
    assert "Service" not in " ".join(api.calls).replace("ServiceAccount", "")
    assert "Service demo exists and is owned by something else" in str(
        api.objects["TranslationDeployment"]["status"]
    )


async def test_deployment_of_another_owner_counts_neither_in_the_status_nor_for_the_autoscaler(
    make_body: MakeBody, defaults: Defaults
) -> None:
    theirs = {
        "kind": "Deployment",
        "metadata": {
            "name": "demo",
            "namespace": "default",
            "uid": "theirs",
            "generation": 1,
            "resourceVersion": "3",
        },
        "spec": {"replicas": 50},
        "status": {"replicas": 50, "updatedReplicas": 50, "observedGeneration": 1},
    }
    scaling = {"minReplicas": 1, "maxReplicas": 100}
    api = Api(make_body(autoscaling=scaling, replicas=2), theirs)
    seen: list[object] = []

    class Scaler(NoScaler):
        def view(self, *arguments: object) -> None:
            seen.append(arguments[2])

    await _reconciler(api, defaults, Scaler())(KEY)
    status = api.objects["TranslationDeployment"]["status"]
    assert (status["replicas"], status["desiredReplicas"]) == (0, 2)
    assert "Deployment demo exists and is owned by something else" in status["message"]
    assert seen == [None]


class Decided(NoScaler):
    """Mode Internal with a fixed decision."""

    def __init__(self, replicas: int) -> None:
        self.replicas = replicas
        self.acknowledged: list[int] = []

    def view(self, *seen: object) -> Any:
        return ScalingView(self.replicas, Rule.LOAD, "measured", at=0.0)

    def acknowledge(self, key: Key, replicas: int) -> None:
        self.acknowledged.append(replicas)


@pytest.fixture
def scaling(defaults: Defaults) -> Callable[[Api, Decided], Reconciler]:
    async def before_scale_down(pods: object) -> None:
        return None

    return lambda api, scaler: _reconciler(api, defaults, scaler, before_scale_down=before_scale_down)


INTERNAL = {"autoscaling": {"minReplicas": 1, "maxReplicas": 5}}
Scaling = Callable[[Api, Decided], Reconciler]


async def test_decision_is_written_to_spec_replicas_before_the_children(
    make_body: MakeBody, scaling: Scaling
) -> None:
    api, scaler = Api(make_body(**INTERNAL)), Decided(4)
    reconcile = scaling(api, scaler)
    await reconcile(KEY)
    await reconcile(KEY)
    td = api.objects["TranslationDeployment"]
    assert api.calls[0] == "scale 4"
    assert api.calls.count("status") == 1
    assert scaler.acknowledged == [4]
    assert (td["spec"]["replicas"], api.objects["Deployment"]["spec"]["replicas"]) == (4, 4)
    assert td["status"]["observedGeneration"] == td["metadata"]["generation"]
    api.calls.clear()
    await scaling(api, scaler)(KEY)
    assert not [call for call in api.calls if call.startswith("scale")]


async def test_same_decision_is_written_back_once_a_minute(make_body: MakeBody, scaling: Scaling) -> None:
    api, scaler = Api(make_body(**INTERNAL)), Decided(4)
    reconcile = scaling(api, scaler)
    await reconcile(KEY)
    td = api.objects["TranslationDeployment"]

    def put_back() -> None:
        td["spec"]["replicas"] = 1
        td["metadata"]["resourceVersion"] = str(int(td["metadata"]["resourceVersion"]) + 1)
        api.calls.clear()

    put_back()
    api.now += REWRITE_EVERY_S - 20
    assert await reconcile(KEY) == 20
    assert "scale 4" not in api.calls
    assert api.objects["Deployment"]["spec"]["replicas"] == 4
    api.now += 20
    await reconcile(KEY)
    assert "scale 4" in api.calls
    # Another decision is written at once.
    scaler.replicas = 5
    await reconcile(KEY)
    assert td["spec"]["replicas"] == 5


async def test_refused_write_of_spec_replicas_is_logged_once_and_the_deployment_follows(
    make_body: MakeBody, scaling: Scaling, caplog: pytest.LogCaptureFixture
) -> None:
    api, scaler = Api(make_body(**INTERNAL)), Decided(4)
    api.refused["scale"] = "denied by policy (403)"
    reconcile = scaling(api, scaler)
    for _ in range(3):
        assert await reconcile(KEY) <= REWRITE_EVERY_S  # type: ignore[operator]
        api.now += REWRITE_EVERY_S
    assert api.calls.count("scale 4") == 3
    assert scaler.acknowledged == []
    assert [record.message for record in caplog.records].count(
        "spec.replicas stays at 2: scale: denied by policy (403)"
    ) == 1
    assert api.objects["Deployment"]["spec"]["replicas"] == 4


async def test_object_that_changed_meanwhile_is_not_overwritten(
    make_body: MakeBody, scaling: Scaling
) -> None:
    api, scaler = Stale(make_body(**INTERNAL)), Decided(4)
    reconcile = scaling(api, scaler)
    api.objects["TranslationDeployment"]["spec"]["replicas"] = 3
    api._numbered(api.objects["TranslationDeployment"])
    with pytest.raises(ConflictError):
        await reconcile(KEY)
    assert api.calls == ["scale 4"]
    assert scaler.acknowledged == []
    api.catch_up()
    await reconcile(KEY)
    assert api.objects["TranslationDeployment"]["spec"]["replicas"] == 4


async def test_own_write_is_used_before_it_is_indexed(make_body: MakeBody, scaling: Scaling) -> None:
    api, scaler = Stale(make_body(**INTERNAL)), Decided(4)
    reconcile = scaling(api, scaler)
    await reconcile(KEY)
    api.calls.clear()
    await reconcile(KEY)
    assert "scale 4" not in api.calls
