"""What one look at the cluster found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from dragoman_contract.kubernetes import API_VERSION, KIND, PLURAL
from dragoman_operator.observed.drift import Applied

Manifest = Mapping[str, Any]
"""An object as the API server returned it."""


class Key(NamedTuple):
    """One TranslationDeployment."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Kind(NamedTuple):
    """A kind of namespaced object, and where the API serves it."""

    api_version: str
    name: str
    plural: str


SERVICE_ACCOUNT = Kind("v1", "ServiceAccount", "serviceaccounts")
NETWORK_POLICY = Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
SERVICE = Kind("v1", "Service", "services")
DISRUPTION_BUDGET = Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
HPA = Kind("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments")
REPLICA_SET = Kind("apps/v1", "ReplicaSet", "replicasets")

TRIGGER_AUTHENTICATION = Kind("keda.sh/v1alpha1", "TriggerAuthentication", "triggerauthentications")
SCALED_OBJECT = Kind("keda.sh/v1alpha1", "ScaledObject", "scaledobjects")

POD = Kind("v1", "Pod", "pods")
EVENT = Kind("v1", "Event", "events")
SECRET = Kind("v1", "Secret", "secrets")
LEASE = Kind("coordination.k8s.io/v1", "Lease", "leases")
TRANSLATION_DEPLOYMENT = Kind(API_VERSION, KIND, PLURAL)

CHILD_KINDS = (SERVICE_ACCOUNT, NETWORK_POLICY, SERVICE, DISRUPTION_BUDGET, HPA, DEPLOYMENT)
"""In the order in which they are applied: pods come last, when all they refer to is there."""

KEDA_KINDS = (TRIGGER_AUTHENTICATION, SCALED_OBJECT)
"""Children where KEDA is installed and asked for; they are not watched, as most clusters do not know them."""


@dataclass(frozen=True)
class Observed:
    """A snapshot of one TranslationDeployment's children and pods."""

    now: datetime
    """When it was taken; aware, UTC."""
    children: Mapping[Kind, Manifest] = field(default_factory=dict)
    """What exists under the child's name, whoever made it; kinds that do not exist are absent."""
    pods: tuple[Manifest, ...] = ()
    """Pods of `replica_sets`, also those that are being deleted."""
    status: Mapping[str, Any] = field(default_factory=dict)
    """The status of the TranslationDeployment as stored."""
    replica_sets: tuple[Manifest, ...] = ()
    """Those of our Deployment."""
    mount_failures: Mapping[str, str] = field(default_factory=dict)
    """Why pods wait for their volumes, by the pod's uid."""
    keda: bool = False
    """Whether KEDA's kinds are known to the cluster and were looked for."""
    applied: Mapping[Kind, Applied] = field(default_factory=dict)
    """Our last apply of children that the API server made something else of."""

    @property
    def replica_set_uids(self) -> frozenset[str]:
        """The uids of `replica_sets`."""
        return frozenset(found["metadata"]["uid"] for found in self.replica_sets)


NOTHING = Observed(datetime.min.replace(tzinfo=UTC))
"""Before the first look."""
