"""A local cluster for one run, and the way to its API that can be cut."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from kubernetes.aio.client import ApiClient

from dragoman_bench.line import Line
from dragoman_devcluster.lifecycle import bring_up, take_down
from dragoman_devcluster.node.backoff import Backoff
from dragoman_devcluster.options import ClusterOptions
from dragoman_devcluster.state import Supervisor
from dragoman_kube.config import configuration


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
