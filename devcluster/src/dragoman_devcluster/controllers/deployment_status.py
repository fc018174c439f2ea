"""What a Deployment reports: counts and the conditions Available, Progressing and ReplicaFailure.

Source: https://github.com/kubernetes/kubernetes/blob/v1.34.0/pkg/controller/deployment/progress.go
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from dragoman_devcluster.controllers.rollout import (
    available_of,
    current_replica_set,
    desired_of,
    name_of,
    surge_and_unavailable,
)
from dragoman_kube.objects import Manifest, condition_of, created_at, with_transition_time
from dragoman_kube.times import parse_time, timestamp

COMPLETE = "NewReplicaSetAvailable"


def deployment_status(deployment: Manifest, replica_sets: Sequence[Manifest], now: datetime) -> Manifest:
    """The whole status of a Deployment."""
    current = current_replica_set(deployment, replica_sets)
    replicas = _total(replica_sets, "replicas")
    available = sum(map(available_of, replica_sets))
    status: Manifest = {
        "observedGeneration": deployment["metadata"].get("generation", 1),
        "replicas": replicas,
        "updatedReplicas": _total([current] if current else [], "replicas"),
        "readyReplicas": _total(replica_sets, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, sum(map(desired_of, replica_sets)) - available),
    }
    found = [
        _available(deployment, available),
        _progressing(deployment, current, status, now),
        _replica_failure(current),
    ]
    status["conditions"] = [_dated(deployment, condition, now) for condition in found if condition]
    return status


def is_complete(deployment: Manifest, status: Manifest) -> bool:
    """Whether every desired replica is of the current template and available, and no other is left."""
    desired = desired_of(deployment)
    return all(status[count] == desired for count in ("updatedReplicas", "replicas", "availableReplicas"))


def deadline_in_s(deployment: Manifest, status: Manifest, now: datetime) -> float | None:
    """Seconds until a rollout without progress misses its deadline; None where none is running."""
    progressing = condition_of({"status": status}, "Progressing")
    limit_s = deployment["spec"].get("progressDeadlineSeconds") or 600
    if progressing is None or progressing["status"] != "True" or progressing["reason"] == COMPLETE:
        return None
    due = parse_time(progressing["lastUpdateTime"]) + timedelta(seconds=limit_s)
    return max(0.0, (due - now).total_seconds())


def _total(replica_sets: Sequence[Manifest], count: str) -> int:
    return sum(int((item.get("status") or {}).get(count) or 0) for item in replica_sets)


def _available(deployment: Manifest, available: int) -> Manifest:
    desired = desired_of(deployment)
    enough = available >= desired - surge_and_unavailable(deployment)[1]
    return {
        "type": "Available",
        "status": "True" if enough else "False",
        "reason": "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
        "message": f"Deployment {'has' if enough else 'does not have'} minimum availability.",
    }


def _progressing(deployment: Manifest, current: Manifest | None, status: Manifest, now: datetime) -> Manifest:
    before = condition_of(deployment, "Progressing")
    subject = f'ReplicaSet "{name_of(current)}"' if current else f'Deployment "{name_of(deployment)}"'
    rested = before is not None and before["reason"] == COMPLETE
    if before is not None and rested and status["replicas"] == status["updatedReplicas"]:
        return before
    if is_complete(deployment, status):
        return _condition("True", COMPLETE, f"{subject} has successfully progressed.", now)
    if (
        before is None
        or rested
        or _has_progressed(deployment, current, status, parse_time(before["lastUpdateTime"]))
    ):
        return _condition("True", "ReplicaSetUpdated", f"{subject} is progressing.", now)
    if before["status"] != "False" and deadline_in_s(deployment, {"conditions": [before]}, now) == 0.0:
        return _condition("False", "ProgressDeadlineExceeded", f"{subject} has timed out progressing.", now)
    return before


def _has_progressed(
    deployment: Manifest, current: Manifest | None, status: Manifest, since: datetime
) -> bool:
    before = deployment.get("status") or {}
    if current is not None and created_at(current) > since:
        return True
    if any(
        status[count] > (before.get(count) or 0)
        for count in ("updatedReplicas", "readyReplicas", "availableReplicas")
    ):
        return True
    old_before = (before.get("replicas") or 0) - (before.get("updatedReplicas") or 0)
    return bool(status["replicas"] - status["updatedReplicas"] < old_before)


def _replica_failure(current: Manifest | None) -> Manifest | None:
    failure = condition_of(current, "ReplicaFailure") if current else None
    return failure and {name: failure[name] for name in ("type", "status", "reason", "message")}


def _condition(status: str, reason: str, message: str, now: datetime) -> Manifest:
    return {
        "type": "Progressing",
        "status": status,
        "reason": reason,
        "message": message,
        "lastUpdateTime": timestamp(now),
    }


def _dated(deployment: Manifest, condition: Manifest, now: datetime) -> Manifest:
    before = condition_of(deployment, condition["type"])
    same = before is not None and all(
        before.get(name) == condition[name] for name in ("status", "reason", "message")
    )
    if before is not None and same and condition["type"] != "Progressing":
        return before
    return with_transition_time(deployment, {"lastUpdateTime": timestamp(now), **condition}, now)
