"""ReplicaSets: creates and deletes pods until there are as many as desired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from dragoman_devcluster.controllers.controller import enqueue_owner, work_queue
from dragoman_devcluster.controllers.rollout import desired_of, name_of
from dragoman_kube.errors import ClusterError, UnavailableError
from dragoman_kube.events import EventRecorder, EventWriter
from dragoman_kube.kinds import POD, REPLICA_SET
from dragoman_kube.mirror import Mirror
from dragoman_kube.objects import (
    Key,
    Manifest,
    annotations_of,
    condition_of,
    created_at,
    differs,
    has_ended,
    is_deleting,
    is_true,
    key_of,
    owner_reference,
    uid_of,
    with_transition_time,
)
from dragoman_kube.times import parse_time

CREATE_RETRY_S = 5.0


class ReplicaSetController:
    """Keeps every ReplicaSet's pods at their number."""

    def __init__(self, mirror: Mirror, events: EventWriter) -> None:
        self._mirror = mirror
        self._events = EventRecorder(events, "replicaset-controller")
        self.queue = work_queue("replicaset")

    def start(self) -> None:
        """Follow the kinds that concern ReplicaSets."""
        self._mirror.follow(REPLICA_SET, lambda _, new: self.queue.add(key_of(new)) if new else None)
        self._mirror.follow(POD, enqueue_owner(self.queue, REPLICA_SET))

    async def reconcile(self, key: Key) -> float | None:
        """Create or delete pods of one ReplicaSet, and report its status."""
        replica_set = self._mirror.get(REPLICA_SET, key)
        if replica_set is None or is_deleting(replica_set):
            return None
        plan = plan_replicas(desired_of(replica_set), self._pods(replica_set), datetime.now(UTC))
        for pod in plan.delete:
            await self._mirror.delete(POD, pod)
            self._events.record(replica_set, "SuccessfulDelete", f"Deleted pod: {name_of(pod)}")
        failure: ClusterError | None = None
        try:
            for _ in range(plan.create):
                pod = await self._mirror.create(POD, new_pod(replica_set))
                self._events.record(replica_set, "SuccessfulCreate", f"Created pod: {name_of(pod)}")
        except UnavailableError:
            raise
        except ClusterError as error:
            failure = error
            self._events.record(replica_set, "FailedCreate", f"Error creating: {error}", warning=True)
        return await self._report(replica_set, failure)

    async def _report(self, replica_set: Manifest, failure: ClusterError | None) -> float | None:
        key = key_of(replica_set)
        latest = self._mirror.get(REPLICA_SET, key)
        if latest is None:
            return None
        now = datetime.now(UTC)
        pods = self._pods(latest)
        status = replica_set_status(latest, pods, now)
        status["conditions"] = _conditions(latest, failure, now)
        if differs(latest, status):
            await self._mirror.merge(REPLICA_SET, key, {"status": status}, "status")
        if failure is not None:
            return CREATE_RETRY_S
        min_ready_s = latest["spec"].get("minReadySeconds") or 0
        due = [available_in_s(pod, min_ready_s, now) for pod in pods if is_active(pod)]
        return min((seconds for seconds in due if seconds), default=None)

    def _pods(self, replica_set: Manifest) -> list[Manifest]:
        return list(self._mirror.controlled(POD, key_of(replica_set).namespace, [uid_of(replica_set)]))


def _conditions(replica_set: Manifest, failure: ClusterError | None, now: datetime) -> list[Manifest]:
    if failure is None:
        return []
    condition = {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": "FailedCreate",
        "message": failure.reason,
    }
    return [with_transition_time(replica_set, condition, now)]


DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASE_ORDER = {"Pending": 0, "Unknown": 1, "Running": 2}


@dataclass(frozen=True)
class ReplicaPlan:
    """What a ReplicaSet does next."""

    create: int = 0
    delete: tuple[Manifest, ...] = ()


def is_active(pod: Manifest) -> bool:
    """Whether a pod counts as a replica: it has not ended and is not being deleted."""
    return not is_deleting(pod) and not has_ended(pod)


def plan_replicas(desired: int, pods: Sequence[Manifest], now: datetime) -> ReplicaPlan:
    """Which pods to create or delete."""
    active = [pod for pod in pods if is_active(pod)]
    if len(active) < desired:
        return ReplicaPlan(create=desired - len(active))
    ranked = sorted(active, key=lambda pod: deletion_rank(pod, now))
    return ReplicaPlan(delete=tuple(ranked[: len(active) - desired]))


def deletion_rank(pod: Manifest, now: datetime) -> tuple[float, ...]:
    """Sorts pods so that the ones to delete first come first.

    Unscheduled before scheduled, pending before running, unready before ready, then the cheaper by
    ``controller.kubernetes.io/pod-deletion-cost``, then the more recently ready, the more often restarted,
    the newer.

    Source: ActivePodsWithRanks in https://github.com/kubernetes/kubernetes/blob/v1.34.0/pkg/controller/controller_utils.go
    """
    ready = condition_of(pod, "Ready")
    is_ready = ready is not None and ready["status"] == "True"
    ready_for_s = (
        (now - parse_time(ready["lastTransitionTime"])).total_seconds() if ready and is_ready else 0.0
    )
    containers = (pod.get("status") or {}).get("containerStatuses") or ()
    return (
        1 if pod["spec"].get("nodeName") else 0,
        _PHASE_ORDER.get((pod.get("status") or {}).get("phase") or "Pending", 1),
        1 if is_ready else 0,
        deletion_cost(pod),
        ready_for_s,
        -max((status.get("restartCount", 0) for status in containers), default=0),
        -created_at(pod).timestamp(),
    )


def deletion_cost(pod: Manifest) -> int:
    """The pod's deletion cost; 0 where the annotation is missing or not a number."""
    try:
        return int(annotations_of(pod).get(DELETION_COST, "0"))
    except ValueError:
        return 0


def available_in_s(pod: Manifest, min_ready_s: int, now: datetime) -> float | None:
    """Seconds until the pod counts as available: 0 if it does, None while it is not ready."""
    ready = condition_of(pod, "Ready")
    if is_deleting(pod) or ready is None or ready["status"] != "True":
        return None
    if not min_ready_s:
        return 0.0
    due = parse_time(ready["lastTransitionTime"]) + timedelta(seconds=min_ready_s)
    return max(0.0, (due - now).total_seconds())


def replica_set_status(replica_set: Manifest, pods: Sequence[Manifest], now: datetime) -> Manifest:
    """The status that a ReplicaSet reports."""
    active = [pod for pod in pods if is_active(pod)]
    min_ready_s = replica_set["spec"].get("minReadySeconds") or 0
    return {
        "replicas": len(active),
        "readyReplicas": sum(is_true(pod, "Ready") for pod in active),
        "availableReplicas": sum(available_in_s(pod, min_ready_s, now) == 0.0 for pod in active),
        "observedGeneration": replica_set["metadata"].get("generation", 1),
    }


def new_pod(replica_set: Manifest) -> Manifest:
    """The pod that a ReplicaSet creates from its template; the API makes up the end of its name."""
    template = replica_set["spec"]["template"]
    metadata = template.get("metadata") or {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": replica_set["metadata"]["name"] + "-",
            "namespace": replica_set["metadata"]["namespace"],
            "labels": dict(metadata.get("labels") or {}),
            "annotations": dict(metadata.get("annotations") or {}),
            "ownerReferences": [owner_reference(replica_set)],
        },
        "spec": template["spec"],
    }
