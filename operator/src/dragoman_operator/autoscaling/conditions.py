"""The condition ScalingActive."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

from dragoman_kube.kinds import HPA, SCALED_OBJECT
from dragoman_operator.api.status import REASON_PATTERN, ConditionValue
from dragoman_operator.api.v1alpha1 import TranslationDeploymentSpec
from dragoman_operator.autoscaling.status import ScalingView
from dragoman_operator.observed.snapshot import Manifest, Observed

REASON = re.compile(f"(?=.{{1,256}}$){REASON_PATTERN}")

_scaling_active = partial(ConditionValue, "ScalingActive")


def scaling_active(
    spec: TranslationDeploymentSpec, observed: Observed, scaled: ScalingView | None
) -> list[ConditionValue]:
    """ScalingActive, if the spec has autoscaling."""
    mode = "Off" if spec.autoscaling is None else spec.autoscaling.mode
    match mode:
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


def _delegated(mode: str, autoscaler: Manifest | None, condition: str) -> ConditionValue:
    """ScalingActive from the condition of another autoscaler."""
    status = (autoscaler or {}).get("status") or {}
    for found in status.get("conditions") or ():
        if isinstance(found, Mapping) and found.get("type") == condition:
            reason = f"{mode}{found.get('reason') or ''}"
            if not REASON.fullmatch(reason):
                reason = f"{mode}NotReported"
            return _scaling_active(found.get("status") == "True", reason, found.get("message") or "")
    return _scaling_active(False, f"{mode}Pending", f"the {mode} has not reported yet")
