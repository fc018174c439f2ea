"""The resources that the controllers and the node work with, and their paths."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Resource:
    """One resource type of the API.

    Args:
        group_version: ``v1`` or ``group/version``.
        plural: Name in the path, such as ``pods``.
        kind: Name in objects, such as ``Pod``.
        namespaced: Whether its objects live in namespaces.
    """

    group_version: str
    plural: str
    kind: str
    namespaced: bool = True

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path of the collection, of one object, or of its subresource (all namespaces if none given)."""
        root = "/apis/" if "/" in self.group_version else "/api/"
        parts = [root + self.group_version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [self.plural, name, subresource]
        return "/".join(part for part in parts if part)


PODS = Resource("v1", "pods", "Pod")
SERVICES = Resource("v1", "services", "Service")
CONFIG_MAPS = Resource("v1", "configmaps", "ConfigMap")
SECRETS = Resource("v1", "secrets", "Secret")
SERVICE_ACCOUNTS = Resource("v1", "serviceaccounts", "ServiceAccount")
EVENTS = Resource("v1", "events", "Event")
NODES = Resource("v1", "nodes", "Node", namespaced=False)
NAMESPACES = Resource("v1", "namespaces", "Namespace", namespaced=False)
CLAIMS = Resource("v1", "persistentvolumeclaims", "PersistentVolumeClaim")
DEPLOYMENTS = Resource("apps/v1", "deployments", "Deployment")
REPLICA_SETS = Resource("apps/v1", "replicasets", "ReplicaSet")
ENDPOINT_SLICES = Resource("discovery.k8s.io/v1", "endpointslices", "EndpointSlice")
DISRUPTION_BUDGETS = Resource("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget")
CUSTOM_RESOURCE_DEFINITIONS = Resource(
    "apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
