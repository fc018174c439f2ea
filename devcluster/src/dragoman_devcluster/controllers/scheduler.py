"""The scheduler: binds pods to the one node, or reports why it cannot."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from dragoman_devcluster.controllers.queue import work_queue
from dragoman_devcluster.decisions.placement import Unschedulable, place, waits_for_node
from dragoman_devcluster.mirror import Mirror
from dragoman_kube.events import EventRecorder, EventWriter
from dragoman_kube.kinds import POD
from dragoman_kube.objects import Key, Manifest, condition_of, key_of
from dragoman_kube.times import timestamp


class Scheduler:
    """Schedules every pod that has no node.

    Args:
        mirror: The cluster's objects.
        events: Where to report.
        node: The node's name.
        devices: Extended resources that the node has, by name.
    """

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
        decision = place(pod, bound, self._devices)
        if isinstance(decision, Unschedulable):
            await self._report(pod, decision.message)
            return None
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
            self._mirror.learn(POD, bound)
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
        elif new is None or (new.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            for pod in self._mirror.list(POD):
                if waits_for_node(pod):
                    self.queue.add(key_of(pod))
