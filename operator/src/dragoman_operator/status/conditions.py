"""The conditions, each drawn from what was found, with a reason and a sentence a person can act on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from dragoman_operator.api.status import REASON_PATTERN, ConditionType
from dragoman_operator.api.v1alpha1 import TranslationDeploymentSpec
from dragoman_operator.observed.diagnosis import Finding
from dragoman_operator.observed.snapshot import HPA, SCALED_OBJECT, Manifest, Observed
from dragoman_operator.resources.plan import Plan
from dragoman_operator.status.progress import Progress

REASON = re.compile(f"(?=.{{1,256}}$){REASON_PATTERN}")


class Verdict(NamedTuple):
    """A condition before it is stamped with times."""

    type: ConditionType
    holds: bool
    reason: str
    message: str


def available(found: Progress) -> Verdict:
    """Whether requests are answered: at least one pod is ready."""
    if found.ready:
        return Verdict("Available", True, "Ready", f"{found.ready} of {found.desired} replicas are ready")
    if found.desired == 0:
        return Verdict(
            "Available", False, "ScaledToZero", "there are no replicas; scale up to serve requests"
        )
    return Verdict("Available", False, "NoReadyReplicas", f"0 of {found.desired} replicas are ready")


def progressing(found: Progress, plan: Plan, findings: list[Finding], tried: int | None = None) -> Verdict:
    """Whether pods are being started, replaced or removed.

    Args:
        found: How far the pods have come.
        plan: What is being changed.
        findings: What keeps pods from serving.
        tried: The maxNumSeqs that one replica tries while the others stay; None where none does.
    """
    if any(finding.reason == "RolloutStalled" for finding in findings):
        return Verdict(
            "Progressing", False, "Stalled", f"the rollout stopped with {found.ready} replicas ready"
        )
    if plan.waiting:
        return Verdict("Progressing", True, "Waiting", "; ".join(plan.waiting))
    if found.complete:
        return Verdict("Progressing", False, "Complete", f"all {found.desired} replicas run the current spec")
    if not found.settled:
        return Verdict("Progressing", True, "Applying", "the spec is being written to the Deployment")
    if tried is not None and 0 < found.updated < found.pods:
        message = f"{found.updated} of {found.pods} replicas try maxNumSeqs {tried}, the others wait for the verdict"
        return Verdict("Progressing", True, "Trying", message)
    if found.pods > found.desired:
        reason, surplus = "Replacing", found.pods - found.desired
        if found.updated == found.pods:
            reason = "ScalingDown"
        return Verdict("Progressing", True, reason, f"{surplus} replicas more than desired have yet to leave")
    if found.updated < found.pods:
        return Verdict(
            "Progressing",
            True,
            "Replacing",
            f"{found.updated} of {found.desired} replicas run the current spec",
        )
    return Verdict(
        "Progressing", True, "Starting", f"{found.ready} of {found.desired} replicas are ready, others start"
    )


def degraded(plan: Plan, findings: list[Finding], refusals: tuple[str, ...] = ()) -> Verdict:
    """Whether something needs a person."""
    if refusals:
        return Verdict("Degraded", True, "ApplyRefused", "; ".join(refusals))
    if plan.obstacles:
        return Verdict("Degraded", True, "NameTaken", "; ".join(plan.obstacles))
    if plan.kept:
        problem = f"the new version failed and the former one is back: {plan.kept.reason}; change the spec to try again"
        return Verdict("Degraded", True, "RolledBack", problem)
    if findings:
        return Verdict("Degraded", True, findings[0].reason, "; ".join(f.message for f in findings))
    return Verdict("Degraded", False, "AsExpected", "nothing needs attention")


def scaling_active(spec: TranslationDeploymentSpec, observed: Observed) -> list[Verdict]:
    """Whether the number of replicas follows the load, where the spec asks for it."""
    mode = "Off" if spec.autoscaling is None else spec.autoscaling.mode
    match mode:
        case "Internal":
            reason = observed.scaled.reason if observed.scaled else "the first look is due"
            return [Verdict("ScalingActive", True, "LoadFollowed", reason)]
        case "External":
            return [Verdict("ScalingActive", True, mode, "spec.replicas is followed as others write it")]
        case "HPA":
            return [_delegated(mode, observed.children.get(HPA), "ScalingActive")]
        case "KEDA" if not observed.keda:
            problem = (
                "the cluster does not know KEDA's ScaledObject, or the operator may not make one: install KEDA, "
                "and the chart with keda.enabled=true, or choose another mode"
            )
            return [Verdict("ScalingActive", False, "KedaMissing", problem)]
        case "KEDA" if SCALED_OBJECT not in observed.children:
            problem = (
                "the ScaledObject is being made; it needs autoscaling.prometheus.url, or the operator's own "
                "Prometheus (--prometheus-url)"
            )
            return [Verdict("ScalingActive", False, "ScaledObjectPending", problem)]
        case "KEDA":
            return [_delegated(mode, observed.children[SCALED_OBJECT], "Ready")]
    return []


def _delegated(mode: str, autoscaler: Manifest | None, condition: str) -> Verdict:
    """What another autoscaler says of itself."""
    status = (autoscaler or {}).get("status") or {}
    for said in status.get("conditions") or ():
        if isinstance(said, Mapping) and said.get("type") == condition:
            reason = f"{mode}{said.get('reason') or ''}"
            if not REASON.fullmatch(reason):
                reason = f"{mode}NotReported"
            return Verdict("ScalingActive", said.get("status") == "True", reason, said.get("message") or "")
    return Verdict("ScalingActive", False, f"{mode}Pending", f"the {mode} has not reported yet")


def metrics_available(observed: Observed) -> list[Verdict]:
    """Whether there are figures to decide by, where our autoscaler decides and has looked."""
    seen = observed.scaled.metrics if observed.scaled else None
    return [] if seen is None else [Verdict("MetricsAvailable", seen.available, seen.reason, seen.message)]
