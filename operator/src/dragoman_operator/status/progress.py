"""Progress of a rollout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dragoman_kube.kinds import DEPLOYMENT
from dragoman_operator.observed.snapshot import Manifest, Observed


@dataclass(frozen=True)
class Progress:
    """Numbers of pods, without those that are being deleted and those that have ended, such as evicted ones."""

    desired: int
    pods: int
    ready: int
    updated: int
    """Pods of the latest template."""
    applied: bool
    """Whether the Deployment is in sync and its controller has observed it."""

    @property
    def complete(self) -> bool:
        """Whether exactly the desired pods exist, all up to date and ready."""
        return self.applied and self.pods == self.ready == self.updated == self.desired


def progress_of(observed: Observed, desired: int, *, applied: bool) -> Progress:
    """Count pods.

    Args:
        observed: The snapshot.
        desired: Desired number of pods.
        applied: Whether nothing remains to be written.
    """
    deployment: Manifest = observed.children.get(DEPLOYMENT) or {}
    status: dict[str, Any] = deployment.get("status") or {}
    seen = status.get("observedGeneration", 0) >= deployment.get("metadata", {}).get("generation", 1)
    alive = [pod for pod in observed.pods if "deletionTimestamp" not in pod["metadata"] and not _ended(pod)]
    return Progress(
        desired=desired,
        pods=len(alive),
        ready=sum(map(is_ready, alive)),
        updated=status.get("updatedReplicas", 0),
        applied=applied and bool(deployment) and seen,
    )


def is_ready(pod: Manifest) -> bool:
    """Whether the pod's readiness probe passes."""
    conditions = pod.get("status", {}).get("conditions") or ()
    return any((item.get("type"), item.get("status")) == ("Ready", "True") for item in conditions)


def _ended(pod: Manifest) -> bool:
    return pod.get("status", {}).get("phase") in ("Failed", "Succeeded")
