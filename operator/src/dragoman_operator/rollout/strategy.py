"""Strategy of the Deployment's rolling update.

Only the scheduler knows whether a suitable GPU is free (labels, taints, quotas and other pods matter). Therefore
`Auto` starts with a surge; if the new pod remains unschedulable, an old pod is terminated first.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from dragoman_kube.kinds import DEPLOYMENT
from dragoman_kube.times import parse_time
from dragoman_operator.api.pods import Rollout
from dragoman_operator.observed.engine_pods import template_hash
from dragoman_operator.observed.snapshot import Manifest, Observed, is_live

UNSCHEDULABLE_TIMEOUT_S = 10.0
"""Time for which a new pod may be unschedulable before an old one is terminated: a terminating pod frees its GPU
within seconds, and a node from a cluster autoscaler takes minutes (`surge: Always` waits for it)."""

SURGE: dict[str, object] = {"maxSurge": 1, "maxUnavailable": 0}
REPLACE: dict[str, object] = {"maxSurge": 0, "maxUnavailable": 1}


def strategy(rollout: Rollout, observed: Observed) -> dict[str, object]:
    """The Deployment's `strategy`.

    Returns:
        `SURGE`, which keeps all replicas ready, or `REPLACE`, with which one may be missing.
    """
    replaces = rollout.surge == "Never" or (rollout.surge == "Auto" and has_no_spare_node(observed))
    return {"type": "RollingUpdate", "rollingUpdate": dict(REPLACE if replaces else SURGE)}


def has_no_spare_node(observed: Observed) -> bool:
    """Whether new pods cannot be scheduled beside the old ones.

    It remains true until the end of the rollout; otherwise each replaced pod would wait again.
    """
    if _over_quota(observed):
        return True
    return _mixed(observed.pods) and (replaces(observed) or unschedulable_time_left_s(observed) == 0)


def unschedulable_time_left_s(observed: Observed) -> float | None:
    """Seconds until an old pod is terminated for an unschedulable one, 0 if that is due; else None."""
    if not _mixed(observed.pods) or replaces(observed):
        return None
    ends = [
        since + timedelta(seconds=UNSCHEDULABLE_TIMEOUT_S) for since in _unschedulable_since(observed.pods)
    ]
    return max(0.0, (min(ends) - observed.now).total_seconds()) if ends else None


def replaces(observed: Observed) -> bool:
    """Whether the Deployment terminates an old pod before it creates a new one."""
    deployment = observed.children.get(DEPLOYMENT) or {}
    update = ((deployment.get("spec") or {}).get("strategy") or {}).get("rollingUpdate") or {}
    return update.get("maxSurge") == 0


def _mixed(pods: Iterable[Manifest]) -> bool:
    return len({template_hash(pod) for pod in filter(is_live, pods)}) > 1


def _unschedulable_since(pods: Iterable[Manifest]) -> list[datetime]:
    """Times since which pods have been unschedulable."""
    return [
        parse_time(condition["lastTransitionTime"])
        for pod in filter(is_live, pods)
        for condition in pod.get("status", {}).get("conditions") or ()
        if (condition["type"], condition["status"]) == ("PodScheduled", "False")
        and condition.get("lastTransitionTime")
    ]


def _over_quota(observed: Observed) -> bool:
    """Whether a ResourceQuota rejects the additional pod."""
    status = (observed.children.get(DEPLOYMENT) or {}).get("status") or {}
    return any(
        (condition["type"], condition["status"]) == ("ReplicaFailure", "True")
        and "exceeded quota" in (condition.get("message") or "")
        for condition in status.get("conditions") or ()
    )
