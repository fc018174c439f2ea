"""How pods are replaced: the Deployment's rolling update, by the room there is for one pod more.

Whether a GPU of the right kind is free is known to the scheduler alone (labels, taints, quotas and other
people's pods all have a say), so `Auto` asks it: the rollout surges, and where the new pod finds no node it goes
on by letting one old pod go first.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from dragoman_operator.api.pods import Rollout
from dragoman_operator.observed.snapshot import DEPLOYMENT, Manifest, Observed

PATIENCE_S = 10.0
"""How long a new pod may look for a node before an old one makes way: a pod that is just leaving frees its
GPU within the drain's seconds, and a node that a cluster autoscaler would add takes minutes (`surge: Always` waits
for it)."""

TEMPLATE_HASH = "pod-template-hash"
"""Label that tells pods of one template from those of another.
Source: https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#pod-template-hash-label"""

SURGE: dict[str, object] = {"maxSurge": 1, "maxUnavailable": 0}
REPLACE: dict[str, object] = {"maxSurge": 0, "maxUnavailable": 1}


def strategy(rollout: Rollout, observed: Observed) -> dict[str, object]:
    """The Deployment's `strategy`.

    Args:
        rollout: What the spec wants.
        observed: What runs: `Auto` decides by it.

    Returns:
        `SURGE`, which keeps all replicas serving, or `REPLACE`, under which one may lack; of two replicas or
        more one is always ready.
    """
    replaces = rollout.surge == "Never" or (rollout.surge == "Auto" and lacks_room(observed))
    return {"type": "RollingUpdate", "rollingUpdate": dict(REPLACE if replaces else SURGE)}


def lacks_room(observed: Observed) -> bool:
    """Whether the pods of a new template find no place beside the old ones.

    Once found out it holds until the rollout is over: or else each replaced pod would be waited for anew.
    """
    if _over_quota(observed):
        return True
    return _mixed(observed.pods) and (replaces(observed) or patience_left_s(observed) == 0)


def patience_left_s(observed: Observed) -> float | None:
    """Seconds until an old pod makes way for a new one that found no node, 0 if it is time; else None."""
    if not _mixed(observed.pods) or replaces(observed):
        return None
    ends = [since + timedelta(seconds=PATIENCE_S) for since in _placeless(observed.pods)]
    return max(0.0, (min(ends) - observed.now).total_seconds()) if ends else None


def replaces(observed: Observed) -> bool:
    """Whether the Deployment lets an old pod go before the new one is there."""
    deployment = observed.children.get(DEPLOYMENT) or {}
    update = ((deployment.get("spec") or {}).get("strategy") or {}).get("rollingUpdate") or {}
    return update.get("maxSurge") == 0


def template_hash(labelled: Manifest) -> str:
    """Which template a pod or ReplicaSet is of."""
    return str((labelled["metadata"].get("labels") or {}).get(TEMPLATE_HASH, ""))


def _live(pods: Iterable[Manifest]) -> list[Manifest]:
    ended = ("Failed", "Succeeded")
    return [
        pod
        for pod in pods
        if "deletionTimestamp" not in pod["metadata"] and pod.get("status", {}).get("phase") not in ended
    ]


def _mixed(pods: Iterable[Manifest]) -> bool:
    return len({template_hash(pod) for pod in _live(pods)}) > 1


def _placeless(pods: Iterable[Manifest]) -> list[datetime]:
    """Since when pods have been looking for a node."""
    return [
        datetime.fromisoformat(condition["lastTransitionTime"])
        for pod in _live(pods)
        for condition in pod.get("status", {}).get("conditions") or ()
        if (condition["type"], condition["status"]) == ("PodScheduled", "False")
        and condition.get("lastTransitionTime")
    ]


def _over_quota(observed: Observed) -> bool:
    """Whether a ResourceQuota refuses the pod that would come on top."""
    status = (observed.children.get(DEPLOYMENT) or {}).get("status") or {}
    return any(
        (condition["type"], condition["status"]) == ("ReplicaFailure", "True")
        and "exceeded quota" in (condition.get("message") or "")
        for condition in status.get("conditions") or ()
    )
