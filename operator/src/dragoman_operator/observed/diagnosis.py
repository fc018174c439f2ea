"""Reasons why pods are not ready, with the action to take."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from dragoman_kube.objects import condition_of, is_deleting, is_true
from dragoman_operator.api.labels import FETCH_CONTAINER
from dragoman_operator.observed.snapshot import Manifest

MESSAGE_LIMIT = 600
"""Maximum number of characters of a message that is quoted."""


class Finding(NamedTuple):
    """One failure, with the reason for a condition."""

    reason: str
    message: str


_IMAGE_REASONS = {
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
}
_CONFIG_REASON = "CreateContainerConfigError"
_RUNTIME_REASONS = {"CreateContainerError", "RunContainerError"}
_START_ERROR = "StartError"
"""Reason with which containerd and CRI-O end a container whose process never ran."""

_ORDER = (
    "DownloadFailed",
    "EngineFailed",
    "OOMKilled",
    "ImagePullFailed",
    "CreateContainerError",
    "FailedMount",
    "QuotaExceeded",
    "FailedCreate",
    "Unschedulable",
    "Evicted",
    "ProgressDeadlineExceeded",
)
"""The most specific first: a stalled rollout is always a consequence of another failure."""


def diagnose(
    deployment: Manifest | None,
    pods: Iterable[Manifest],
    mount_failures: Mapping[str, str] = MappingProxyType({}),
) -> list[Finding]:
    """All failures of the pods, the most specific first, each reason once.

    Pods that are being deleted are ignored. `mount_failures` has the kubelet's messages by the pod's uid.
    """
    found: dict[str, Finding] = {}
    for pod in pods:
        if not is_deleting(pod):
            for finding in (*_of_pod(pod), *_of_volumes(pod, mount_failures)):
                found.setdefault(finding.reason, finding)
    for finding in _of_deployment(deployment or {}):
        found.setdefault(finding.reason, finding)
    return sorted(found.values(), key=lambda finding: _ORDER.index(finding.reason))


def last_log_line(message: str) -> str:
    """The last line that is not empty: a termination message may be the end of a log."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return lines[-1][:MESSAGE_LIMIT] if lines else ""


def _of_pod(pod: Manifest) -> Iterator[Finding]:
    name, status = pod["metadata"]["name"], pod.get("status", {})
    if status.get("phase") == "Failed" and status.get("reason") == "Evicted":
        yield Finding("Evicted", f"pod {name} was evicted: {last_log_line(status.get('message', ''))}")
    scheduled = condition_of(pod, "PodScheduled") or {}
    if scheduled.get("status") == "False":
        message = last_log_line(scheduled.get("message", ""))
        if lacks_claim(pod):
            yield Finding("FailedMount", advice(name, message))
        else:
            yield Finding("Unschedulable", f"pod {name} cannot be scheduled: {message}")
    volumes = pod.get("spec", {}).get("volumes") or ()
    models = [volume["image"]["reference"] for volume in volumes if "image" in volume]
    for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        yield from _of_container(name, container, models)


def lacks_claim(pod: Manifest) -> bool:
    """Whether the scheduler waits for a PersistentVolumeClaim: it is missing, or has no volume.

    Source: the messages of kube-scheduler's plugin VolumeBinding.
    """
    scheduled = condition_of(pod, "PodScheduled") or {}
    message = str(scheduled.get("message") or "").lower()
    return scheduled.get("status") == "False" and "persistentvolumeclaim" in message


def _of_volumes(pod: Manifest, failures: Mapping[str, str]) -> Iterator[Finding]:
    metadata = pod["metadata"]
    if message := last_log_line(failures.get(metadata.get("uid", ""), "")):
        yield Finding("FailedMount", advice(metadata["name"], message))


