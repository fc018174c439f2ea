"""The processes of a local cluster, found by what they were started with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from dragoman_devcluster.state import born

API_PROGRAMS = {"embedded": "dragoman_devcluster.api", "kube-apiserver": "kube-apiserver"}


def api_server(kind: str, state: Path) -> int | None:
    """The API server of the cluster with a state directory."""
    mark = str(state.resolve())
    for process, words in processes():
        serves = API_PROGRAMS[kind] in {Path(word).name for word in words[:3]}
        if serves and any(mark in word for word in words):
            return process
    return None


def main_process(container_id: str) -> int:
    """The main process of a container of the local cluster, by the id in its pod's status.

    Raises:
        RuntimeError: It has ended.
    """
    process = int(container_id.removeprefix("process://"))
    if born(process) is None:
        raise RuntimeError(f"container {container_id} has ended")
    return process


def processes() -> Iterator[tuple[int, list[str]]]:
    """All processes: id and command line."""
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            yield int(place.name), (place / "cmdline").read_text(errors="replace").split("\0")
