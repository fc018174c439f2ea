"""An API server that is killed: it comes back with all it held, and nothing that runs has to."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest
from kubernetes.aio.client import CoreV1Api
from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.watch import Watch

from dragoman_local.lifecycle import bring_up, take_down
from dragoman_local.node.backoff import Backoff
from dragoman_local.options import ClusterOptions
from dragoman_local.state import READY, read_supervisor

pytestmark = pytest.mark.cluster

PROGRAMS = {"embedded": "dragoman_local.api", "kube-apiserver": "kube-apiserver"}

STUBBORN = """
import os, pathlib, signal, time
told = []
signal.signal(signal.SIGTERM, lambda *_: told.append(1))
pathlib.Path(os.environ["PLACE"], "up").touch()
while not told or not pathlib.Path(os.environ["PLACE"], "go").exists():
    time.sleep(0.01)
"""
"""Ends after SIGTERM, and not before a file says so."""


def server_process(cluster):
    """The API server's process, or None."""
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = line.read_text().split("\0")
            mine = any(word.startswith(f"{cluster.dir}") or f"={cluster.dir}" in word for word in words)
            if mine and any(Path(word).name == PROGRAMS[cluster.api] for word in words[:3]):
                return int(line.parent.name)
    return None


async def kill_server(cluster):
    """SIGKILL to the API server; its process id."""
    pid = server_process(cluster)
    os.kill(pid, signal.SIGKILL)
    return pid


async def back(workloads, cluster, killed):
    """Wait for another API server."""
    async with asyncio.timeout(90):
        while (now := server_process(cluster)) in (None, killed):
            await asyncio.sleep(0.05)
        while True:
            with suppress(aiohttp.ClientError, ApiException, OSError):
                await workloads.core.read_namespace("default")
                return now
            await asyncio.sleep(0.05)


async def changes(workloads, version):
    """Config maps of the namespace that were added after a version, from a watch that began there."""
    found = []
    async with Watch().stream(
        workloads.core.list_namespaced_config_map,
        workloads.namespace,
        resource_version=version,
        timeout_seconds=1,
    ) as events:
        async for event in events:
            found.append(event["object"].metadata.name)
    return found


async def write(workloads, name):
    """A config map; its version."""
    made = await workloads.core.create_namespaced_config_map(workloads.namespace, {"metadata": {"name": name}})
    return int(made.metadata.resource_version)


async def test_a_killed_api_server_comes_back_with_all_it_held(cluster, workloads, server):
    await workloads.deploy("web", server(), replicas=2)
    await workloads.all_ready("web")
    before = await workloads.pods("web")
    first = await write(workloads, "first")
    second = await write(workloads, "second")
    await back(workloads, cluster, await kill_server(cluster))

    assert await changes(workloads, str(first)) == ["second"]
    assert await write(workloads, "third") > second
    after = await workloads.pods("web")
    assert [pod.metadata.uid for pod in after] == [pod.metadata.uid for pod in before]
    assert [pod.status.container_statuses[0].container_id for pod in after] == [
        pod.status.container_statuses[0].container_id for pod in before
    ]
    # Controllers and node go on.
    await workloads.core.delete_namespaced_pod(before[0].metadata.name, workloads.namespace)
    await workloads.until(
        lambda: workloads.pods("web"),
        lambda pods: len(pods) == 2 and before[0].metadata.uid not in {pod.metadata.uid for pod in pods},
    )
    await workloads.all_ready("web")


async def test_a_pod_that_ends_meanwhile_is_gone_afterwards(cluster, workloads, tmp_path):
    command = ["python", "-S", "-c", STUBBORN]
    place = [{"name": "PLACE", "value": str(tmp_path)}]
    await workloads.run("stubborn", {"name": "main", "image": "none", "command": command, "env": place})
    async with asyncio.timeout(30):
        while not (tmp_path / "up").exists():
            await asyncio.sleep(0.05)
    await workloads.core.delete_namespaced_pod("stubborn", workloads.namespace, grace_period_seconds=30)
    killed = await kill_server(cluster)
    (tmp_path / "go").touch()
    await back(workloads, cluster, killed)
    await workloads.until_gone(lambda: workloads.pod("stubborn"))


async def test_one_that_does_not_start_again_ends_the_cluster_with_a_reason(tmp_path):
    place = tmp_path / "cluster"
    bring_up(ClusterOptions(dir=place, api="embedded", gpus=0, backoff=Backoff(0.2, 2.0)))
    try:
        supervisor = read_supervisor(place)
        assert supervisor.phase == READY
        # Whatever has taken its state away, it cannot serve from a file.
        for path in (place / "api").glob("store.sqlite3*"):
            path.unlink()
        (place / "api" / "store.sqlite3").mkdir()
        for line in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                words = line.read_text().split("\0")
                if "dragoman_local.api" in words and str(place) in words:
                    os.kill(int(line.parent.name), signal.SIGKILL)
        async with asyncio.timeout(60):
            while supervisor.is_alive:
                await asyncio.sleep(0.05)
        log = (place / "logs" / "cluster.log").read_text()
        assert "the API server ended" in log
        assert "unable to open database file" in log
    finally:
        take_down(place)
