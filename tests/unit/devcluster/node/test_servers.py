"""A real API server's two processes, played by others: which of them is started when."""

import asyncio
import os
import signal

import pytest
from tests.support.waiting import until

from dragoman_devcluster.guardian import Guardian
from dragoman_devcluster.options import ClusterOptions
from dragoman_devcluster.servers import server as api_server
from dragoman_devcluster.servers.kube_apiserver import BINARIES, kube_apiserver
from dragoman_devcluster.state import born


@pytest.fixture
async def server(tmp_path, monkeypatch):
    """Its processes write their ids and flags down, a line for each start, and wait."""

    async def ready(kubeconfig, process, log):
        await until(lambda: all((tmp_path / name).exists() for name in BINARIES))

    monkeypatch.setattr(api_server, "until_ready", ready)
    binaries = {}
    for name in BINARIES:
        binaries[name] = tmp_path / f"{name}.sh"
        binaries[name].write_text(f'#!/bin/sh\necho "$$ $@" >> "{tmp_path / name}"\nexec sleep 300\n')
        binaries[name].chmod(0o755)
    guardian = Guardian()
    options = ClusterOptions(dir=tmp_path / "cluster", api="kube-apiserver")
    (tmp_path / "cluster").mkdir()
    yield kube_apiserver(options, guardian, binaries)
    guardian.close()


def starts(tmp_path, name):
    """Id and flags of each start."""
    return [line.split(maxsplit=1) for line in (tmp_path / name).read_text().splitlines()]


@pytest.mark.parametrize("name", BINARIES)
async def test_what_has_ended_is_started_as_before_and_the_other_is_left_alone(server, tmp_path, name):
    kubeconfig = await server.start()
    written = kubeconfig.read_bytes()
    ((pid, flags),) = starts(tmp_path, name)
    os.kill(int(pid), signal.SIGKILL)
    async with asyncio.timeout(60):
        await server.wait()
    await server.start()
    await until(lambda: len(starts(tmp_path, name)) == 2)
    (_, again) = starts(tmp_path, name)
    assert again[1] == flags
    assert kubeconfig.read_bytes() == written
    (other,) = set(BINARIES) - {name}
    assert len(starts(tmp_path, other)) == 1
    await server.stop()
    assert [born(int(started[0])) for each in BINARIES for started in starts(tmp_path, each)] == [None] * 3
