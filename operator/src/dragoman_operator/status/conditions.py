"""The conditions Available, Progressing and Degraded, each with a reason and a sentence a person can act on."""

from __future__ import annotations

from dragoman_operator.api.status import ConditionValue
from dragoman_operator.observed.diagnosis import Finding
from dragoman_operator.resources.plan import Plan
from dragoman_operator.status.progress import Progress


def available(found: Progress) -> ConditionValue:
    """Whether requests are answered: at least one pod is ready."""
    if found.ready:
        return ConditionValue(
            "Available", True, "Ready", f"{found.ready} of {found.desired} replicas are ready"
        )
    if found.desired == 0:
        return ConditionValue(
            "Available", False, "ScaledToZero", "there are no replicas; scale up to serve requests"
        )
    return ConditionValue("Available", False, "NoReadyReplicas", f"0 of {found.desired} replicas are ready")


def progressing(
    found: Progress, plan: Plan, findings: list[Finding], tried: int | None = None
) -> ConditionValue:
    """Whether pods are being started, replaced or removed.

    Args:
        found: How far the pods have come.
        plan: What is being changed.
        findings: What keeps pods from serving.
        tried: The maxNumSeqs that one replica tries while the others stay; None where none does.
    """
    if any(finding.reason == "RolloutStalled" for finding in findings):
        return ConditionValue(
            "Progressing", False, "Stalled", f"the rollout stopped with {found.ready} replicas ready"
        )
    if plan.waiting:
        return ConditionValue("Progressing", True, "Waiting", "; ".join(plan.waiting))
    if found.complete:
        return ConditionValue(
            "Progressing", False, "Complete", f"all {found.desired} replicas run the current spec"
        )
    if not found.settled:
        return ConditionValue("Progressing", True, "Applying", "the spec is being written to the Deployment")
    if tried is not None and 0 < found.updated < found.pods:
        message = f"{found.updated} of {found.pods} replicas try maxNumSeqs {tried}, the others wait for the verdict"
        return ConditionValue("Progressing", True, "Trying", message)
    if found.pods > found.desired:
        reason, surplus = "Replacing", found.pods - found.desired
        if found.updated == found.pods:
            reason = "ScalingDown"
        return ConditionValue(
            "Progressing", True, reason, f"{surplus} replicas more than desired have yet to leave"
        )
    if found.updated < found.pods:
        return ConditionValue(
            "Progressing",
            True,
            "Replacing",
            f"{found.updated} of {found.desired} replicas run the current spec",
        )
    return ConditionValue(
        "Progressing", True, "Starting", f"{found.ready} of {found.desired} replicas are ready, others start"
    )


def degraded(plan: Plan, findings: list[Finding], refusals: tuple[str, ...] = ()) -> ConditionValue:
    """Whether something needs a person."""
    if refusals:
        return ConditionValue("Degraded", True, "ApplyRefused", "; ".join(refusals))
    if plan.obstacles:
        return ConditionValue("Degraded", True, "NameTaken", "; ".join(plan.obstacles))
    if plan.kept:
        problem = f"the new version failed and the former one is back: {plan.kept.reason}; change the spec to try again"
        return ConditionValue("Degraded", True, "RolledBack", problem)
    if findings:
        return ConditionValue("Degraded", True, findings[0].reason, "; ".join(f.message for f in findings))
    return ConditionValue("Degraded", False, "AsExpected", "nothing needs attention")
