"""A local cluster for one run, its processes, and the way to its API that can be cut."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from kubernetes.aio.client import ApiClient

from dragoman_devcluster.lifecycle import bring_up, take_down
from dragoman_devcluster.options import Backoff, ClusterOptions
from dragoman_devcluster.state import Supervisor, born
from dragoman_kube.config import configuration
from faults.line import Line

API_PROGRAMS = {"embedded": "dragoman_devcluster.api", "kube-apiserver": "kube-apiserver"}


@asynccontextmanager
async def local_cluster(
    directory: Path, api: str, preload: str | None = None
) -> AsyncIterator[tuple[ApiClient, Line, Supervisor]]:
    """A cluster that is up meanwhile.

    The kubeconfig `through-the-line` in the directory leads to its API by way of the line.

    Args:
        directory: The cluster's state goes to `cluster` in it.
        api: `embedded` or `kube-apiserver`.
        preload: Module that the process imports from which pods are forked; see `ClusterOptions`.

    Returns:
        A client of the API, not through the line; the line; the process that runs the cluster.
    """
    options = ClusterOptions(
        dir=directory / "cluster", api=api, gpus=0, backoff=Backoff(0.2, 2.0), preload=preload
    )
    supervisor = bring_up(options)
    kubeconfig = options.dir / "kubeconfig"
    try:
        document = yaml.safe_load(kubeconfig.read_text())
        server = urlsplit(document["clusters"][0]["cluster"]["server"])
        line = Line(str(server.hostname), int(server.port or 443))
        async with line.laid() as port, ApiClient(await configuration(kubeconfig)) as client:
            document["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
            (directory / "through-the-line").write_text(yaml.safe_dump(document))
            yield client, line, supervisor
    finally:
        take_down(options.dir)


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
