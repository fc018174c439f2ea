"""Representation of objects by `Accept`: whole, or as the table that `kubectl get` prints.

Source: pkg/printers/internalversion/printers.go of Kubernetes.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from dragoman_devcluster.api.jsonpath import JsonPathError, compiled
from dragoman_devcluster.api.kinds import Column, Kind
from dragoman_devcluster.api.objects import Json, Object, get, parse_timestamp

_META = "meta.k8s.io/v1"
_NAME = Column("Name", "string", ".metadata.name", format="name")
_AGE = Column("Age", "date", ".metadata.creationTimestamp")


@dataclass(frozen=True)
class Presentation:
    """One way to show objects of a kind; `include_object` says what of an object is in its row of a table."""

    kind: Kind
    clock: Callable[[], datetime.datetime]
    is_table: bool = False
    include_object: str = "Metadata"

    def single(self, obj: Object) -> Object:
        """One object."""
        if self.is_table:
            return self._table([obj], obj.get("metadata", {}).get("resourceVersion", ""), with_columns=True)
        return {**obj, "kind": self.kind.name, "apiVersion": self.kind.api_version}

    def listed(self, objects: Sequence[Object], version: int) -> Object:
        """A list as of a resourceVersion."""
        if self.is_table:
            return self._table(objects, str(version), with_columns=True)
        return {
            "kind": self.kind.listed_as,
            "apiVersion": self.kind.api_version,
            "metadata": {"resourceVersion": str(version)},
            "items": [self.single(obj) for obj in objects],
        }

    def stream(self) -> Callable[[Object], Object]:
        """A function that renders the objects of one watch; only its first table has the columns' definitions."""
        if not self.is_table:
            return self.single
        first = True

        def render(obj: Object) -> Object:
            nonlocal first
            table = self._table([obj], obj["metadata"].get("resourceVersion", ""), with_columns=first)
            first = False
            return table

        return render

    def _table(self, objects: Sequence[Object], version: str, *, with_columns: bool) -> Object:
        columns = self.kind.columns or COLUMNS.get(self.kind.resource, (_AGE,))
        if columns[0].format != "name":
            columns = (_NAME, *columns)
        return {
            "kind": "Table",
            "apiVersion": _META,
            "metadata": {"resourceVersion": version},
            "columnDefinitions": [_definition(column) for column in columns] if with_columns else None,
            # A bookmark has no object to make a row of.
            "rows": [self._row(columns, obj) for obj in objects if obj["metadata"].get("name")],
        }

    def _row(self, columns: Sequence[Column], obj: Object) -> Object:
        now = self.clock()
        row: Object = {"cells": [cell(column, obj, now) for column in columns]}
        if self.include_object == "Object":
            row["object"] = {**obj, "kind": self.kind.name, "apiVersion": self.kind.api_version}
        elif self.include_object == "Metadata":
            row["object"] = {
                "kind": "PartialObjectMetadata",
                "apiVersion": _META,
                "metadata": obj["metadata"],
            }
        return row


def presentation(
    accept: str, kind: Kind, include_object: str, clock: Callable[[], datetime.datetime]
) -> Presentation:
    """A table if an Accept header prefers one, else whole objects."""
    first, *parameters = (part.strip() for part in accept.partition(",")[0].split(";"))
    is_table = first == "application/json" and {"as=Table", "g=meta.k8s.io", "v=v1"} <= set(parameters)
    return Presentation(kind, clock, is_table, include_object)


def _definition(column: Column) -> Object:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description or column.name,
        "priority": column.priority,
    }


def cell(column: Column, obj: Object, now: datetime.datetime) -> Json:
    """What a column shows of an object: None where its path finds nothing."""
    if callable(column.path):
        return column.path(obj)
    try:
        value = next(iter(compiled(column.path)(obj)), None)
    except JsonPathError:
        return None
    if column.type == "date":
        return age(value, now)
    if column.type == "integer" and isinstance(value, float):
        return int(value)
    if column.type == "string" and value is not None:
        return str(value).lower() if isinstance(value, bool) else str(value)
    return value


def _pod_ready(pod: Object) -> str:
    statuses = get(pod, "status", "containerStatuses") or []
    ready = sum(bool(item.get("ready")) for item in statuses)
    return f"{ready}/{len(get(pod, 'spec', 'containers') or [])}"


