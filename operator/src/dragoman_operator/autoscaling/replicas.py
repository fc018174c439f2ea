"""How many engine pods there should be, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman_operator.api.v1alpha1 import TranslationDeploymentSpec
from dragoman_operator.autoscaling.status import Scaled, Sizing
from dragoman_operator.observed.snapshot import Manifest


def mode_of(spec: TranslationDeploymentSpec) -> str:
    """Who decides: a mode of `spec.autoscaling`, Off where there is none."""
    return "Off" if spec.autoscaling is None else spec.autoscaling.mode


def sizing(spec: TranslationDeploymentSpec, scaled: Scaled | None) -> Sizing:
    """Replicas as the autoscaler has decided, in mode Internal, and else as `spec.replicas` says.

    In the modes External, HPA and KEDA somebody else writes `spec.replicas` through the scale subresource; it
    is then followed as it is. Internal never looks at it once it has decided: whoever writes it there fights
    nobody.

    Args:
        spec: The object's spec.
        scaled: What the autoscaler says; None where it does not decide.
    """
    mode = mode_of(spec)
    if mode == "Internal":
        if scaled is not None:
            return Sizing(scaled.replicas, scaled.rule, scaled.reason)
        return _between(spec)
    writer = "spec.replicas" if spec.autoscaling is None else f"spec.replicas (autoscaling {mode})"
    return Sizing(spec.replicas, "Spec", f"{writer} is {spec.replicas}")


def resumed(
    spec: TranslationDeploymentSpec, status: Mapping[str, Any], deployment: Manifest | None
) -> Sizing:
    """Where the autoscaler begins: at the replicas it last decided on, else at those there are, else at the spec's.

    Args:
        spec: The object's spec, in mode Internal.
        status: The status as stored; may be empty.
        deployment: The Deployment, where there is one.
    """
    scaling = status.get("scaling") or {}
    last = status.get("desiredReplicas") if scaling.get("mode") == "Internal" else None
    if last is None and deployment is not None:
        last = deployment["spec"].get("replicas")
    if last is None or spec.autoscaling is None:
        return _between(spec)
    replicas = min(max(int(last), spec.autoscaling.min_replicas), spec.autoscaling.max_replicas)
    return Sizing(replicas, "Resumed", f"{replicas} replicas, as there were")


def _between(spec: TranslationDeploymentSpec) -> Sizing:
    scaling = spec.autoscaling
    low, high = (scaling.min_replicas, scaling.max_replicas) if scaling else (0, spec.replicas)
    replicas = min(max(spec.replicas, low), high)
    return Sizing(replicas, "Resumed", f"spec.replicas {spec.replicas} held between {low} and {high}")
