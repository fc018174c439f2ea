"""How many engine pods there should be, and why."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman_operator.api.v1alpha1 import TranslationDeploymentSpec


@dataclass(frozen=True)
class Sizing:
    """A number of replicas with its reason."""

    replicas: int
    reason: str


def sizing(spec: TranslationDeploymentSpec) -> Sizing:
    """Replicas from `spec.replicas`, held between the autoscaler's bounds where the operator sizes.

    In the modes External, HPA and KEDA somebody else writes `spec.replicas` through the scale subresource; it
    is then followed as it is.
    """
    scaling = spec.autoscaling
    if scaling is None or scaling.mode != "Internal":
        writer = "spec.replicas" if scaling is None else f"spec.replicas (autoscaling {scaling.mode})"
        return Sizing(spec.replicas, f"{writer} is {spec.replicas}")
    low, high = scaling.min_replicas, scaling.max_replicas
    replicas = min(max(spec.replicas, low), high)
    return Sizing(replicas, f"spec.replicas {spec.replicas} held between {low} and {high}")
