"""Why a container of an engine pod fails: the engine, the download of the model, or one that others added."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from dragoman_operator.api.labels import ENGINE_CONTAINER, FETCH_CONTAINER
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
_SIGNALLED = 128
"""Exit statuses above it are signals: the process wrote no reason, and a message is the end of its log."""
_KILLS = {137: "SIGKILL", 143: "SIGTERM"}
"""Exit statuses of processes that others ended."""
_ROUTINE = (" INFO ", " DEBUG ")
"""Levels of lines of a log that report no failure."""


def last_log_line(message: str) -> str:
    """The last line that is not empty: a termination message may be the end of a log."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return lines[-1][:MESSAGE_LIMIT] if lines else ""


def failures_of_containers(pod: Manifest) -> Iterator[Finding]:
    """The failures of a pod's containers, init containers first."""
    name, status = pod["metadata"]["name"], pod.get("status") or {}
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    models = [volume["image"]["reference"] for volume in volumes if "image" in volume]
    for kind in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(kind) or ():
            if container.get("name") in (ENGINE_CONTAINER, FETCH_CONTAINER):
                yield from _of_own(name, container, models)
            else:
                yield from _of_other(
                    name, container, "init container" if kind.startswith("init") else "container"
                )


def _of_own(pod: str, status: Mapping[str, Any], models: Iterable[str]) -> Iterator[Finding]:
    """Failures of the engine or of the download of the model."""
    reason, message = _waiting(status)
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
    elif reason in _RUNTIME_REASONS:
        yield Finding(
            "CreateContainerError",
            f"the container runtime cannot start pod {pod}: {message or reason}; check podTemplate, and the "
            "container runtime and the GPU driver of its node",
        )
    elif ended := _failed_end(status):
        is_fetch = status.get("name") == FETCH_CONTAINER
        who = "the download of the model" if is_fetch else "the engine"
        if ended.get("reason") == "OOMKilled":
            message = (
                f"{who} in pod {pod} was killed for using more memory than resources.limits.memory allows"
            )
            yield Finding("OOMKilled", message)
        else:
            yield Finding(
                "DownloadFailed" if is_fetch else "EngineFailed", _written(ended) or _end(who, pod, ended)
            )


def _of_other(pod: str, status: Mapping[str, Any], kind: str) -> Iterator[Finding]:
    """The failure of a container that is not in the operator's template: an admission webhook added it."""
    reason, message = _waiting(status)
    who = f"the {kind} {status.get('name')} (image {status.get('image', '')})"
    problem = ""
    if reason in _IMAGE_REASONS:
        problem = f"the image of {who} in pod {pod} cannot be pulled ({reason}): {message or 'no detail'}"
    elif reason == _CONFIG_REASON or reason in _RUNTIME_REASONS:
        problem = f"{who} in pod {pod} cannot be started: {message or reason}"
    elif ended := _failed_end(status):
        problem = f"{who} in pod {pod} was killed for using more memory than its limit allows"
        if ended.get("reason") != "OOMKilled":
            problem = _end(who, pod, ended)
    if problem:
        yield Finding("SidecarFailed", f"{problem}; Dragoman did not add this container")


def _waiting(status: Mapping[str, Any]) -> tuple[str, str]:
    """Why a container cannot be started, and the message; the reason is empty if it was or is being started."""
    waiting = (status.get("state") or {}).get("waiting") or {}
    reason, message = waiting.get("reason", ""), last_log_line(waiting.get("message") or "")
    ended = _end_of(status)
    if reason not in _RUNTIME_REASONS and ended.get("reason") == _START_ERROR and not status.get("ready"):
        return "RunContainerError", last_log_line(ended.get("message") or "")
    return reason, message


def _end_of(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """How a container ended, now or before it was restarted; empty if it never did."""
    found: Mapping[str, Any] = (status.get("state") or {}).get("terminated") or {}
    return found or (status.get("lastState") or {}).get("terminated") or {}


def _failed_end(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """How a container that is not ready failed; empty if it did not."""
    ended = {} if status.get("ready") else _end_of(status)
    looping = ((status.get("state") or {}).get("waiting") or {}).get("reason") == "CrashLoopBackOff"
    return ended if ended.get("reason") == "OOMKilled" or ended.get("exitCode", 0) != 0 or looping else {}


def _written(ended: Mapping[str, Any]) -> str:
    """The reason that the process itself gave; empty if it gave none, and its message is a line of its log."""
    line = last_log_line(ended.get("message") or "")
    is_reason = 0 < ended.get("exitCode", 0) <= _SIGNALLED and not any(level in line for level in _ROUTINE)
    return line if is_reason else ""


def _end(who: str, pod: str, ended: Mapping[str, Any]) -> str:
    """How a process ended that gave no reason."""
    code, line = ended.get("exitCode", 0), last_log_line(ended.get("message") or "")
    if signal := _KILLS.get(code):
        # The end of the log is that of a process that works.
        why = "a probe failed too often, or its node had no memory left or stopped it; the pod's events have the cause"
        return f"{who} in pod {pod} was killed ({signal}, exit status {code}): {why}"
    text = f"{who} in pod {pod} exited with status {code}"
    return f"{text}; its log ends with: {line}" if line else f"{text} and left no message"
