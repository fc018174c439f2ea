"""The conditions Available, Progressing and Degraded, and the progress of a rollout."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from dragoman_kube.kinds import DEPLOYMENT
from dragoman_kube.objects import is_true
from dragoman_operator.api.status import ConditionValue
from dragoman_operator.observed.diagnosis import Finding
from dragoman_operator.observed.snapshot import Manifest, Observed, is_live
from dragoman_operator.resources.plan import Plan

_progressing = partial(ConditionValue, "Progressing")
_degraded = partial(ConditionValue, "Degraded")
_available = partial(ConditionValue, "Available")


def available(found: Progress) -> ConditionValue:
    """Available: at least one pod is ready."""
    if found.ready:
        return _available(True, "Ready", f"{found.ready} of {found.desired} replicas are ready")
    if found.desired == 0:
        return _available(False, "ScaledToZero", "there are no replicas; scale up to serve requests")
    return _available(False, "NoReadyReplicas", f"0 of {found.desired} replicas are ready")


def progressing(
    found: Progress, plan: Plan, findings: list[Finding], trial_size: int | None = None
) -> ConditionValue:
    """Progressing: pods are being started, replaced or removed."""
    if any(finding.reason == "ProgressDeadlineExceeded" for finding in findings):
        return _progressing(
            False, "ProgressDeadlineExceeded", f"the rollout stopped with {found.ready} replicas ready"
        )
    if plan.waiting:
        return _progressing(True, "Waiting", "; ".join(plan.waiting))
    if found.complete:
        return _progressing(False, "Complete", f"all {found.desired} replicas run the current spec")
    if not found.applied:
        return _progressing(True, "Applying", "the spec is being written to the Deployment")
    if trial_size is not None and 0 < found.updated < found.pods:
        message = (
            f"{found.updated} of {found.pods} replicas run the trial with maxNumSeqs {trial_size}; the others are "
            "unchanged until it is evaluated"
        )
        return _progressing(True, "TuningTrial", message)
    if found.pods > found.desired:
        reason, surplus = "Replacing", found.pods - found.desired
        if found.updated == found.pods:
            reason = "ScalingDown"
        return _progressing(True, reason, f"{surplus} surplus replicas are terminating")
    if found.updated < found.pods:
        return _progressing(
            True, "Replacing", f"{found.updated} of {found.desired} replicas run the current spec"
        )
    return _progressing(
        True, "Starting", f"{found.ready} of {found.desired} replicas are ready, others start"
    )


def degraded(
    plan: Plan, findings: list[Finding], refusals: tuple[str, ...] = (), deprecated: tuple[str, ...] = ()
) -> ConditionValue:
    """Degraded: manual action is needed."""
    if refusals:
        return _degraded(True, "ApplyFailed", "; ".join(refusals))
    if plan.obstacles:
        return _degraded(True, "NameConflict", "; ".join(plan.obstacles))
    if plan.kept:
        problem = (
            f"the new version failed and was rolled back: {plan.kept.reason}; change the spec to try again"
        )
        return _degraded(True, "RolledBack", problem)
    if findings:
        return _degraded(True, findings[0].reason, "; ".join(f.message for f in findings))
    return _degraded(False, "AsExpected", "; ".join(("nothing needs attention", *deprecated)))


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
    """Count pods."""
    deployment: Manifest = observed.children.get(DEPLOYMENT) or {}
    status: dict[str, Any] = deployment.get("status") or {}
    seen = status.get("observedGeneration", 0) >= deployment.get("metadata", {}).get("generation", 1)
    alive = list(filter(is_live, observed.pods))
    return Progress(
        desired=desired,
        pods=len(alive),
        ready=sum(is_true(pod, "Ready") for pod in alive),
        updated=status.get("updatedReplicas", 0),
        applied=applied and bool(deployment) and seen,
    )
