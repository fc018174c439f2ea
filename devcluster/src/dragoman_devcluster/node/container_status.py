"""A container's state as its pod reports it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from dragoman_kube.objects import Manifest
from dragoman_kube.times import timestamp

MESSAGE_BYTES = 4096
"""What of a termination message file is kept."""

LOG_BYTES, LOG_LINES = 2048, 80
"""What of the log stands in for a missing message.

Source: https://kubernetes.io/docs/tasks/debug/debug-application/determine-reason-pod-failure/
"""


@dataclass(frozen=True)
class ContainerView:
    """What there is to report about one container.

    Args:
        name: Its name.
        image: The image that its spec names; nothing of it is used.
        state: The ``state`` of a container status.
        last_state: How its former run ended; empty if there was none.
        ready: Whether it may get traffic.
        started: Whether it has passed its startup probe.
        restart_count: How often it was started again.
        container_id: Names the current process; empty if there never was one.
    """

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
    """Why a container ended, in its own words.

    Args:
        file: Its termination message file, which need not exist.
        log: Its log.
        use_log: Whether the end of the log stands in for an empty file.
    """
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
