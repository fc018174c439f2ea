"""The processes of a local cluster, found by what they were started with."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

API_PROGRAMS = {"embedded": "dragoman_devcluster.api", "kube-apiserver": "kube-apiserver"}


def api_server(kind: str, state: Path) -> int | None:
    """The API server of the cluster with a state directory."""
    mark = str(state.resolve())
    for process, words, _ in processes():
        serves = API_PROGRAMS[kind] in {Path(word).name for word in words[:3]}
        if serves and any(mark in word for word in words):
            return process
    return None


def main_process(pod: str) -> int:
    """The main process of an engine pod of the local cluster."""
    for process, words, environment in processes():
        # Its children have its environment, but no group of their own.
        if "serve" in words and f"HOSTNAME={pod}" in environment and os.getpgid(process) == process:
            return process
    raise RuntimeError(f"no process of pod {pod}")


def processes() -> Iterator[tuple[int, list[str], list[str]]]:
    """All processes that we may read: id, command line, environment."""
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words, environment = ((place / name).read_bytes() for name in ("cmdline", "environ"))
            yield (
                int(place.name),
                words.decode(errors="replace").split("\0"),
                environment.decode(errors="replace").split("\0"),
            )
