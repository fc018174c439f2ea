"""Pods that wait for their volumes. The reason is in the kubelet's events only."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dragoman_operator.observed.snapshot import Manifest

MOUNT_EVENT = "FailedMount"
"""Reason of the kubelet's warnings about volumes."""
MIN_REPEATS = 2
"""Minimum count of an event: a first failure may be caused by the kubelet's cache and resolve within a second."""

_FAILED = re.compile(r'MountVolume\.\w+ failed for volume "(?P<volume>[^"]+)" ?: (?P<why>.*)', re.DOTALL)


def is_waiting_for_volumes(pod: Manifest) -> bool:
    """Whether the pod is scheduled and its volumes are not mounted yet.

    Source: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-conditions: the condition
    comes after the mounts, and is on by default from Kubernetes 1.29.
    """
    status = pod.get("status", {})
    if "deletionTimestamp" in pod["metadata"] or not pod.get("spec", {}).get("nodeName"):
        return False
    conditions = {item.get("type"): item.get("status") for item in status.get("conditions") or ()}
    return status.get("phase") == "Pending" and conditions.get("PodReadyToStartContainers") != "True"


def mount_failures(pods: Iterable[Manifest], events: Iterable[Manifest]) -> dict[str, str]:
    """Why pods wait for their volumes, by the pod's uid: the last message of the kubelet.

    Args:
        pods: Pods that may be waiting.
        events: Those of the reason `MOUNT_EVENT`, in any order, of any pod. Single ones are ignored.
    """
    waiting = {pod["metadata"]["uid"] for pod in pods if is_waiting_for_volumes(pod)}
    messages: dict[str, str] = {}
    # The message about one volume is more specific than the summary after it ("timed out waiting for …").
    for event in sorted(events, key=lambda event: (bool(_FAILED.search(_message(event))), _time(event))):
        uid = (event.get("involvedObject") or {}).get("uid", "")
        if uid in waiting and _message(event) and _count(event) >= MIN_REPEATS:
            messages[uid] = _message(event)
    return messages


def advice(pod: str, message: str) -> str:
    """A kubelet's message with the action to take.

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
            "spec.glossary.configMapKeyRef in this namespace, with its key, or change spec.glossary"
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
