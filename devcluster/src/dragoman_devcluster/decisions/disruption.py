"""How many disruptions a PodDisruptionBudget allows at once.

Source: https://github.com/kubernetes/kubernetes/blob/v1.34.0/pkg/controller/disruption/disruption.go
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from dragoman_kube.objects import Manifest, condition_of, controller_of, is_deleting, is_true
from dragoman_kube.times import parse_time, timestamp

Scale = tuple[str, int]
"""The uid of the object that is scaled (the Deployment above a ReplicaSet) and its desired replicas."""

EVICTION_LASTS_S = 120
"""How long an eviction that the API has granted is waited for before it counts as failed."""


def disruption_status(
    budget: Manifest, pods: Sequence[Manifest], scales: Mapping[str, Scale], now: datetime
) -> Manifest:
    """The status of a PodDisruptionBudget.

    Args:
        budget: The PodDisruptionBudget.
        pods: The pods that it selects.
        scales: What decides on the number of pods of a controller, by the controller's uid.
        now: The current time.
    """
    expected = expected_pods(budget, pods, scales)
    desired = desired_healthy(budget["spec"], expected)
    granted = _granted_evictions(budget, pods, now)
    healthy = sum(
        is_true(pod, "Ready") and not is_deleting(pod) and pod["metadata"]["name"] not in granted
        for pod in pods
    )
    allowed = max(0, healthy - desired) if expected else 0
    status = {
        "observedGeneration": budget["metadata"].get("generation", 1),
        "expectedPods": expected,
        "desiredHealthy": desired,
        "currentHealthy": healthy,
        "disruptionsAllowed": allowed,
        "disruptedPods": granted,
    }
    return {**status, "conditions": [_condition(budget, allowed, now)]}


def expected_pods(budget: Manifest, pods: Sequence[Manifest], scales: Mapping[str, Scale]) -> int:
    """How many pods there should be: as many as selected for an absolute minAvailable, else by the scales."""
    spec = budget["spec"]
    minimum = spec.get("minAvailable")
    if spec.get("maxUnavailable") is None and not isinstance(minimum, str):
        return len(pods)
    owners = {reference["uid"] for pod in pods if (reference := controller_of(pod))}
    without = sum(controller_of(pod) is None for pod in pods)
    return without + sum(dict(scales[uid] for uid in owners if uid in scales).values())


def desired_healthy(spec: Manifest, expected: int) -> int:
    """How many healthy pods the budget wants; percentages are rounded up."""
    if (most := spec.get("maxUnavailable")) is not None:
        return max(0, expected - _scaled(most, expected))
    return _scaled(spec.get("minAvailable", 1), expected)


def _scaled(value: int | str, total: int) -> int:
    if isinstance(value, str) and value.endswith("%"):
        return math.ceil(int(value[:-1]) * total / 100)
    return int(value)


def _granted_evictions(budget: Manifest, pods: Sequence[Manifest], now: datetime) -> dict[str, str]:
    granted = (budget.get("status") or {}).get("disruptedPods") or {}
    present = {pod["metadata"]["name"] for pod in pods if not is_deleting(pod)}
    lasts = timedelta(seconds=EVICTION_LASTS_S)
    return {name: at for name, at in granted.items() if name in present and parse_time(at) + lasts > now}


def _condition(budget: Manifest, allowed: int, now: datetime) -> Manifest:
    status = "True" if allowed else "False"
    before = condition_of(budget, "DisruptionAllowed")
    same = before is not None and before["status"] == status
    return {
        "type": "DisruptionAllowed",
        "status": status,
        "reason": "SufficientPods" if allowed else "InsufficientPods",
        "message": "",
        "lastTransitionTime": before["lastTransitionTime"] if before and same else timestamp(now),
        "observedGeneration": budget["metadata"].get("generation", 1),
    }
