"""What the built-in kinds' models do not contain: how lists merge, what is defaulted, which strings are numbers.

Source: the markers (`listType`, `listMapKey`, `default`) on the types of k8s.io/api, as published in
https://github.com/kubernetes/kubernetes/tree/master/api/openapi-spec, and pkg/apis/*/v1/defaults.go.
"""

from __future__ import annotations

from dragoman_devcluster.api.objects import Json

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
    ("V1ResourceFieldSelector", "divisor"): "0",
    ("V1ConfigMapVolumeSource", "defaultMode"): 420,
    ("V1SecretVolumeSource", "defaultMode"): 420,
    ("V1DownwardAPIVolumeSource", "defaultMode"): 420,
    ("V1ProjectedVolumeSource", "defaultMode"): 420,
    ("V1ServiceAccountTokenProjection", "expirationSeconds"): 3600,
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
