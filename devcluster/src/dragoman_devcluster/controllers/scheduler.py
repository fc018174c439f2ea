"""The scheduler: binds pods to the one node, or reports why it cannot.

Only whole devices are counted: CPU and memory are the machine's own, shared with everything that runs on it,
and labels and taints tell nodes apart, of which there is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from dragoman_devcluster.controllers.controller import work_queue
from dragoman_devcluster.node.launch import container_devices
from dragoman_kube.events import EventRecorder, EventWriter
from dragoman_kube.kinds import POD
from dragoman_kube.mirror import Mirror
from dragoman_kube.objects import Key, Manifest, condition_of, has_ended, is_deleting, key_of
from dragoman_kube.times import timestamp


class Scheduler:
    """Schedules every pod that has no node."""

    def __init__(self, mirror: Mirror, events: EventWriter, node: str, devices: Mapping[str, int]) -> None:
        self._mirror = mirror
        self._node = node
        self._devices = devices
        self._events = EventRecorder(events, "default-scheduler")
        self.queue = work_queue("scheduler")

    def start(self) -> None:
        """Follow pods: new ones have to be scheduled, and ended ones free devices."""
        self._mirror.follow(POD, self._changed)

    async def reconcile(self, key: Key) -> float | None:
        """Bind one pod, or report that it does not fit."""
        pod = self._mirror.get(POD, key)
        if pod is None or not waits_for_node(pod):
            return None
        bound = [other for other in self._mirror.list(POD) if other["spec"].get("nodeName") == self._node]
        if why := place(pod, bound, self._devices):
            await self._report(pod, why)
        else:
            await self._bind(pod)
        return None

    async def _bind(self, pod: Manifest) -> None:
        namespace, name = key_of(pod)
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": pod["metadata"]["uid"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": self._node},
        }
        await self._mirror.client.request("POST", POD.path(namespace, name, "binding"), body=body)
        # The response to a binding is a Status; the next decision needs the pod with its node.
        bound = await self._mirror.client.get(POD, key_of(pod))
        if bound is not None:
            self._mirror.store(POD, bound)
        message = f"Successfully assigned {namespace}/{name} to {self._node}"
        self._events.record(pod, "Scheduled", message)

    async def _report(self, pod: Manifest, message: str) -> None:
        before = condition_of(pod, "PodScheduled")
        if before is not None and before.get("message") == message:
            return
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
            "lastTransitionTime": timestamp(datetime.now(UTC)),
        }
        status = {"phase": "Pending", "conditions": [condition]}
        await self._mirror.merge(POD, key_of(pod), {"status": status}, "status")
        self._events.record(pod, "FailedScheduling", message, warning=True)

    def _changed(self, _old: Manifest | None, new: Manifest | None) -> None:
        if new is not None and waits_for_node(new):
            self.queue.add(key_of(new))
        elif new is None or has_ended(new):
            for pod in self._mirror.list(POD):
                if waits_for_node(pod):
                    self.queue.add(key_of(pod))


def place(pod: Manifest, bound: Sequence[Manifest], devices: Mapping[str, int]) -> str:
    """Why a pod does not fit on the node; empty if it fits."""
    wanted = requested_devices(pod)
    running = [other for other in bound if not has_ended(other)]
    missing = []
    for name, count in wanted.items():
        taken = sum(requested_devices(other).get(name, 0) for other in running)
        if taken + count > devices.get(name, 0):
            missing.append(f"Insufficient {name}")
    if missing:
        reasons = ", ".join(f"1 {reason}" for reason in sorted(missing))
        message = f"0/1 nodes are available: {reasons}."
        if any(0 < devices.get(name, 0) < count for name, count in wanted.items()):
            # kube-scheduler says so of requests that are above the whole node.
            message += " preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        return message
    return ""


def requested_devices(pod: Manifest) -> dict[str, int]:
    """Extended resources (names with a domain) that the pod's containers request, summed by name.

    Limits and requests of an extended resource are equal; one alone may be given.
    """
    total: dict[str, int] = {}
    for container in pod["spec"].get("containers") or ():
        for name, count in container_devices(container).items():
            total[name] = total.get(name, 0) + count
    return total


def waits_for_node(pod: Manifest) -> bool:
    """Whether the pod waits for the scheduler."""
    spec = pod["spec"]
    return not spec.get("nodeName") and not spec.get("schedulingGates") and not is_deleting(pod)