def _of_container(pod: str, status: Mapping[str, Any], models: Iterable[str]) -> Iterator[Finding]:
    state = status.get("state") or {}
    waiting = state.get("waiting") or {}
    reason, message = waiting.get("reason", ""), last_log_line(waiting.get("message") or "")
    if reason in _IMAGE_REASONS:
        # The kubelet reports an image volume that it cannot pull in the container that mounts it.
        model = next((each for each in models if each in message), "")
        image, field = (model, "spec.model.uri") if model else (status.get("image", ""), "spec.image")
        yield Finding(
            "ImagePullFailed",
            f"the image {image} cannot be pulled ({reason}): {message or 'no detail'}; check {field} and "
            "spec.imagePullSecrets",
        )
    elif reason == _CONFIG_REASON:
        yield Finding(
            "CreateContainerError",
            f"pod {pod} cannot be started: {message or reason}; check Secrets, ConfigMaps and podTemplate.env",
        )
    terminated = state.get("terminated") or (status.get("lastState") or {}).get("terminated") or {}
    if (
        reason not in _RUNTIME_REASONS
        and terminated.get("reason") == _START_ERROR
        and not status.get("ready")
    ):
        reason, message = "RunContainerError", last_log_line(terminated.get("message") or "")
    if reason in _RUNTIME_REASONS:
        yield Finding(
            "CreateContainerError",
            f"the container runtime cannot start pod {pod}: {message or reason}; check podTemplate, and the "
            "container runtime and the GPU driver of its node",
        )
        return
    if status.get("ready") or not terminated:
        return
    is_fetch = status.get("name") == FETCH_CONTAINER
    who = "the download of the model" if is_fetch else "the engine"
    if terminated.get("reason") == "OOMKilled":
        yield Finding(
            "OOMKilled",
            f"{who} in pod {pod} was killed for using more memory than resources.limits.memory allows",
        )
    elif terminated.get("exitCode", 0) != 0:
        message = last_log_line(terminated.get("message") or "")
        code = terminated.get("exitCode")
        yield Finding(
            "DownloadFailed" if is_fetch else "EngineFailed",
            message or f"{who} in pod {pod} exited with status {code} and left no message",
        )


def _of_deployment(deployment: Manifest) -> Iterator[Finding]:
    for condition in deployment.get("status", {}).get("conditions") or ():
        message = last_log_line(condition.get("message") or "")
        match condition.get("type"), condition.get("status"), condition.get("reason"):
            case "ReplicaFailure", "True", _:
                reason = "QuotaExceeded" if "exceeded quota" in message else "FailedCreate"
                yield Finding(reason, f"pods cannot be created: {message}")
            case "Progressing", "False", "ProgressDeadlineExceeded":
                yield Finding(
                    "ProgressDeadlineExceeded",
                    "new pods did not become ready in time (rollout.startTimeout); check their logs",
                )


MOUNT_EVENT = "FailedMount"
"""Reason of the kubelet's warnings about volumes."""
MIN_REPEATS = 2
"""Minimum count of an event: a first failure may be caused by the kubelet's cache and resolve within a second."""

_FAILED = re.compile(r'MountVolume\.\w+ failed for volume "(?P<volume>[^"]+)" ?: (?P<why>.*)', re.DOTALL)


def is_waiting_for_volumes(pod: Manifest) -> bool:
    """Whether the pod is scheduled and its volumes are not mounted yet; the reason is in the kubelet's events only.

    Source: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-conditions: the condition
    comes after the mounts, and is on by default from Kubernetes 1.29.
    """
    status = pod.get("status", {})
    if is_deleting(pod) or not pod.get("spec", {}).get("nodeName"):
        return False
    return status.get("phase") == "Pending" and not is_true(pod, "PodReadyToStartContainers")


def mount_failures(pods: Iterable[Manifest], events: Iterable[Manifest]) -> dict[str, str]:
    """Why pods wait for their volumes, by the pod's uid: the last message of the kubelet.

    `events` are those of the reason `MOUNT_EVENT`, of any pod; single ones are ignored.
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
    """A kubelet's message with the action to take."""
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
