"""The number of engine pods, and its reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman_operator.api.v1alpha1 import TranslationDeploymentSpec
from dragoman_operator.autoscaling.decision.samples import Proposal, Rule
from dragoman_operator.autoscaling.status import ScalingView
from dragoman_operator.observed.snapshot import Manifest


def mode_of(spec: TranslationDeploymentSpec) -> str:
    """The mode of `spec.autoscaling`; Off without it."""
    return "Off" if spec.autoscaling is None else spec.autoscaling.mode


def sizing(spec: TranslationDeploymentSpec, scaled: ScalingView | None) -> Proposal:
    """The autoscaler's decision in mode Internal, else `spec.replicas`.

    In every mode `spec.replicas` is the number of engine pods. In modes External, HPA and KEDA another controller
    writes it through the scale subresource, in mode Internal the operator: there a decision is ahead of it until it
    is written.
    """
    mode = mode_of(spec)
    if mode == "Internal":
        if scaled is not None:
            return Proposal(scaled.replicas, scaled.rule, scaled.reason)
        return _between(spec)
    writer = "spec.replicas" if spec.autoscaling is None else f"spec.replicas (autoscaling {mode})"
    return Proposal(spec.replicas, Rule.SPEC, f"{writer} is {spec.replicas}")


def resumed(
    spec: TranslationDeploymentSpec, status: Mapping[str, Any], deployment: Manifest | None
) -> Proposal:
    """Initial number of replicas: of the last decision, else of the Deployment, else of the spec."""
    scaling = status.get("scaling") or {}
    last = status.get("desiredReplicas") if scaling.get("mode") == "Internal" else None
    if last is None and deployment is not None:
        last = deployment["spec"].get("replicas")
    if last is None or spec.autoscaling is None:
        return _between(spec)
    replicas = min(max(int(last), spec.autoscaling.min_replicas), spec.autoscaling.max_replicas)
    return Proposal(replicas, Rule.RESUMED, f"{replicas} replicas, as before the restart")


def _between(spec: TranslationDeploymentSpec) -> Proposal:
    scaling = spec.autoscaling
    low, high = (scaling.min_replicas, scaling.max_replicas) if scaling else (0, spec.replicas)
    replicas = min(max(spec.replicas, low), high)
    return Proposal(replicas, Rule.RESUMED, f"spec.replicas {spec.replicas} limited to {low}–{high}")
