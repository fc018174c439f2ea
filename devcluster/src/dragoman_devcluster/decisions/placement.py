"""Whether a pod that has no node yet fits on the one node there is.

Only whole devices are counted: CPU and memory are the machine's own, shared with everything that runs on it,
and labels and taints tell nodes apart, of which there is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dragoman_devcluster.decisions.replicas import phase_of
from dragoman_kube.objects import Manifest, is_deleting


@dataclass(frozen=True)
class Bind:
    """The pod may run on the node."""


@dataclass(frozen=True)
class Unschedulable:
    """The pod has to wait; `message` is for its PodScheduled condition."""

    message: str


def place(pod: Manifest, bound: Sequence[Manifest], devices: Mapping[str, int]) -> Bind | Unschedulable:
    """Decide about one pod.

    Args:
        pod: The pod.
        bound: The pods on the node.
        devices: How many of each extended resource the node has, such as ``{"nvidia.com/gpu": 1}``.
    """
    wanted = requested_devices(pod)
    running = [other for other in bound if phase_of(other) not in ("Succeeded", "Failed")]
    missing = []
    for name, count in wanted.items():
        taken = sum(requested_devices(other).get(name, 0) for other in running)
        if taken + count > devices.get(name, 0):
            missing.append(f"Insufficient {name}")
    if missing:
        reasons = ", ".join(f"1 {reason}" for reason in sorted(missing))
        return Unschedulable(f"0/1 nodes are available: {reasons}.")
    return Bind()


def requested_devices(pod: Manifest) -> dict[str, int]:
    """Extended resources (names with a domain) that the pod's containers request, summed by name.

    Limits and requests of an extended resource are equal; one alone may be given.
    """
    total: dict[str, int] = {}
    for container in pod["spec"].get("containers") or ():
        for name, count in container_devices(container).items():
            total[name] = total.get(name, 0) + count
    return total


def container_devices(container: Manifest) -> dict[str, int]:
    """Extended resources that one container requests."""
    resources = container.get("resources") or {}
    asked = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    return {name: int(count) for name, count in asked.items() if "/" in name and int(count)}


def waits_for_node(pod: Manifest) -> bool:
    """Whether the pod waits for the scheduler."""
    spec = pod["spec"]
    return not spec.get("nodeName") and not spec.get("schedulingGates") and not is_deleting(pod)
