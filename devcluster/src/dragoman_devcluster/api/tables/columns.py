"""The columns of the built-in kinds, as kubectl prints them.

Source: pkg/printers/internalversion/printers.go of Kubernetes.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass

from dragoman_devcluster.api.kinds import Column
from dragoman_devcluster.api.objects import Json, Object, get
from dragoman_devcluster.api.tables.durations import age
from dragoman_devcluster.api.tables.pods import pod_row

Row = Callable[[Object, datetime.datetime], list[Json]]


@dataclass(frozen=True)
class TableForm:
    """A kind's columns, and how to fill them; `named` puts the name before them."""

    columns: tuple[Column, ...]
    row: Row
    named: bool = True


def _form(columns: str, row: Row, *, named: bool = True) -> TableForm:
    """Columns named in one line; those in parentheses are only shown with `-o wide`."""
    listed = []
    for name in columns.split(", "):
        wide = name.startswith("(")
        listed.append(Column(name[1:-1] if wide else name, "string", "", priority=int(wide)))
    return TableForm(tuple(listed), row, named)


def _created(obj: Object, now: datetime.datetime) -> str:
    return age(get(obj, "metadata", "creationTimestamp"), now)


def _or_none(text: Json) -> Json:
    return "<none>" if text in (None, "") else text


