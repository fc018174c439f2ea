"""How many pods a ReplicaSet creates, which ones it deletes, and its status."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from dragoman_kube.objects import (
    Manifest,
    annotations_of,
    condition_of,
    created_at,
    is_deleting,
    is_true,
    owner_reference,
    selects,
)
from dragoman_kube.times import parse_time

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASE_ORDER = {"Pending": 0, "Unknown": 1, "Running": 2}


@dataclass(frozen=True)
class ReplicaPlan:
    """What a ReplicaSet does next.

    Args:
        create: Number of pods to create.
        delete: Pods to delete, the least valuable first.
    """

    create: int = 0
    delete: tuple[Manifest, ...] = ()


def is_active(pod: Manifest) -> bool:
    """Whether a pod counts as a replica: it has not ended and is not being deleted."""
    return not is_deleting(pod) and phase_of(pod) not in ("Succeeded", "Failed")


def phase_of(pod: Manifest) -> str:
    """The pod's phase; Pending before the node has reported."""
    return str((pod.get("status") or {}).get("phase") or "Pending")


def plan_replicas(desired: int, pods: Sequence[Manifest], now: datetime) -> ReplicaPlan:
    """Which pods to create or delete.

    Args:
        desired: ``spec.replicas``.
        pods: Every pod that the ReplicaSet controls.
        now: The current time, to compare how long pods have been ready.
    """
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
        _PHASE_ORDER.get(phase_of(pod), 1),
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
    """The status that a ReplicaSet reports.

    Args:
        replica_set: The ReplicaSet.
        pods: Every pod that it controls.
        now: The current time.
    """
    spec = replica_set["spec"]
    active = [pod for pod in pods if is_active(pod)]
    template_labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    labelled = [
        pod
        for pod in active
        if selects({"matchLabels": template_labels}, pod["metadata"].get("labels") or {})
    ]
    min_ready_s = spec.get("minReadySeconds") or 0
    return {
        "replicas": len(active),
        "fullyLabeledReplicas": len(labelled),
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
