"""The status of a pod: its containers' states, its phase and its conditions.

Source: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from dragoman_kube.objects import Manifest, with_transition_time
from dragoman_kube.times import timestamp

MESSAGE_BYTES = 4096
"""What of a termination message file is kept."""

LOG_BYTES, LOG_LINES = 2048, 80
"""What of the log stands in for a missing message.

Source: https://kubernetes.io/docs/tasks/debug/debug-application/determine-reason-pod-failure/
"""


@dataclass(frozen=True)
class ContainerView:
    """What there is to report about one container. `last_state` is how its former run ended."""

    name: str
    image: str
    state: Manifest
    last_state: Manifest = field(default_factory=dict)
    ready: bool = False
    started: bool = False
    restart_count: int = 0
    container_id: str = ""

    @property
    def exit_code(self) -> int | None:
        """Its exit code, if it has ended and does not wait to start again."""
        terminated = self.state.get("terminated")
        return None if terminated is None else int(terminated["exitCode"])

    def status(self) -> Manifest:
        """The container status."""
        return {
            "name": self.name,
            "image": self.image,
            "imageID": "",
            "state": self.state,
            "lastState": self.last_state,
            "ready": self.ready,
            "started": self.started,
            "restartCount": self.restart_count,
            **({"containerID": self.container_id} if self.container_id else {}),
        }


def waiting(reason: str, message: str = "") -> Manifest:
    """The state of a container that does not run yet."""
    return {"waiting": {"reason": reason, **({"message": message} if message else {})}}


def running(since: datetime) -> Manifest:
    """The state of a container that runs."""
    return {"running": {"startedAt": timestamp(since)}}


def terminated(
    exit_code: int, started: datetime, finished: datetime, message: str, container_id: str, reason: str = ""
) -> Manifest:
    """The state of a container that has ended; without a reason it is ``Completed`` or ``Error``."""
    return {
        "terminated": {
            "exitCode": exit_code,
            "reason": reason or ("Completed" if exit_code == 0 else "Error"),
            "startedAt": timestamp(started),
            "finishedAt": timestamp(finished),
            "containerID": container_id,
            **({"message": message} if message else {}),
        }
    }


def termination_message(file: Path, log: Path, *, use_log: bool) -> str:
    """What a container reported about its end; with `use_log` the end of its log stands in for an empty file."""
    message = _tail(file, MESSAGE_BYTES, from_start=True)
    if message or not use_log:
        return message
    return "".join(_tail(log, LOG_BYTES).splitlines(keepends=True)[-LOG_LINES:])


def _tail(path: Path, size: int, *, from_start: bool = False) -> str:
    try:
        with path.open("rb") as file:
            if not from_start:
                file.seek(max(0, path.stat().st_size - size))
            return file.read(size).decode(errors="replace")
    except OSError:
        return ""


@dataclass(frozen=True)
class PodView:
    """What the node knows of a pod that it runs. `address` is empty before it has one."""

    pod: Manifest
    containers: tuple[ContainerView, ...]
    address: str
    host: str
    started_at: datetime
    mounted: bool
    init: tuple[ContainerView, ...] = ()
    """Init containers; one is ready once it has succeeded."""

    @property
    def initialized(self) -> bool:
        """Whether all init containers have succeeded."""
        return all(container.exit_code == 0 for container in self.init)


def pod_status(view: PodView, now: datetime) -> Manifest:
    """The status that the node writes."""
    addresses = {"podIP": view.address, "podIPs": [{"ip": view.address}]} if view.address else {}
    init = [replace(container, ready=container.exit_code == 0).status() for container in view.init]
    return {
        "phase": pod_phase(view),
        "conditions": _conditions(view, now),
        "hostIP": view.host,
        "hostIPs": [{"ip": view.host}],
        **addresses,
        "startTime": timestamp(view.started_at),
        **({"initContainerStatuses": init} if init else {}),
        "containerStatuses": [container.status() for container in view.containers],
    }


def pod_phase(view: PodView) -> str:
    """Pending until every container has run, then Running until all have ended for good.

    Failed if an init container has failed and is not restarted.
    """
    policy = view.pod["spec"].get("restartPolicy") or "Always"
    if policy == "Never" and any(container.exit_code for container in view.init):
        return "Failed"
    if any(_never_ran(container) for container in view.containers):
        return "Pending"
    codes = [container.exit_code for container in view.containers]
    final = [code for code in codes if code is not None and not should_restart(policy, code)]
    deleted = bool(view.pod["metadata"].get("deletionTimestamp")) and None not in codes
    if len(final) < len(codes) and not deleted:
        return "Running"
    return "Failed" if any(codes) else "Succeeded"


def _never_ran(container: ContainerView) -> bool:
    return "waiting" in container.state and not container.last_state


def _conditions(view: PodView, now: datetime) -> list[Manifest]:
    policy = view.pod["spec"].get("restartPolicy") or "Always"
    unready = [container.name for container in view.containers if not container.ready]
    completed = policy != "Always" and not any(container.exit_code is None for container in view.containers)
    running_init = [container.name for container in view.init if container.exit_code != 0]
    incomplete = f"containers with incomplete status: [{' '.join(running_init)}]"
    unready_message = f"containers with unready status: [{' '.join(unready)}]"
    why = ("PodCompleted", "") if completed else ("ContainersNotReady", unready_message)
    found = [
        _condition("PodReadyToStartContainers", view.mounted),
        _condition("Initialized", view.initialized, "ContainersNotInitialized", incomplete),
        _condition("Ready", not unready, *why),
        _condition("ContainersReady", not unready, *why),
        _condition("PodScheduled", True),
    ]
    return [with_transition_time(view.pod, condition, now) for condition in found]


def _condition(kind: str, met: bool, reason: str = "", message: str = "") -> Manifest:
    why = {} if met else {name: text for name, text in (("reason", reason), ("message", message)) if text}
    return {"type": kind, "status": "True" if met else "False", **why}


def should_restart(policy: str, exit_code: int) -> bool:
    """Whether the pod's restartPolicy has a container that ended with this code start again."""
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)
