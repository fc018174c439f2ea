"""A snapshot of the cluster for one reconciliation."""

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
    """A kind of namespaced object, with its API path."""

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
"""In the order of application: the Deployment is last, after all objects that its pods refer to."""

KEDA_KINDS = (TRIGGER_AUTHENTICATION, SCALED_OBJECT)
"""Children in mode KEDA. They are not watched, because most clusters do not have these kinds."""


@dataclass(frozen=True)
class Observed:
    """A snapshot of one TranslationDeployment's children and pods."""

    now: datetime
    """Time of the snapshot; aware, UTC."""
    children: Mapping[Kind, Manifest] = field(default_factory=dict)
    """Existing objects with the child's name, regardless of their owner."""
    pods: tuple[Manifest, ...] = ()
    """Pods of `replica_sets`, also those that are being deleted."""
    status: Mapping[str, Any] = field(default_factory=dict)
    """The stored status of the TranslationDeployment."""
    replica_sets: tuple[Manifest, ...] = ()
    """Those of the operator's Deployment."""
    mount_failures: Mapping[str, str] = field(default_factory=dict)
    """Why pods wait for their volumes, by the pod's uid."""
    keda: bool = False
    """Whether the cluster has KEDA's kinds and they were read."""
    applied: Mapping[Kind, Applied] = field(default_factory=dict)
    """The last applied manifests that webhooks changed."""

    @property
    def replica_set_uids(self) -> frozenset[str]:
        """The uids of `replica_sets`."""
        return frozenset(found["metadata"]["uid"] for found in self.replica_sets)


NOTHING = Observed(datetime.min.replace(tzinfo=UTC))
"""Before the first reconciliation."""
