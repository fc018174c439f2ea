"""Kinds of objects, and the paths under which the API serves them."""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """One kind of object in one version of its API.

    Args:
        api_version: ``v1`` or ``GROUP/VERSION``.
        name: As in the field ``kind``, such as ``Pod``.
        plural: As in the path, such as ``pods``.
        namespaced: False for cluster-scoped objects.
    """

    api_version: str
    name: str
    plural: str
    namespaced: bool = True

    @property
    def root(self) -> str:
        """The path of the API version."""
        return f"/{'apis' if '/' in self.api_version else 'api'}/{self.api_version}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path of the collection, of an object or of its subresource.

        Empty arguments are left out.
        """
        parts = [self.root]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [self.plural, name, subresource]
        return "/".join(part for part in parts if part)


NAMESPACE = Kind("v1", "Namespace", "namespaces", namespaced=False)
NODE = Kind("v1", "Node", "nodes", namespaced=False)
POD = Kind("v1", "Pod", "pods")
SERVICE = Kind("v1", "Service", "services")
SERVICE_ACCOUNT = Kind("v1", "ServiceAccount", "serviceaccounts")
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")
SECRET = Kind("v1", "Secret", "secrets")
CLAIM = Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
EVENT = Kind("v1", "Event", "events")
DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments")
REPLICA_SET = Kind("apps/v1", "ReplicaSet", "replicasets")
ENDPOINT_SLICE = Kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices")
LEASE = Kind("coordination.k8s.io/v1", "Lease", "leases")
NETWORK_POLICY = Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
DISRUPTION_BUDGET = Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
HPA = Kind("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
CRD = Kind(
    "apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
TRIGGER_AUTHENTICATION = Kind("keda.sh/v1alpha1", "TriggerAuthentication", "triggerauthentications")
SCALED_OBJECT = Kind("keda.sh/v1alpha1", "ScaledObject", "scaledobjects")
