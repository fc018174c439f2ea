"""A pod's row: why it is not ready yet, in one word.

Source: printPod in pkg/printers/internalversion/printers.go of Kubernetes.
"""

from __future__ import annotations

import datetime

from dragoman_devcluster.api.objects import Json, Object, get
from dragoman_devcluster.api.tables.durations import age


def pod_row(pod: Object, now: datetime.datetime) -> list[Json]:
    """Ready, Status, Restarts, Age, and the wide columns."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    statuses = status.get("containerStatuses") or []
    ready = sum(bool(item.get("ready")) for item in statuses)
    gates = spec.get("readinessGates") or []
    passed = {item["type"] for item in status.get("conditions") or [] if item.get("status") == "True"}
    met = sum(gate["conditionType"] in passed for gate in gates)
    return [
        f"{ready}/{len(spec.get('containers') or [])}",
        pod_reason(pod),
        _restarts(statuses, now),
        age(get(pod, "metadata", "creationTimestamp"), now),
        status.get("podIP") or "<none>",
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        f"{met}/{len(gates)}" if gates else "<none>",
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
    initialising = _init_reason(pod)
    if initialising:
        reason = initialising
    else:
        running = False
        for container in reversed(status.get("containerStatuses") or []):
            told = _state_reason(container)
            if told:
                reason = told
            elif container.get("ready") and get(container, "state", "running") is not None:
                running = True
        if reason == "Completed" and running:
            ready = any(
                item["type"] == "Ready" and item["status"] == "True"
                for item in status.get("conditions") or []
            )
            reason = "Running" if ready else "NotReady"
    if get(pod, "metadata", "deletionTimestamp"):
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
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


def _init_reason(pod: Object) -> str:
    declared = get(pod, "spec", "initContainers") or []
    sidecars = {item["name"] for item in declared if item.get("restartPolicy") == "Always"}
    for index, container in enumerate(get(pod, "status", "initContainerStatuses") or []):
        ended = get(container, "state", "terminated")
        if ended is not None and ended.get("exitCode") == 0:
            continue
        if container.get("name") in sidecars and container.get("started"):
            continue
        told = _state_reason(container)
        if told and told != "PodInitializing":
            return f"Init:{told}"
        return f"Init:{index}/{len(declared)}"
    return ""
