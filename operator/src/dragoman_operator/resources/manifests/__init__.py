"""Builders of the children: pure functions, one per kind."""

from __future__ import annotations

from dragoman_operator.autoscaling.manifests import (
    horizontal_pod_autoscaler,
    scaled_object,
    trigger_authentication,
)
from dragoman_operator.resources.manifests.deployment import Images, deployment
from dragoman_operator.resources.manifests.disruption_budget import disruption_budget
from dragoman_operator.resources.manifests.network_policy import network_policy
from dragoman_operator.resources.manifests.service import service
from dragoman_operator.resources.manifests.service_account import service_account

__all__ = [
    "Images",
    "deployment",
    "disruption_budget",
    "horizontal_pod_autoscaler",
    "network_policy",
    "scaled_object",
    "service",
    "service_account",
    "trigger_authentication",
]
