"""The conditions ScalingActive and MetricsAvailable."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dragoman_operator.api.status import REASON_PATTERN, ConditionValue
from dragoman_operator.api.v1alpha1 import TranslationDeploymentSpec
from dragoman_operator.autoscaling.status import Scaled
from dragoman_operator.observed.snapshot import HPA, SCALED_OBJECT, Manifest, Observed

REASON = re.compile(f"(?=.{{1,256}}$){REASON_PATTERN}")


def scaling_active(
    spec: TranslationDeploymentSpec, observed: Observed, scaled: Scaled | None
) -> list[ConditionValue]:
    """Whether the number of replicas follows the load, where the spec asks for it."""
    mode = "Off" if spec.autoscaling is None else spec.autoscaling.mode
    match mode:
        case "Internal":
            reason = scaled.reason if scaled else "the first look is due"
            return [ConditionValue("ScalingActive", True, "LoadFollowed", reason)]
        case "External":
            return [
                ConditionValue("ScalingActive", True, mode, "spec.replicas is followed as others write it")
            ]
        case "HPA":
            return [_delegated(mode, observed.children.get(HPA), "ScalingActive")]
        case "KEDA" if not observed.keda:
            problem = (
                "the cluster does not know KEDA's ScaledObject, or the operator may not make one: install KEDA, "
                "and the chart with keda.enabled=true, or choose another mode"
            )
            return [ConditionValue("ScalingActive", False, "KedaMissing", problem)]
        case "KEDA" if SCALED_OBJECT not in observed.children:
            problem = (
                "the ScaledObject is being made; it needs autoscaling.prometheus.url, or the operator's own "
                "Prometheus (--prometheus-url)"
            )
            return [ConditionValue("ScalingActive", False, "ScaledObjectPending", problem)]
        case "KEDA":
            return [_delegated(mode, observed.children[SCALED_OBJECT], "Ready")]
    return []


def _delegated(mode: str, autoscaler: Manifest | None, condition: str) -> ConditionValue:
    """What another autoscaler says of itself."""
    status = (autoscaler or {}).get("status") or {}
    for said in status.get("conditions") or ():
        if isinstance(said, Mapping) and said.get("type") == condition:
            reason = f"{mode}{said.get('reason') or ''}"
            if not REASON.fullmatch(reason):
                reason = f"{mode}NotReported"
            return ConditionValue(
                "ScalingActive", said.get("status") == "True", reason, said.get("message") or ""
            )
    return ConditionValue("ScalingActive", False, f"{mode}Pending", f"the {mode} has not reported yet")


def metrics_available(scaled: Scaled | None) -> list[ConditionValue]:
    """Whether there are figures to decide by, where our autoscaler decides and has looked."""
    seen = scaled.metrics if scaled else None
    return (
        []
        if seen is None
        else [ConditionValue("MetricsAvailable", seen.available, seen.reason, seen.message)]
    )