def pod_reason(pod: Object) -> str:
    """What `kubectl get pods` shows as STATUS."""
    if get(pod, "metadata", "deletionTimestamp"):
        return "Terminating"
    for container in get(pod, "status", "containerStatuses") or []:
        for state in ("waiting", "terminated"):
            if reason := get(container, "state", state, "reason"):
                return str(reason)
    return str(get(pod, "status", "phase") or "Unknown")


def _restarts(pod: Object) -> int:
    return sum(int(item.get("restartCount") or 0) for item in get(pod, "status", "containerStatuses") or [])


def _deployment_ready(obj: Object) -> str:
    ready = get(obj, "status", "readyReplicas", default=0)
    return f"{ready}/{get(obj, 'spec', 'replicas', default=0)}"


def _ports(service: Object) -> str:
    ports = get(service, "spec", "ports") or []
    return ",".join(f"{port['port']}/{port.get('protocol', 'TCP')}" for port in ports) or "<none>"


def _node_status(node: Object) -> str:
    conditions = {item["type"]: item["status"] for item in get(node, "status", "conditions") or []}
    return "Ready" if conditions.get("Ready") == "True" else "NotReady"


def _about(event: Object) -> str:
    about = event.get("involvedObject") or {}
    return f"{str(about.get('kind', '')).lower()}/{about.get('name')}"


def _count(name: str, *path: str) -> Column:
    return Column(name, "integer", lambda obj: get(obj, *path, default=0))


COLUMNS: dict[str, tuple[Column, ...]] = {
    "pods": (
        Column("Ready", "string", _pod_ready),
        Column("Status", "string", pod_reason),
        Column("Restarts", "integer", _restarts),
        _AGE,
        Column("IP", "string", ".status.podIP", priority=1),
        Column("Node", "string", ".spec.nodeName", priority=1),
    ),
    "deployments.apps": (
        Column("Ready", "string", _deployment_ready),
        _count("Up-to-date", "status", "updatedReplicas"),
        _count("Available", "status", "availableReplicas"),
        _AGE,
    ),
    "replicasets.apps": (
        _count("Desired", "spec", "replicas"),
        _count("Current", "status", "replicas"),
        _count("Ready", "status", "readyReplicas"),
        _AGE,
    ),
    "services": (
        Column("Type", "string", ".spec.type"),
        Column("Cluster-IP", "string", ".spec.clusterIP"),
        Column("Port(s)", "string", _ports),
        _AGE,
    ),
    "nodes": (
        Column("Status", "string", _node_status),
        _AGE,
        Column("Version", "string", ".status.nodeInfo.kubeletVersion"),
    ),
    "namespaces": (Column("Status", "string", ".status.phase"), _AGE),
    "events": (
        replace(_NAME, priority=1),
        Column("Last Seen", "date", ".lastTimestamp"),
        Column("Type", "string", ".type"),
        Column("Reason", "string", ".reason"),
        Column("Object", "string", _about),
        Column("Message", "string", ".message"),
    ),
    "persistentvolumeclaims": (
        Column("Status", "string", ".status.phase"),
        Column("Capacity", "string", ".status.capacity.storage"),
        _AGE,
    ),
}
"""Of built-in kinds, by storage resource; kinds that are not listed show their name and age."""

_UNITS = ((365 * 86_400, "y"), (86_400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def age(text: Json, now: datetime.datetime) -> str:
    """How long ago a Kubernetes time was: `5m30s`, `47h`, `12d`; `<unknown>` without one."""
    time = parse_timestamp(text) if isinstance(text, str) else None
    return human(int((now - time).total_seconds())) if time else "<unknown>"


def human(seconds: int) -> str:
    """A duration in the largest unit of which there are two, with the next finer one while there are less than ten."""
    for (size, unit), (finer_size, finer) in pairwise(_UNITS):
        if seconds >= 2 * size:
            count, rest = divmod(seconds, size)
            rest //= finer_size
            return f"{count}{unit}{rest}{finer}" if rest and count < 10 else f"{count}{unit}"
    return f"{max(seconds, 0)}s"
