"""What one look at the cluster found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from dragoman_contract.kubernetes import API_VERSION, KIND, PLURAL

Manifest = Mapping[str, Any]
"""An object as the API server returned it."""


class Kind(NamedTuple):
    """A kind of namespaced object, and where the API serves it."""

    api_version: str
    name: str
    plural: str


SERVICE_ACCOUNT = Kind("v1", "ServiceAccount", "serviceaccounts")
NETWORK_POLICY = Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
SERVICE = Kind("v1", "Service", "services")
DISRUPTION_BUDGET = Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments")

POD = Kind("v1", "Pod", "pods")
EVENT = Kind("v1", "Event", "events")
LEASE = Kind("coordination.k8s.io/v1", "Lease", "leases")
TRANSLATION_DEPLOYMENT = Kind(API_VERSION, KIND, PLURAL)

CHILD_KINDS = (SERVICE_ACCOUNT, NETWORK_POLICY, SERVICE, DISRUPTION_BUDGET, DEPLOYMENT)
"""In the order in which they are applied: pods come last, when all they refer to is there."""


@dataclass(frozen=True)
class Observed:
    """A snapshot of one TranslationDeployment's children and pods."""

    now: datetime
    """When it was taken; aware, UTC."""
    children: Mapping[Kind, Manifest] = field(default_factory=dict)
    """What exists under the child's name, whoever made it; kinds that do not exist are absent."""
    pods: tuple[Manifest, ...] = ()
    """Pods that carry the selector's labels, also those that are being deleted."""
