"""A pod's phase and conditions, from those of its containers.

Source: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from dragoman_devcluster.node.backoff import should_restart
from dragoman_devcluster.node.container_status import ContainerView
from dragoman_kube.objects import Manifest, condition_of, is_true
from dragoman_kube.times import timestamp

OWN_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


@dataclass(frozen=True)
class PodView:
    """What the node knows of a pod that it runs.

    Args:
        pod: The pod as the API has it.
        init: Its init containers, in order.
        containers: Its containers, in order.
        address: Its address; empty before it has one.
        host: The node's address.
        started_at: When the node took it on.
        mounted: Whether its volumes are there.
    """

    pod: Manifest
    init: tuple[ContainerView, ...]
    containers: tuple[ContainerView, ...]
    address: str
    host: str
    started_at: datetime
    mounted: bool


def pod_status(view: PodView, now: datetime) -> Manifest:
    """The status that the node writes."""
    addresses = {"podIP": view.address, "podIPs": [{"ip": view.address}]} if view.address else {}
    return {
        "phase": pod_phase(view),
        "conditions": _conditions(view, now),
        "hostIP": view.host,
        "hostIPs": [{"ip": view.host}],
        **addresses,
        "startTime": timestamp(view.started_at),
        "initContainerStatuses": [container.status() for container in view.init],
        "containerStatuses": [container.status() for container in view.containers],
        "qosClass": (view.pod.get("status") or {}).get("qosClass") or "BestEffort",
    }


def pod_phase(view: PodView) -> str:
    """Pending until every container has run, then Running until all have ended for good."""
    policy = view.pod["spec"].get("restartPolicy") or "Always"
    if any(_ended_badly(container, policy) for container in view.init):
        return "Failed"
    if not _initialized(view) or any(_never_ran(container) for container in view.containers):
        return "Pending"
    codes = [container.exit_code for container in view.containers]
    final = [code for code in codes if code is not None and not should_restart(policy, code)]
    deleted = bool(view.pod["metadata"].get("deletionTimestamp")) and None not in codes
    if len(final) < len(codes) and not deleted:
        return "Running"
    return "Failed" if any(codes) else "Succeeded"


def _ended_badly(container: ContainerView, policy: str) -> bool:
    return bool(container.exit_code) and policy == "Never"


def _never_ran(container: ContainerView) -> bool:
    return "waiting" in container.state and not container.last_state


def _initialized(view: PodView) -> bool:
    return all(container.exit_code == 0 for container in view.init)


def _conditions(view: PodView, now: datetime) -> list[Manifest]:
    policy = view.pod["spec"].get("restartPolicy") or "Always"
    unready = [container.name for container in view.containers if not container.ready]
    uninitialized = [container.name for container in view.init if container.exit_code != 0]
    completed = policy != "Always" and not any(container.exit_code is None for container in view.containers)
    names = _listed(unready)
    why = (
        ("PodCompleted", "")
        if completed
        else ("ContainersNotReady", f"containers with unready status: {names}")
    )
    gates = [gate["conditionType"] for gate in view.pod["spec"].get("readinessGates") or ()]
    closed = [gate for gate in gates if not is_true(view.pod, gate)]
    gated = ("ReadinessGatesNotReady", f"the following readiness gates are not met: {', '.join(closed)}")
    initialized_why = (
        "ContainersNotInitialized",
        f"containers with incomplete status: {_listed(uninitialized)}",
    )
    found = [
        _condition("PodReadyToStartContainers", view.mounted),
        _condition("Initialized", not uninitialized, *initialized_why),
        _condition("Ready", not unready and not closed, *(why if unready else gated)),
        _condition("ContainersReady", not unready, *why),
        _condition("PodScheduled", True),
    ]
    dated = [_dated(view.pod, condition, now) for condition in found]
    foreign = (view.pod.get("status") or {}).get("conditions") or ()
    return dated + [condition for condition in foreign if condition["type"] not in OWN_CONDITIONS]


def _listed(names: Sequence[str]) -> str:
    return f"[{' '.join(names)}]"


def _condition(kind: str, met: bool, reason: str = "", message: str = "") -> Manifest:
    why = {} if met else {name: text for name, text in (("reason", reason), ("message", message)) if text}
    return {"type": kind, "status": "True" if met else "False", **why}


def _dated(pod: Manifest, condition: Manifest, now: datetime) -> Manifest:
    before = condition_of(pod, condition["type"])
    same = before is not None and before["status"] == condition["status"]
    since = before.get("lastTransitionTime") if before is not None and same else None
    return {**condition, "lastTransitionTime": since or timestamp(now)}
