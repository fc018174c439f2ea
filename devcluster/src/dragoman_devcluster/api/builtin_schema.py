"""Schemas of the built-in kinds, read from the models of the package `kubernetes`.

The package is generated from a real server's OpenAPI document, so that its models name every field, its type and
whether it is required. What they do not carry (how lists merge, defaults, which strings are numbers) is added here.

Source: the markers (`listType`, `listMapKey`, `default`) on the types of k8s.io/api, as published in
https://github.com/kubernetes/kubernetes/tree/master/api/openapi-spec, and pkg/apis/*/v1/defaults.go.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import kubernetes.client

from dragoman_devcluster.api.objects import Json, Object

INT_OR_STRING = frozenset({"targetPort", "maxUnavailable", "maxSurge", "minAvailable", "port"})
"""Fields that hold a number or a percentage or name."""

QUANTITIES = frozenset({
    "limits", "requests", "capacity", "allocatable", "hard", "used", "overhead", "sizeLimit", "divisor",
    "averageValue", "allocatedResources", "targetAverageValue",
})  # fmt: skip
"""Fields that hold a quantity, or a map of quantities."""

LISTS: dict[tuple[str, str], str | tuple[str, ...]] = {
    ("V1ObjectMeta", "ownerReferences"): ("uid",),
    ("V1ObjectMeta", "finalizers"): "set",
    ("V1PodSpec", "containers"): ("name",),
    ("V1PodSpec", "initContainers"): ("name",),
    ("V1PodSpec", "volumes"): ("name",),
    ("V1PodSpec", "imagePullSecrets"): ("name",),
    ("V1PodSpec", "topologySpreadConstraints"): ("topologyKey", "whenUnsatisfiable"),
    ("V1PodSpec", "nodeSelector"): "atomic",
    ("V1PodStatus", "podIPs"): ("ip",),
    ("V1Container", "env"): ("name",),
    ("V1Container", "ports"): ("containerPort", "protocol"),
    ("V1Container", "volumeMounts"): ("mountPath",),
    ("V1ServiceSpec", "ports"): ("port", "protocol"),
    ("V1ServiceSpec", "selector"): "atomic",
    ("V1ServiceAccount", "secrets"): ("name",),
    ("V1NodeStatus", "addresses"): ("type",),
}
"""By model and field: "atomic", "set", or the keys of a list that merges by key. Other lists are atomic."""

ATOMIC_MODELS = frozenset({
    "V1LabelSelector", "V1ObjectReference", "V1LocalObjectReference", "V1ConfigMapKeySelector",
    "V1SecretKeySelector", "V1ObjectFieldSelector", "V1ResourceFieldSelector", "V1NodeSelector",
    "V1NodeSelectorTerm", "V1OwnerReference", "V1RoleRef", "RbacV1Subject", "V1SecretReference",
    "V1TypedLocalObjectReference", "V1TopologySelectorTerm",
})  # fmt: skip
"""Objects that one manager owns as a whole."""

DEFAULTS: dict[tuple[str, str], Json] = {
    ("V1ContainerPort", "protocol"): "TCP",
    ("V1ServicePort", "protocol"): "TCP",
    ("V1NetworkPolicyPort", "protocol"): "TCP",
    ("V1PodSpec", "restartPolicy"): "Always",
    ("V1PodSpec", "dnsPolicy"): "ClusterFirst",
    ("V1PodSpec", "schedulerName"): "default-scheduler",
    ("V1PodSpec", "terminationGracePeriodSeconds"): 30,
    ("V1PodSpec", "securityContext"): {},
    ("V1Container", "resources"): {},
    ("V1Container", "terminationMessagePath"): "/dev/termination-log",
    ("V1Container", "terminationMessagePolicy"): "File",
    ("V1Probe", "timeoutSeconds"): 1,
    ("V1Probe", "periodSeconds"): 10,
    ("V1Probe", "successThreshold"): 1,
    ("V1Probe", "failureThreshold"): 3,
    ("V1HTTPGetAction", "path"): "/",
    ("V1HTTPGetAction", "scheme"): "HTTP",
    ("V1ObjectFieldSelector", "apiVersion"): "v1",
    ("V1ConfigMapVolumeSource", "defaultMode"): 420,
    ("V1SecretVolumeSource", "defaultMode"): 420,
    ("V1ServiceSpec", "type"): "ClusterIP",
    ("V1ServiceSpec", "sessionAffinity"): "None",
    ("V1DeploymentSpec", "replicas"): 1,
    ("V1DeploymentSpec", "revisionHistoryLimit"): 10,
    ("V1DeploymentSpec", "progressDeadlineSeconds"): 600,
    ("V1DeploymentSpec", "strategy"): {},
    ("V1DeploymentStrategy", "type"): "RollingUpdate",
    ("V1RollingUpdateDeployment", "maxUnavailable"): "25%",
    ("V1RollingUpdateDeployment", "maxSurge"): "25%",
    ("V1ReplicaSetSpec", "replicas"): 1,
    ("V1Secret", "type"): "Opaque",
    ("V2HorizontalPodAutoscalerSpec", "minReplicas"): 1,
}
"""Defaults that hold wherever the field's parent is present; those that depend on other fields are code."""

