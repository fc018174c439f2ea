"""The conditions of a TranslationDeployment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from dragoman_contract.models import licence_limit
from dragoman_kube.kinds import HPA, SCALED_OBJECT
from dragoman_kube.times import timestamp
from dragoman_operator.api.languages import unknown_tags
from dragoman_operator.api.status import REASON_PATTERN, Condition, ConditionValue
from dragoman_operator.api.v1alpha1 import TranslationDeployment
from dragoman_operator.autoscaling.decision.values import count_of
from dragoman_operator.autoscaling.view import ScalingView
from dragoman_operator.observed.containers import Finding
from dragoman_operator.observed.snapshot import Manifest, Observed
from dragoman_operator.resources.plan import Plan
from dragoman_operator.status.progress import Progress
from dragoman_operator.tuning.loop import TuningView

_available = partial(ConditionValue, "Available")
_progressing = partial(ConditionValue, "Progressing")
_degraded = partial(ConditionValue, "Degraded")
_scaling_active = partial(ConditionValue, "ScalingActive")
_tuning = partial(ConditionValue, "Tuning")


def available(found: Progress) -> ConditionValue:
    """Available: at least one pod is ready."""
    if found.ready:
        return _available(True, "Ready", f"{found.ready} of {found.desired} replicas are ready")
    if found.desired == 0:
        return _available(False, "ScaledToZero", "there are no replicas; scale up to serve requests")
    return _available(False, "NoReadyReplicas", f"0 of {found.desired} replicas are ready")


def progressing(
    found: Progress,
    findings: Iterable[Finding],
    version: str,
    waiting: Sequence[str] = (),
    detail: str = "",
) -> ConditionValue:
    """Progressing: pods are being started, replaced or removed.

    Args:
        found: The pods.
        findings: Why they do not start.
        version: What they run once all is done, in words.
        waiting: Sentences about children that block the rollout.
        detail: What pods wait for, such as a download; may be empty.
    """
    more = f"; {detail}" if detail else ""
    if any(finding.reason == "ProgressDeadlineExceeded" for finding in findings):
        return _progressing(
            False, "ProgressDeadlineExceeded", f"the rollout stopped with {found.ready} replicas ready"
        )
    if any(finding.reason == "Paused" for finding in findings):
        return _progressing(False, "Paused", "the Deployment is paused by another client")
    if waiting:
        return _progressing(True, "Waiting", "; ".join(waiting))
    if found.complete:
        return _progressing(False, "Complete", f"all {found.desired} replicas run the {version}")
    if not found.applied:
        return _progressing(True, "Applying", "the spec is being written to the Deployment")
    # Without a ready pod the others start: the Deployment's status does not count those of a new object at once.
    if found.replacing and found.ready:
        return _progressing(
            True, "Replacing", f"{found.updated} of {found.pods} pods have the current spec{more}"
        )
    if found.pods > found.desired and found.updated == found.pods:
        return _progressing(
            True, "ScalingDown", f"{count_of(found.pods - found.desired)} too many: terminating{more}"
        )
    ready = f"{found.ready} of {found.desired} replicas are ready"
    # Another failure is an attempt's, and the next attempt starts.
    lost = [each.message for each in findings if each.reason == "NodeUnreachable"]
    return _progressing(True, "Starting", f"{ready}; {lost[0]}" if lost else f"{ready}, others start{more}")


def degraded(
    td: TranslationDeployment, plan: Plan, findings: Sequence[Finding], refusals: Sequence[str]
) -> ConditionValue:
    """Degraded: manual action is needed."""
    if refusals:
        return _degraded(True, "ApplyFailed", "; ".join(refusals))
    if plan.obstacles:
        return _degraded(True, "NameConflict", "; ".join(plan.obstacles))
    if plan.target.kept and plan.target.kept.reason is not None:
        problem = f"the new version failed and was rolled back: {plan.target.kept.reason}; change the spec to try again"
        return _degraded(True, "RolledBack", problem)
    if findings:
        return _degraded(True, findings[0].reason, "; ".join(f.message for f in findings))
    if tags := unknown_tags(td.spec.languages):
        problem = (
            f"spec.languages has tags of no language: {', '.join(tags)}; pods serve them as they are written"
        )
        return _degraded(True, "UnknownLanguage", problem)
    limit = licence_limit(td.spec.model.prompt_family)
    notes = ("nothing needs attention", *([f"licence: {limit}"] if limit else []))
    return _degraded(False, "AsExpected", "; ".join(notes))


def invalid(problem: str) -> ConditionValue:
    """Degraded, of an invalid spec."""
    return _degraded(True, "InvalidSpec", f"{problem}; running pods stay as they are")


_SERVING = {"UnknownLanguage"}
"""Reasons of Degraded with which all replicas get ready."""


def summary(progress: ConditionValue, problem: ConditionValue) -> list[ConditionValue]:
    """Ready, Reconciling and Stalled, of which one is True, from Progressing and Degraded.

    Tools read them that know no other conditions, such as Helm and Flux.
    Source: https://github.com/kubernetes-sigs/cli-utils/tree/master/pkg/kstatus
    """
    stalled = problem.status and problem.reason not in _SERVING
    reconciling = progress.status and not stalled
    cause = problem if stalled else progress
    return [
        ConditionValue("Ready", not (stalled or reconciling), cause.reason, cause.message),
        ConditionValue("Reconciling", reconciling, progress.reason, progress.message),
        ConditionValue("Stalled", stalled, problem.reason, problem.message),
    ]


def never_started() -> list[ConditionValue]:
    """Available and Progressing of an object whose spec was never valid."""
    problem = "no pods are started until the spec is valid"
    return [_available(False, "NoReadyReplicas", problem), _progressing(False, "InvalidSpec", problem)]


def scaling_active(
    td: TranslationDeployment, observed: Observed, scaled: ScalingView | None
) -> list[ConditionValue]:
    """ScalingActive, if the spec has autoscaling."""
    match mode := td.spec.autoscaling_mode:
        case "Internal":
            reason = scaled.reason if scaled else "waiting for the first evaluation"
            return [_scaling_active(True, mode, reason)]
        case "External":
            return [_scaling_active(True, mode, "spec.replicas is set by another controller or user")]
        case "HPA":
            return [_delegated(mode, observed.children.get(HPA), "ScalingActive")]
        case "KEDA" if not observed.keda:
            problem = (
                "the cluster has no ScaledObject kind, or the operator has no permission for it: install KEDA, "
                "and the chart with keda.enabled=true, or choose another mode"
            )
            return [_scaling_active(False, "KEDANotInstalled", problem)]
        case "KEDA" if SCALED_OBJECT not in observed.children:
            problem = (
                "the ScaledObject is being created; it needs autoscaling.prometheus.url, or the operator's own "
                "Prometheus (--prometheus-url)"
            )
            return [_scaling_active(False, "ScaledObjectPending", problem)]
        case "KEDA":
            return [_delegated(mode, observed.children[SCALED_OBJECT], "Ready")]
    return []


_REASON = re.compile(f"(?=.{{1,256}}$){REASON_PATTERN}")


def _delegated(mode: str, autoscaler: Manifest | None, condition: str) -> ConditionValue:
    """ScalingActive from the condition of another autoscaler."""
    if found := conditions_by_type((autoscaler or {}).get("status") or {}).get(condition):
        reason = f"{mode}{found.get('reason') or ''}"
        if not _REASON.fullmatch(reason):
            reason = f"{mode}NotReported"
        return _scaling_active(found.get("status") == "True", reason, found.get("message") or "")
    return _scaling_active(False, f"{mode}Pending", f"the {mode} has not reported yet")


def tuning(tuned: TuningView) -> ConditionValue:
    """Tuning: whether another maxNumSeqs is recommended."""
    found = tuned.state.recommendation
    if found is None:
        return _tuning(False, "CollectingMetrics", "too few requests were measured for a recommendation")
    differs = found.max_num_seqs != tuned.state.spec_size
    return _tuning(differs, "RecommendationProvided" if differs else "UpToDate", found.reason)


def conditions_by_type(status: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The conditions of a stored status, without those that have no type."""
    conditions = (found for found in status.get("conditions") or () if isinstance(found, Mapping))
    return {found["type"]: found for found in conditions if "type" in found}


def stamped(
    values: Iterable[ConditionValue], generation: int, old: Mapping[str, Any], now: datetime
) -> tuple[Condition, ...]:
    """Conditions with the time of their last transition: that of `old` if the status is unchanged."""
    before = conditions_by_type(old)
    conditions = []
    for value in values:
        status = "True" if value.status else "False"
        was = before.get(value.type, {})
        since = was.get("lastTransitionTime") if was.get("status") == status else None
        conditions.append(
            Condition(
                type=value.type,
                status=status,
                reason=value.reason,
                message=value.message[:4096],
                last_transition_time=since or timestamp(now),
                observed_generation=generation,
            )
        )
    return tuple(conditions)
