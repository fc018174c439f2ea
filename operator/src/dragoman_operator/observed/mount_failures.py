"""Pods that wait for their volumes: a pod's status says that it does, and only the kubelet's events say why."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dragoman_operator.observed.snapshot import Manifest

MOUNT_EVENT = "FailedMount"
"""Reason of the kubelet's warnings about volumes."""
TOLD_AGAIN = 2
"""Times that a kubelet has to say it: what its cache does not know yet at a pod's start is there a second later."""

_FAILED = re.compile(r'MountVolume\.\w+ failed for volume "(?P<volume>[^"]+)" ?: (?P<why>.*)', re.DOTALL)


def awaits_volumes(pod: Manifest) -> bool:
    """Whether a node has taken the pod and has yet to mount what it asks for.

    Source: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-conditions: the condition
    comes after the mounts, and is on by default from Kubernetes 1.29.
    """
    status = pod.get("status", {})
    if "deletionTimestamp" in pod["metadata"] or not pod.get("spec", {}).get("nodeName"):
        return False
    begun = {item.get("type"): item.get("status") for item in status.get("conditions") or ()}
    return status.get("phase") == "Pending" and begun.get("PodReadyToStartContainers") != "True"


def mount_failures(pods: Iterable[Manifest], events: Iterable[Manifest]) -> dict[str, str]:
    """Why pods wait for their volumes, by the pod's uid, as the kubelet said last.

    Args:
        pods: What may wait.
        events: Those of the reason `MOUNT_EVENT`, in any order, of any pod. What was said once is passed over.
    """
    waiting = {pod["metadata"]["uid"] for pod in pods if awaits_volumes(pod)}
    said: dict[str, str] = {}
    # What was said of one volume tells more than the sum that follows it ("timed out waiting for …").
    for event in sorted(events, key=lambda event: (bool(_FAILED.search(_message(event))), _time(event))):
        uid = (event.get("involvedObject") or {}).get("uid", "")
        if uid in waiting and _message(event) and _count(event) >= TOLD_AGAIN:
            said[uid] = _message(event)
    return said


def advice(pod: str, message: str) -> str:
    """A kubelet's message as a sentence that says what to do.

    Args:
        pod: Name of the pod.
        message: Of the event; one line.
    """
    match = _FAILED.search(message)
    if match is None:
        return f"pod {pod} waits for its volumes: {message}; check the claims that the spec names"
    if match["volume"] == "glossary":
        return (
            f"pod {pod} waits for its glossary: {match['why']}; create the ConfigMap of "
            "spec.glossary.configMapRef in this namespace, with its key, or change spec.glossary"
        )
    return (
        f"pod {pod} waits for its volume {match['volume']}: {match['why']}; check spec.model.uri and "
        "spec.model.cache"
    )


def _message(event: Manifest) -> str:
    return str(event.get("message") or "")


def _count(event: Manifest) -> int:
    return int(event.get("count") or (event.get("series") or {}).get("count") or 1)


def _time(event: Manifest) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")