OPTIONAL = frozenset(
    {
        ("V1NetworkPolicySpec", "podSelector"),
        ("V1Container", "name"),
        ("V1DeploymentSpec", "template"),
    }
)
"""Fields that the models require and a real server fills in, or reports in its own words."""

ENUMS: dict[tuple[str, str], tuple[str, ...]] = {
    ("V1PodSpec", "restartPolicy"): ("Always", "OnFailure", "Never"),
    ("V1PodSpec", "dnsPolicy"): ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"),
    ("V1Container", "imagePullPolicy"): ("Always", "IfNotPresent", "Never"),
    ("V1Container", "terminationMessagePolicy"): ("File", "FallbackToLogsOnError"),
    ("V1ContainerPort", "protocol"): ("SCTP", "TCP", "UDP"),
    ("V1ServicePort", "protocol"): ("SCTP", "TCP", "UDP"),
    ("V1ServiceSpec", "type"): ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort"),
    ("V1ServiceSpec", "sessionAffinity"): ("ClientIP", "None"),
    ("V1DeploymentStrategy", "type"): ("RollingUpdate",),
    ("V1CustomResourceDefinitionSpec", "scope"): ("Cluster", "Namespaced"),
}
"""What some strings may be."""

MINIMA: dict[tuple[str, str], int] = {
    ("V1DeploymentSpec", "replicas"): 0,
    ("V1DeploymentSpec", "minReadySeconds"): 0,
    ("V1DeploymentSpec", "revisionHistoryLimit"): 0,
    ("V1ReplicaSetSpec", "replicas"): 0,
    ("V1PodSpec", "terminationGracePeriodSeconds"): 0,
    ("V1Probe", "initialDelaySeconds"): 0,
    ("V1Probe", "timeoutSeconds"): 1,
    ("V1Probe", "periodSeconds"): 1,
    ("V1Probe", "failureThreshold"): 1,
    ("V2HorizontalPodAutoscalerSpec", "maxReplicas"): 1,
}
"""The least that some numbers may be."""

_SCALARS: dict[str, Object] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "datetime": {"type": "string", "format": "date-time"},
    "bytes": {"type": "string", "format": "byte"},
    "object": {"x-kubernetes-preserve-unknown-fields": True},
}
QUANTITY: Object = {"type": "string", "format": "quantity"}
_CONTAINER = re.compile(r"(?P<outer>[Ll]ist|[Dd]ict)[\[(](?:str, )?(?P<inner>.+)[\])]")


@cache
def model_schema(model: str) -> Object:
    """The structural schema of a model such as `V1PodSpec`; shared, so not to be changed."""
    if model == "V1JSONSchemaProps":  # It contains itself, and a CRD's schema is checked elsewhere.
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    described: Any = getattr(kubernetes.client, model)
    fields = described.model_fields
    required = []
    properties: Object = {}
    for attribute, declared in described.openapi_types.items():
        name = described.attribute_map[attribute]
        schema = {**_schema(model, name, declared)}
        info = fields.get(attribute)
        if info is not None and info.is_required() and (model, name) not in OPTIONAL:
            required.append(name)
        if (model, name) in DEFAULTS:
            schema["default"] = DEFAULTS[model, name]
        if (model, name) in ENUMS:
            schema["enum"] = list(ENUMS[model, name])
        if (model, name) in MINIMA:
            schema["minimum"] = MINIMA[model, name]
        properties[name] = schema
    result: Object = {"type": "object", "properties": properties}
    if model == "V1DeploymentStrategy":
        result["x-kubernetes-patch-strategy"] = "retainKeys"
    if required:
        result["required"] = required
    if model in ATOMIC_MODELS:
        result["x-kubernetes-map-type"] = "atomic"
    return result


def _schema(model: str, name: str, declared: str) -> Object:
    if declared == "object" and name in INT_OR_STRING:
        return {"x-kubernetes-int-or-string": True}
    if name in QUANTITIES and declared == "str":
        return QUANTITY
    container = _CONTAINER.fullmatch(declared)
    if container is None:
        return _SCALARS[declared] if declared in _SCALARS else model_schema(declared)
    inner = _schema(model, "", container["inner"])
    if container["outer"] in ("Dict", "dict"):
        values = QUANTITY if name in QUANTITIES else inner
        traits: Object = {"x-kubernetes-map-type": "atomic"} if LISTS.get((model, name)) == "atomic" else {}
        return {"type": "object", "additionalProperties": values, **traits}
    trait = LISTS.get((model, name)) or (("type",) if name == "conditions" else "atomic")
    if isinstance(trait, str):
        merging: Object = {"x-kubernetes-patch-strategy": "merge"} if trait == "set" else {}
        return {"type": "array", "items": inner, "x-kubernetes-list-type": trait, **merging}
    return {
        "type": "array",
        "items": inner,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": list(trait),
        "x-kubernetes-patch-strategy": "merge,retainKeys" if name == "volumes" else "merge",
        "x-kubernetes-patch-merge-key": trait[0],
    }
