"""Pods by their state, as the status counts them: the same for valid and invalid specs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dragoman_kube.kinds import DEPLOYMENT
from dragoman_kube.objects import is_true
from dragoman_operator.observed.containers import Finding
from dragoman_operator.observed.diagnosis import diagnose, is_past
from dragoman_operator.observed.snapshot import Manifest, Observed, is_live, template_hash


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
    replacing: bool = False
    """Whether pods of a former template are left."""

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
    # The Deployment's status can count a pod that is not read yet.
    pods = max(len(alive), status.get("replicas", 0))
    ready = sum(is_true(pod, "Ready") for pod in alive)
    updated = status.get("updatedReplicas", 0)
    # And a pod can be read that it does not count yet: in a scale-up that is no former one.
    lags = pods <= desired and updated >= ready
    is_mixed = len({template_hash(pod) for pod in alive}) > 1
    return Progress(
        desired=desired,
        pods=pods,
        ready=ready,
        updated=updated,
        applied=applied and bool(deployment) and seen,
        replacing=is_mixed or (updated < status.get("replicas", pods) and not lags),
    )


def failures_of(observed: Observed, found: Progress, *, node_expected: bool) -> list[Finding]:
    """Why pods do not start; none once the rollout is complete.

    `node_expected` tells that pods without a node are about to get one.
    """
    if found.complete:
        return []
    pods = [
        pod
        for pod in observed.pods
        if not (is_past(pod, observed.pods, found.desired, observed.now) or _gets_node(pod, observed))
    ]
    findings = diagnose(observed.children.get(DEPLOYMENT), pods, observed.mount_failures)
    return [each for each in findings if not (node_expected and each.reason == "Unschedulable")]


def _gets_node(pod: Manifest, observed: Observed) -> bool:
    """Whether the pod has no node, and a cluster autoscaler adds one."""
    return pod["metadata"].get("uid") in observed.provisioned and not (pod.get("spec") or {}).get("nodeName")


def details_of(observed: Observed) -> str:
    """What pods wait for: the model, or a node of a cluster autoscaler; empty if for neither."""
    nodes = any(_gets_node(pod, observed) for pod in observed.pods if is_live(pod))
    return download_of(observed) or ("a cluster autoscaler adds a node" if nodes else "")


def download_of(observed: Observed) -> str:
    """The progress of the first pod that downloads the model, before pods that wait for it; empty without one."""
    uids = (pod["metadata"].get("uid", "") for pod in observed.pods if is_live(pod))
    found = [observed.downloads[uid] for uid in uids if uid in observed.downloads]
    found.sort(key=lambda download: download.ratio is None)
    return found[0].sentence if found else ""
