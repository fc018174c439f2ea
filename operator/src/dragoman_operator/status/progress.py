"""Pods by their state, as the status counts them: the same for valid and invalid specs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dragoman_kube.kinds import DEPLOYMENT
from dragoman_kube.objects import is_true
from dragoman_operator.observed.diagnosis import Finding, diagnose
from dragoman_operator.observed.snapshot import Manifest, Observed, is_live


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
    """Count pods; `applied` tells whether the Deployment needs no change."""
    deployment: Manifest = observed.children.get(DEPLOYMENT) or {}
    status: dict[str, Any] = deployment.get("status") or {}
    seen = status.get("observedGeneration", 0) >= deployment.get("metadata", {}).get("generation", 1)
    alive = list(filter(is_live, observed.pods))
    return Progress(
        desired=desired,
        # The Deployment's status can count a pod that is not read yet.
        pods=max(len(alive), status.get("replicas", 0)),
        ready=sum(is_true(pod, "Ready") for pod in alive),
        updated=status.get("updatedReplicas", 0),
        applied=applied and bool(deployment) and seen,
    )


def failures_of(observed: Observed, found: Progress, *, node_expected: bool) -> list[Finding]:
    """Why pods do not start; none once the rollout is complete, because evicted pods stay for days.

    `node_expected` tells that pods without a node are about to get one.
    """
    if found.complete:
        return []
    findings = diagnose(observed.children.get(DEPLOYMENT), observed.pods, observed.mount_failures)
    return [each for each in findings if not (node_expected and each.reason == "Unschedulable")]


def download_of(observed: Observed) -> str:
    """The progress of the first pod that downloads the model, before pods that wait for it; empty without one."""
    uids = (pod["metadata"].get("uid", "") for pod in observed.pods if is_live(pod))
    found = [observed.downloads[uid] for uid in uids if uid in observed.downloads]
    found.sort(key=lambda download: download.ratio is None)
    return found[0].sentence if found else ""
