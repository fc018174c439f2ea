"""The node's own bookkeeping: addresses, GPUs, processes, who supervises, which API server."""

import ipaddress
import os
import signal
import sys

import pytest

from dragoman_devcluster.cluster import choose_server
from dragoman_devcluster.errors import PodRefusedError, StartFailedError
from dragoman_devcluster.guardian import Guardian
from dragoman_devcluster.node.context import POD_NETWORK, Addresses, Devices
from dragoman_devcluster.options import ClusterOptions
from dragoman_devcluster.process import Process
from dragoman_devcluster.servers.kube_apiserver import find_binaries
from dragoman_devcluster.state import (
    Supervisor,
    born,
    pods_directory,
    read_supervisor,
    remove_state,
    write_supervisor,
)


@pytest.fixture
def guardian():
    made = Guardian()
    yield made
    made.close()


def start(guardian, tmp_path, source, **env):
    argv = [sys.executable, "-S", "-c", source]
    return Process.start(argv, env=env, cwd=tmp_path, output=tmp_path / "log", guardian=guardian)


async def test_output_and_exit_code(guardian, tmp_path):
    process = start(guardian, tmp_path, "import os, sys; print(os.environ['A']); sys.exit(3)", A="1")
    assert await process.wait() == 3
    assert (tmp_path / "log").read_text() == "1\n"
    assert process.has_ended


async def test_exit_code_of_a_signal_is_a_shells(guardian, tmp_path):
    process = start(guardian, tmp_path, "import time; time.sleep(60)")
    assert await process.stop(grace_s=10) == 128 + signal.SIGTERM


async def test_process_that_ignores_sigterm_is_killed(guardian, tmp_path):
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    source = f"{deaf}; print('up', flush=True); time.sleep(60)"
    process = start(guardian, tmp_path, source)
    while "up" not in (tmp_path / "log").read_text():
        assert not process.has_ended
    assert await process.stop(grace_s=0.1) == 128 + signal.SIGKILL


async def test_a_program_that_is_not_there(guardian, tmp_path):
    with pytest.raises(StartFailedError, match="cannot start '/no/such'"):
        Process.start(["/no/such"], env={}, cwd=tmp_path, output=tmp_path / "log", guardian=guardian)


async def test_the_guardian_ends_what_is_left(tmp_path):
    guardian = Guardian()
    process = start(guardian, tmp_path, "import time; time.sleep(60)")
    guardian.close()
    assert await process.wait() == 128 + signal.SIGKILL


def test_addresses_are_loopback_and_never_shared():
    addresses = Addresses()
    taken = {addresses.take() for _ in range(1000)}
    assert len(taken) == 1000
    assert all(ipaddress.IPv4Address(address) in POD_NETWORK for address in taken)


def test_gpus_belong_to_one_container_each():
    devices = Devices(3)
    assert devices.assign(("a", "main"), 2) == [0, 1]
    assert devices.assign(("a", "main"), 2) == [0, 1]
    assert devices.assign(("b", "main"), 0) == []
    with pytest.raises(PodRefusedError, match="2 GPUs wanted, 1 of 3 free"):
        devices.assign(("b", "main"), 2)
    devices.release("a")
    assert devices.assign(("b", "main"), 3) == [0, 1, 2]


def test_a_supervisor_is_known_by_its_birth(tmp_path):
    here = Supervisor.here()
    write_supervisor(tmp_path, here)
    assert read_supervisor(tmp_path) == here
    assert here.is_alive
    assert not Supervisor(os.getpid(), here.born - 1).is_alive
    Supervisor(os.getpid(), here.born - 1).send(signal.SIGKILL)


def test_what_is_no_state_is_no_supervisor(tmp_path):
    assert read_supervisor(tmp_path) is None
    (tmp_path / "cluster.json").write_text("{")
    assert read_supervisor(tmp_path) is None
    (tmp_path / "cluster.json").write_text('{"pid": 1, "born": 2, "colour": "red"}')
    assert read_supervisor(tmp_path) is None


def test_an_ended_process_was_never_born():
    pid = os.posix_spawn(sys.executable, [sys.executable, "-S", "-c", ""], {})
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert born(pid) is None
    os.waitpid(pid, 0)


def test_down_keeps_logs_and_claims_only(tmp_path):
    state = tmp_path / "state"
    for name in (
        "api/x",
        "logs/cluster.log",
        "volumes/default/models/weights",
        "kubeconfig",
        "lock",
    ):
        (state / name).parent.mkdir(parents=True, exist_ok=True)
        (state / name).touch()
    running = pods_directory(state) / "y"
    running.mkdir(parents=True)
    remove_state(state)
    assert not running.parent.exists()
    assert sorted(path.name for path in state.iterdir()) == ["logs", "volumes"]
    (tmp_path / "empty" / "logs").mkdir(parents=True)
    remove_state(tmp_path / "empty")
    assert not (tmp_path / "empty").exists()


def test_which_api_server(tmp_path, monkeypatch, guardian):
    assets = tmp_path / "bin"
    assets.mkdir()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    assert choose_server(ClusterOptions(), guardian).kind == "embedded"
    with pytest.raises(StartFailedError, match="no kube-apiserver and no etcd"):
        choose_server(ClusterOptions(api="kube-apiserver"), guardian)
    for name in ("kube-apiserver", "etcd"):
        (assets / name).touch(mode=0o755)
    assert set(find_binaries(os.environ)) == {"kube-apiserver", "etcd"}
    assert choose_server(ClusterOptions(), guardian).kind == "kube-apiserver"
    assert choose_server(ClusterOptions(api="embedded"), guardian).kind == "embedded"
