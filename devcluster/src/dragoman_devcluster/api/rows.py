"""The rows of built-in kinds in the tables that `kubectl get` prints; other kinds show their name and age.

Source: pkg/printers/internalversion/printers.go of Kubernetes; HumanDuration in k8s.io/apimachinery.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass

from dragoman_devcluster.api.kinds import Column
from dragoman_devcluster.api.objects import Json, Object, get, parse_timestamp

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


def _pod(pod: Object, now: datetime.datetime) -> list[Json]:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    statuses = status.get("containerStatuses") or []
    ready = sum(bool(item.get("ready")) for item in statuses)
    return [
        f"{ready}/{len(spec.get('containers') or [])}",
        pod_reason(pod),
        _restarts(statuses, now),
        _created(pod, now),
        _or_none(status.get("podIP")),
        _or_none(spec.get("nodeName")),
    ]


def _restarts(statuses: list[Object], now: datetime.datetime) -> str:
    count = sum(int(item.get("restartCount") or 0) for item in statuses)
    finished = [get(item, "lastState", "terminated", "finishedAt") for item in statuses]
    latest = max(filter(None, finished), default=None)
    return f"{count} ({age(latest, now)} ago)" if count and latest else str(count)


def pod_reason(pod: Object) -> str:
    """What `kubectl get pods` shows as STATUS."""
    status = pod.get("status") or {}
    reason = str(status.get("reason") or status.get("phase") or "Unknown")
    if get(pod, "metadata", "deletionTimestamp"):
        return "Terminating"
    for container in status.get("containerStatuses") or []:
        if message := _state_reason(container):
            return message
    return reason


def _state_reason(container: Object) -> str:
    waiting, ended = get(container, "state", "waiting"), get(container, "state", "terminated")
    if waiting and waiting.get("reason"):
        return str(waiting["reason"])
    if ended is None:
        return ""
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _deployment(obj: Object, now: datetime.datetime) -> list[Json]:
    status = obj.get("status") or {}
    ready = f"{status.get('readyReplicas', 0)}/{get(obj, 'spec', 'replicas', default=0)}"
    return [ready, status.get("updatedReplicas", 0), status.get("availableReplicas", 0), _created(obj, now)]


def _replica_set(obj: Object, now: datetime.datetime) -> list[Json]:
    status = obj.get("status") or {}
    desired = get(obj, "spec", "replicas", default=0)
    return [desired, status.get("replicas", 0), status.get("readyReplicas", 0), _created(obj, now)]


def _service(obj: Object, now: datetime.datetime) -> list[Json]:
    spec = obj.get("spec") or {}
    ports = [f"{port['port']}/{port.get('protocol', 'TCP')}" for port in spec.get("ports") or []]
    return [spec.get("type"), _or_none(spec.get("clusterIP")), _or_none(",".join(ports)), _created(obj, now)]


def _node(obj: Object, now: datetime.datetime) -> list[Json]:
    conditions = {item["type"]: item["status"] for item in get(obj, "status", "conditions") or []}
    state = {"True": "Ready", "False": "NotReady"}.get(conditions.get("Ready", ""), "Unknown")
    return [state, _created(obj, now), get(obj, "status", "nodeInfo", "kubeletVersion", default="")]


def _event(obj: Object, now: datetime.datetime) -> list[Json]:
    about = obj.get("involvedObject") or {}
    last = get(obj, "series", "lastObservedTime") or obj.get("lastTimestamp") or obj.get("eventTime")
    named = f"{str(about.get('kind', '')).lower()}/{about.get('name')}"
    return [age(last, now), obj.get("type"), obj.get("reason"), named, str(obj.get("message", "")).strip()]


def _claim(obj: Object, now: datetime.datetime) -> list[Json]:
    status = obj.get("status") or {}
    return [status.get("phase", ""), get(status, "capacity", "storage", default=""), _created(obj, now)]


AGE_ONLY = _form("Age", lambda obj, now: [_created(obj, now)])

FORMS: dict[str, TableForm] = {
    "pods": _form("Ready, Status, Restarts, Age, (IP), (Node)", _pod),
    "deployments.apps": _form("Ready, Up-to-date, Available, Age", _deployment),
    "replicasets.apps": _form("Desired, Current, Ready, Age", _replica_set),
    "services": _form("Type, Cluster-IP, Port(s), Age", _service),
    "nodes": _form("Status, Age, Version", _node),
    "namespaces": _form("Status, Age", lambda obj, now: [get(obj, "status", "phase"), _created(obj, now)]),
    "events": _form("Last Seen, Type, Reason, Object, Message", _event, named=False),
    "persistentvolumeclaims": _form("Status, Capacity, Age", _claim),
}
"""By storage resource; kinds that are not listed show their age."""


def age(text: Json, now: datetime.datetime) -> str:
    """How long ago a Kubernetes time was: `5m30s`, `47h`, `12d`; `<unknown>` without one."""
    if not text:
        return "<unknown>"
    time = parse_timestamp(text) if isinstance(text, str) else None
    return human(int((now - time).total_seconds())) if time else "<invalid>"


def human(seconds: int) -> str:
    """A duration in seconds with two units at most, the finer one only while it matters."""
    if seconds < -1:
        return "<invalid>"
    seconds = max(seconds, 0)
    minutes, hours = seconds // 60, seconds // 3600
    days = hours // 24
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _pair(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _pair(days, "d", hours % 24, "h")
    if days < 365 * 2:
        return f"{days}d"
    if days < 365 * 8:
        return _pair(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _pair(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large}{unit}{small}{small_unit}" if small else f"{large}{unit}"
