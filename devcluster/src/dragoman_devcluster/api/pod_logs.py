"""Containers' output, from the files that the node writes: DIRECTORY/NAMESPACE/POD/CONTAINER.log.

Lines are plain output. A file that a restart moved aside is CONTAINER.previous.log.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

from dragoman_devcluster.api.errors import ApiError
from dragoman_devcluster.api.objects import Object, get

_FOLLOW_S = 0.1
"""Interval at which a followed file is read; waiting for a file would need inotify."""

_CHUNK_BYTES = 65_536


@dataclass(frozen=True)
class LogOptions:
    """The requested part of a container's output."""

    container: str = ""
    follow: bool = False
    previous: bool = False
    tail_lines: int | None = None


def log_path(directory: Path, pod: Object, options: LogOptions) -> Path:
    """The file of a pod's container; ApiError (BadRequest) if it is not clear which, or if it has not started."""
    meta = pod["metadata"]
    name = options.container or _only_container(pod)
    if name not in [container["name"] for container in pod["spec"]["containers"]]:
        raise ApiError("BadRequest", f"container {name} is not valid for pod {meta['name']}")
    suffix = ".previous.log" if options.previous else ".log"
    path = directory / str(meta["namespace"]) / str(meta["name"]) / f"{name}{suffix}"
    if not path.exists():
        if options.previous:
            raise ApiError(
                "BadRequest", f'previous terminated container "{name}" in pod "{meta["name"]}" not found'
            )
        reason = _waiting_reason(pod, name)
        raise ApiError(
            "BadRequest",
            f'container "{name}" in pod "{meta["name"]}" is waiting to start: {reason or "ContainerCreating"}',
        )
    return path


def _only_container(pod: Object) -> str:
    names = [container["name"] for container in pod["spec"]["containers"]]
    if len(names) == 1:
        return str(names[0])
    raise ApiError(
        "BadRequest",
        f"a container name must be specified for pod {pod['metadata']['name']}, choose one of: [{' '.join(names)}]",
    )


def _waiting_reason(pod: Object, name: str) -> str:
    for status in get(pod, "status", "containerStatuses") or []:
        if status.get("name") == name:
            return str(get(status, "state", "waiting", "reason") or "")
    return ""


def read(path: Path, options: LogOptions) -> bytes:
    """The output so far, limited to the requested part."""
    return _cut(path.read_bytes(), options)


def _cut(content: bytes, options: LogOptions) -> bytes:
    if options.tail_lines is None:
        return content
    lines = content.splitlines(keepends=True)
    return b"".join(lines[-options.tail_lines :] if options.tail_lines else [])


async def follow(path: Path, options: LogOptions, running: Callable[[], bool]) -> AsyncIterator[bytes]:
    """The output so far and what is added to it, until the container has stopped (`running` is False)."""
    so_far = read(path, LogOptions())
    yield _cut(so_far, options)
    position = len(so_far)
    while True:
        alive = running()
        try:
            with path.open("rb") as file:
                if os.fstat(file.fileno()).st_size < position:
                    position = 0  # A restarted container begins its file anew.
                file.seek(position)
                while chunk := file.read(_CHUNK_BYTES):
                    position += len(chunk)
                    yield chunk
        except FileNotFoundError:
            return
        if not alive:
            return
        await asyncio.sleep(_FOLLOW_S)


def is_running(pod: Object | None, container: str) -> bool:
    """Whether a container may still write: its pod exists, and its status does not report its end."""
    if pod is None or get(pod, "status", "phase") in ("Succeeded", "Failed"):
        return False
    for status in get(pod, "status", "containerStatuses") or []:
        if status.get("name") == container:
            return not get(status, "state", "terminated")
    return True
