"""An API server that is killed: it comes back with all it held, and nothing that runs has to."""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest
from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.watch import Watch
from tests.support.waiting import until

from dragoman_devcluster.lifecycle import bring_up, take_down
from dragoman_devcluster.options import Backoff, ClusterOptions
from dragoman_devcluster.state import READY, read_supervisor

pytestmark = pytest.mark.cluster

PROGRAMS = {"embedded": "dragoman_devcluster.api", "kube-apiserver": "kube-apiserver"}

STUBBORN = """
import os, pathlib, signal, time
signals = []
signal.signal(signal.SIGTERM, lambda *_: signals.append(1))
pathlib.Path(os.environ["PLACE"], "up").touch()
while not signals or not pathlib.Path(os.environ["PLACE"], "go").exists():
    time.sleep(0.01)
"""
"""Ends after SIGTERM, once a file exists."""


def server_process(kind, directory):
    """The process of the API server that has its state there, or None."""
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = line.read_text().split("\0")
            programs = {Path(word).name for word in words[:3]}
            if PROGRAMS[kind] in programs and any(str(directory) in word for word in words):
                return int(line.parent.name)
    return None


def kill_server(kind, directory):
    """SIGKILL to it; its process id."""
    pid = server_process(kind, directory)
    os.kill(pid, signal.SIGKILL)
    return pid


async def back(workloads, cluster, killed):
    """Wait for another API server."""
    await until(lambda: server_process(cluster.api, cluster.dir) not in (None, killed))
    async with asyncio.timeout(90):
        while True:
            with suppress(aiohttp.ClientError, ApiException, OSError):
                await workloads.core.read_namespace("default")
                return
            await asyncio.sleep(0.05)


async def changes(workloads, version):
    """Config maps of the namespace that were added after a version, by a watch from there."""
    listing = workloads.core.list_namespaced_config_map
    options = {"resource_version": str(version), "timeout_seconds": 1}
    async with Watch().stream(listing, workloads.namespace, **options) as events:
        return [event["object"].metadata.name async for event in events]


async def write(workloads, name):
    """A config map; its version."""
    made = await workloads.core.create_namespaced_config_map(
        workloads.namespace, {"metadata": {"name": name}}
    )
    return int(made.metadata.resource_version)


def identities(pods):
    """What changes when a pod or its container is started anew."""
    return [(pod.metadata.uid, pod.status.container_statuses[0].container_id) for pod in pods]


async def test_a_killed_api_server_comes_back_with_all_it_held(cluster, workloads, server):
    await workloads.deploy("web", server(), replicas=2)
    await workloads.all_ready("web")
    before = await workloads.pods("web")
    first = await write(workloads, "first")
    second = await write(workloads, "second")
    await back(workloads, cluster, kill_server(cluster.api, cluster.dir))

    try:
        assert await changes(workloads, first) == ["second"]
    except ApiException as expired:
        # A kube-apiserver need not remember changes from before its start.
        if (cluster.api, expired.status) != ("kube-apiserver", 410):
            raise
    assert await write(workloads, "third") > second
    assert identities(await workloads.pods("web")) == identities(before)
    # Controllers and node go on.
    leaving = before[0].metadata
    await workloads.core.delete_namespaced_pod(leaving.name, workloads.namespace)
    await workloads.until(
        lambda: workloads.pods("web"),
        lambda pods: len(pods) == 2 and leaving.uid not in {pod.metadata.uid for pod in pods},
    )
    await workloads.all_ready("web")


async def test_a_pod_that_ends_meanwhile_is_gone_afterwards(cluster, workloads, tmp_path):
    container = {
        "name": "main",
        "image": "none",
        "command": ["python", "-S", "-c", STUBBORN],
        "env": [{"name": "PLACE", "value": str(tmp_path)}],
    }
    await workloads.run("stubborn", container)
    await until((tmp_path / "up").exists)
    await workloads.core.delete_namespaced_pod("stubborn", workloads.namespace, grace_period_seconds=30)
    killed = kill_server(cluster.api, cluster.dir)
    (tmp_path / "go").touch()
    await back(workloads, cluster, killed)
    await workloads.until_gone(lambda: workloads.pod("stubborn"))


def open_files(pid):
    return [os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir()]


async def test_one_that_does_not_start_again_ends_the_cluster_with_a_reason(tmp_path):
    place, lock = tmp_path / "cluster", tmp_path / "lock"
    with lock.open("w") as held:
        os.set_inheritable(held.fileno(), True)
        bring_up(ClusterOptions(dir=place, api="embedded", gpus=0, backoff=Backoff(0.2, 2.0)))
    try:
        supervisor = read_supervisor(place)
        assert supervisor is not None
        assert supervisor.phase == READY
        assert str(lock) not in open_files(supervisor.pid), "no descriptor of the process that starts it"
        for path in (place / "api").glob("store.sqlite3*"):
            path.unlink()
        (place / "api" / "store.sqlite3").mkdir()
        kill_server("embedded", place)
        await until(lambda: not supervisor.is_alive)
        log = (place / "logs" / "cluster.log").read_text()
        assert "the API server ended" in log
        assert "unable to open database file" in log
    finally:
        take_down(place)
