"""Reasons why pods are not ready, with the action to take."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType

from dragoman_kube.objects import condition_of, has_ended, is_deleting, is_true
from dragoman_kube.times import parse_time
from dragoman_operator.observed.containers import Finding, failures_of_containers, last_log_line
from dragoman_operator.observed.scheduling import lacks_claim
from dragoman_operator.observed.snapshot import Manifest, is_live

_ORDER = (
    "DownloadFailed",
    "EngineFailed",
    "OOMKilled",
    "SidecarFailed",
    "ImagePullFailed",
    "CreateContainerError",
    "FailedMount",
    "QuotaExceeded",
    "FailedCreate",
    "PodRejected",
    "Unschedulable",
    "NodeUnreachable",
    "Evicted",
    "NodeShutdown",
    "Paused",
    "ProgressDeadlineExceeded",
)
"""The most specific first: a stalled rollout is always a consequence of another failure."""


def diagnose(
    deployment: Manifest | None,
    pods: Iterable[Manifest],
    mount_failures: Mapping[str, str] = MappingProxyType({}),
) -> list[Finding]:
    """All failures of the pods, the most specific first, each reason once.

    Of several pods with the same reason the newest is named: it has the current spec. Pods that are being deleted are
    ignored. `mount_failures` has the kubelet's messages by the pod's uid.
    """
    found: dict[str, Finding] = {}
    for pod in sorted(pods, key=_created, reverse=True):
        if not is_deleting(pod):
            for finding in (*_of_pod(pod), *_of_volumes(pod, mount_failures)):
                found.setdefault(finding.reason, finding)
    for finding in _of_deployment(deployment or {}):
        found.setdefault(finding.reason, finding)
    return sorted(found.values(), key=lambda finding: _ORDER.index(finding.reason))


_EVICTIONS = {"Evicted", "Preempting", "DeadlineExceeded"}
_SHUTDOWNS = {"Terminated", "NodeShutdown", "Shutdown"}
"""Reasons of the kubelet's graceful node shutdown; the name differs by the version of Kubernetes."""


def _of_pod(pod: Manifest) -> Iterator[Finding]:
    name, status = pod["metadata"]["name"], pod.get("status") or {}
    if status.get("phase") == "Failed" and (reason := status.get("reason")):
        yield _of_ended(name, reason, last_log_line(status.get("message") or ""))
    scheduled = condition_of(pod, "PodScheduled") or {}
    if scheduled.get("status") == "False":
        message = last_log_line(scheduled.get("message") or "")
        if lacks_claim(pod):
            yield Finding("FailedMount", advice(name, message))
        elif scheduled.get("reason") == "SchedulingGated":
            gates = ", ".join(gate["name"] for gate in (pod.get("spec") or {}).get("schedulingGates") or ())
            held = f"pod {name} is held back by its scheduling gates ({gates or 'not named'})"
            yield Finding("Unschedulable", f"{held}; the queue that set them, such as Kueue, removes them")
        else:
            yield Finding("Unschedulable", f"pod {name} cannot be scheduled: {message}")
    if not has_ended(pod):
        if is_unreachable(pod):
            node = (pod.get("spec") or {}).get("nodeName", "")
            why = "its containers are ready and the pod is not; Kubernetes replaces the pod if the node stays away"
            yield Finding("NodeUnreachable", f"the node {node} of pod {name} does not report: {why}")
        yield from failures_of_containers(pod)


def _of_ended(name: str, reason: str, message: str) -> Finding:
    """Why a node ended a pod, or did not start it."""
    if reason in _EVICTIONS:
        return Finding("Evicted", f"pod {name} was evicted: {message or reason}")
    if reason in _SHUTDOWNS:
        return Finding(
            "NodeShutdown", f"pod {name} was ended by the shutdown of its node: {message or reason}"
        )
    return Finding("PodRejected", f"the kubelet refused pod {name} ({reason}): {message or 'no detail'}")


def is_unreachable(pod: Manifest) -> bool:
    """Whether the node of a running pod has stopped reporting.

    The node controller then makes the pod unready, and its containers stay as the kubelet reported them last. A kubelet
    makes a pod with ready containers unready for a readiness gate only.
    """
    status = pod.get("status") or {}
    containers = status.get("containerStatuses") or ()
    ready = condition_of(pod, "Ready") or {}
    if status.get("phase") != "Running" or ready.get("status") not in ("False", "Unknown"):
        return False
    gated = ready.get("reason") == "ReadinessGatesNotReady"
    return bool(containers) and all(each.get("ready") for each in containers) and not gated


RECENT_S = 300.0
"""Time after which a pod that has ended explains nothing any more, if it was replaced."""


def is_past(pod: Manifest, pods: Iterable[Manifest], desired: int, now: datetime) -> bool:
    """Whether a pod has ended and was replaced; Kubernetes keeps such pods for days.

    It was replaced once there is a newer pod, or as many pods as desired; at first, a newer one must be ready.
    """
    if not has_ended(pod):
        return False
    live, ended = list(filter(is_live, pods)), _ended_at(pod)
    newer = [each for each in live if ended is None or _time_of(each["metadata"], ended) >= ended]
    if len(live) >= desired and any(is_true(each, "Ready") for each in newer):
        return True
    is_old = ended is not None and now - ended > timedelta(seconds=RECENT_S)
    return is_old and bool(newer or (live and len(live) >= desired))


def _created(pod: Manifest) -> str:
    """The time in RFC 3339 and UTC, as the API server writes it, which sorts as text."""
    return pod["metadata"].get("creationTimestamp") or ""


def _ended_at(pod: Manifest) -> datetime | None:
    """When a pod ended, by the last time in it; None if it has no time."""
    status = pod.get("status") or {}
    times = [status.get("startTime"), pod["metadata"].get("creationTimestamp")]
    times += [each.get("lastTransitionTime") for each in status.get("conditions") or ()]
    for container in status.get("containerStatuses") or ():
        times.append(((container.get("state") or {}).get("terminated") or {}).get("finishedAt"))
    return max((parse_time(time) for time in times if time), default=None)


def _time_of(metadata: Manifest, default: datetime) -> datetime:
    created = metadata.get("creationTimestamp")
    return parse_time(created) if created else default


def _of_volumes(pod: Manifest, failures: Mapping[str, str]) -> Iterator[Finding]:
    metadata = pod["metadata"]
    if message := last_log_line(failures.get(metadata.get("uid", ""), "")):
        yield Finding("FailedMount", advice(metadata["name"], message))


def _of_deployment(deployment: Manifest) -> Iterator[Finding]:
    if (deployment.get("spec") or {}).get("paused"):
        name = (deployment.get("metadata") or {}).get("name", "")
        why = "new pods keep the former spec until it is resumed: kubectl rollout resume deployment"
        yield Finding("Paused", f"another client paused the Deployment {name}; {why} {name}")
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