def _labels(labels: Object | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or "<none>"


def _selector(obj: Object, *path: str) -> str:
    return _labels(get(obj, *path, "matchLabels"))


def _containers(obj: Object) -> list[Json]:
    containers = get(obj, "spec", "template", "spec", "containers") or []
    return [",".join(str(container.get(name)) for container in containers) for name in ("name", "image")]


def _deployment(obj: Object, now: datetime.datetime) -> list[Json]:
    status = obj.get("status") or {}
    ready = f"{status.get('readyReplicas', 0)}/{get(obj, 'spec', 'replicas', default=0)}"
    counts = [status.get("updatedReplicas", 0), status.get("availableReplicas", 0)]
    return [ready, *counts, _created(obj, now), *_containers(obj), _selector(obj, "spec", "selector")]


def _replica_set(obj: Object, now: datetime.datetime) -> list[Json]:
    status = obj.get("status") or {}
    counts = [
        get(obj, "spec", "replicas", default=0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
    ]
    return [*counts, _created(obj, now), *_containers(obj), _selector(obj, "spec", "selector")]


def _service(obj: Object, now: datetime.datetime) -> list[Json]:
    spec = obj.get("spec") or {}
    ports = [
        f"{port['port']}{':' + str(port['nodePort']) if port.get('nodePort') else ''}/{port.get('protocol', 'TCP')}"
        for port in spec.get("ports") or []
    ]
    outside = ",".join(spec.get("externalIPs") or []) or spec.get("externalName") or "<none>"
    listed = ",".join(ports) or "<none>"
    return [
        spec.get("type"),
        _or_none(spec.get("clusterIP")),
        outside,
        listed,
        _created(obj, now),
        _labels(spec.get("selector")),
    ]


def _node(obj: Object, now: datetime.datetime) -> list[Json]:
    conditions = {item["type"]: item["status"] for item in get(obj, "status", "conditions") or []}
    state = {"True": "Ready", "False": "NotReady"}.get(conditions.get("Ready", ""), "Unknown")
    if get(obj, "spec", "unschedulable"):
        state += ",SchedulingDisabled"
    prefix = "node-role.kubernetes.io/"
    roles = [
        key.removeprefix(prefix) for key in get(obj, "metadata", "labels") or {} if key.startswith(prefix)
    ]
    info = get(obj, "status", "nodeInfo") or {}
    addresses = {item["type"]: item["address"] for item in get(obj, "status", "addresses") or []}
    wide = [info.get("osImage"), info.get("kernelVersion"), info.get("containerRuntimeVersion")]
    return [
        state, ",".join(sorted(roles)) or "<none>", _created(obj, now), info.get("kubeletVersion", ""),
        _or_none(addresses.get("InternalIP")), _or_none(addresses.get("ExternalIP")),
        *(text or "<unknown>" for text in wide),
    ]  # fmt: skip


def _event(obj: Object, now: datetime.datetime) -> list[Json]:
    about = obj.get("involvedObject") or {}
    first = obj.get("firstTimestamp") or obj.get("eventTime")
    last = get(obj, "series", "lastObservedTime") or obj.get("lastTimestamp") or first
    count = get(obj, "series", "count") or obj.get("count") or 1
    source = get(obj, "source", "component") or obj.get("reportingComponent") or ""
    host = get(obj, "source", "host") or obj.get("reportingInstance") or ""
    return [
        age(last, now), obj.get("type"), obj.get("reason"), f"{str(about.get('kind', '')).lower()}/{about.get('name')}",
        about.get("fieldPath", ""), f"{source}, {host}".strip(", "), str(obj.get("message", "")).strip(),
        age(first, now), count, obj["metadata"]["name"],
    ]  # fmt: skip


def _endpoints(obj: Object, now: datetime.datetime) -> list[Json]:
    found = [
        f"{address['ip']}:{port['port']}"
        for subset in obj.get("subsets") or []
        for address in subset.get("addresses") or []
        for port in subset.get("ports") or []
    ]
    return [_shortened(found), _created(obj, now)]


def _endpoint_slice(obj: Object, now: datetime.datetime) -> list[Json]:
    ports = [str(port.get("port")) for port in obj.get("ports") or []]
    found = [
        address for endpoint in obj.get("endpoints") or [] for address in endpoint.get("addresses") or []
    ]
    return [obj.get("addressType"), ",".join(ports) or "<unset>", _shortened(found), _created(obj, now)]


def _shortened(texts: list[str]) -> str:
    told = ",".join(texts[:3]) or "<none>"
    return told if len(texts) <= 3 else f"{told} + {len(texts) - 3} more..."


def _budget(obj: Object, now: datetime.datetime) -> list[Json]:
    spec = obj.get("spec") or {}
    bounds = [str(spec.get(name, "N/A")) for name in ("minAvailable", "maxUnavailable")]
    return [*bounds, get(obj, "status", "disruptionsAllowed", default=0), _created(obj, now)]


def _claim(obj: Object, now: datetime.datetime) -> list[Json]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    short = {
        "ReadWriteOnce": "RWO",
        "ReadOnlyMany": "ROX",
        "ReadWriteMany": "RWX",
        "ReadWriteOncePod": "RWOP",
    }
    modes = ",".join(short.get(mode, mode) for mode in status.get("accessModes") or [])
    state = "Terminating" if get(obj, "metadata", "deletionTimestamp") else status.get("phase", "")
    return [
        state, spec.get("volumeName", ""), get(status, "capacity", "storage", default=""), modes,
        spec.get("storageClassName", ""), "<unset>", _created(obj, now), spec.get("volumeMode", "<unset>"),
    ]  # fmt: skip


def _autoscaler(obj: Object, now: datetime.datetime) -> list[Json]:
    spec = obj.get("spec") or {}
    target = spec.get("scaleTargetRef") or {}
    metrics = len(spec.get("metrics") or [])
    return [
        f"{target.get('kind')}/{target.get('name')}", f"<unknown> ({metrics} metrics)" if metrics else "<none>",
        spec.get("minReplicas", "<unset>"), spec.get("maxReplicas"),
        get(obj, "status", "currentReplicas", default=0), _created(obj, now),
    ]  # fmt: skip


def _binding(obj: Object, now: datetime.datetime) -> list[Json]:
    def named(kind: str) -> str:
        subjects = [subject for subject in obj.get("subjects") or [] if subject.get("kind") == kind]
        return ", ".join("/".join(filter(None, (item.get("namespace"), item["name"]))) for item in subjects)

    role = obj.get("roleRef") or {}
    wide = [named(kind) for kind in ("User", "Group", "ServiceAccount")]
    return [f"{role.get('kind')}/{role.get('name')}", _created(obj, now), *wide]


def _count(*fields: str) -> Callable[[Object], int]:
    return lambda obj: sum(len(obj.get(field) or ()) for field in fields)


_BINDING = _form("Role, Age, (Users), (Groups), (ServiceAccounts)", _binding)
_DATED = _form("Created At", lambda obj, _: [get(obj, "metadata", "creationTimestamp")])
AGE_ONLY = _form("Age", lambda obj, now: [_created(obj, now)])

FORMS: dict[str, TableForm] = {
    "pods": _form("Ready, Status, Restarts, Age, (IP), (Node), (Nominated Node), (Readiness Gates)", pod_row),
    "deployments.apps": _form(
        "Ready, Up-to-date, Available, Age, (Containers), (Images), (Selector)", _deployment
    ),
    "replicasets.apps": _form(
        "Desired, Current, Ready, Age, (Containers), (Images), (Selector)", _replica_set
    ),
    "services": _form("Type, Cluster-IP, External-IP, Port(s), Age, (Selector)", _service),
    "nodes": _form(
        "Status, Roles, Age, Version, (Internal-IP), (External-IP), (OS-Image), (Kernel-Version), "
        "(Container-Runtime)",
        _node,
    ),
    "namespaces": _form("Status, Age", lambda obj, now: [get(obj, "status", "phase"), _created(obj, now)]),
    "events": _form(
        "Last Seen, Type, Reason, Object, (Subobject), (Source), Message, (First Seen), (Count), (Name)",
        _event,
        named=False,
    ),
    "configmaps": _form(
        "Data, Age", lambda obj, now: [_count("data", "binaryData")(obj), _created(obj, now)]
    ),
    "secrets": _form(
        "Type, Data, Age", lambda obj, now: [obj.get("type"), _count("data")(obj), _created(obj, now)]
    ),
    "serviceaccounts": _form("Secrets, Age", lambda obj, now: [_count("secrets")(obj), _created(obj, now)]),
    "endpoints": _form("Endpoints, Age", _endpoints),
    "endpointslices.discovery.k8s.io": _form("AddressType, Ports, Endpoints, Age", _endpoint_slice),
    "poddisruptionbudgets.policy": _form("Min Available, Max Unavailable, Allowed Disruptions, Age", _budget),
    "networkpolicies.networking.k8s.io": _form(
        "Pod-Selector, Age", lambda obj, now: [_selector(obj, "spec", "podSelector"), _created(obj, now)]
    ),
    "leases.coordination.k8s.io": _form(
        "Holder, Age", lambda obj, now: [get(obj, "spec", "holderIdentity", default=""), _created(obj, now)]
    ),
    "persistentvolumeclaims": _form(
        "Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, Age, (VolumeMode)",
        _claim,
    ),
    "horizontalpodautoscalers.autoscaling": _form(
        "Reference, Targets, MinPods, MaxPods, Replicas, Age", _autoscaler
    ),
    "roles.rbac.authorization.k8s.io": _DATED,
    "clusterroles.rbac.authorization.k8s.io": _DATED,
    "rolebindings.rbac.authorization.k8s.io": _BINDING,
    "clusterrolebindings.rbac.authorization.k8s.io": _BINDING,
    "customresourcedefinitions.apiextensions.k8s.io": _DATED,
}
"""By storage resource; kinds that are not listed show their age."""
