"""The README's first command, as a user runs it."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.parse
from pathlib import Path

import pytest

from dragoman_devcluster.lifecycle import bring_up, take_down
from dragoman_devcluster.options import ClusterOptions
from dragoman_devcluster.servers.kube_apiserver import BINARIES, find_binaries

MISSING = [name for name in BINARIES if name not in find_binaries(os.environ)]
REAL = pytest.mark.skipif(
    bool(MISSING), reason=f"no {' and no '.join(MISSING)} in KUBEBUILDER_ASSETS or PATH"
)


@pytest.mark.vllm
@pytest.mark.cluster
@pytest.mark.timeout(620)
@pytest.mark.parametrize(
    "api", ["embedded", pytest.param("kube-apiserver", marks=[REAL, pytest.mark.vllm_start])]
)
def test_the_demo_translates_scales_and_leaves_nothing_behind(api: str) -> None:
    demo = subprocess.run(
        [sys.executable, "-m", "dragoman", "demo", "--api", api],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert demo.returncode == 0, demo.stdout + demo.stderr
    result = json.loads(demo.stdout.splitlines()[-1])
    assert result["translations"] >= 60
    assert result["exact"] >= 0.95 * result["translations"]
    assert result["api"] == api
    assert result["replicas_max"] >= 2
    assert result["lost"] == 0


@pytest.mark.cluster
@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_the_demo_and_its_cluster(number: signal.Signals) -> None:
    # Under nohup, or in the background of a script, tests inherit signals that are ignored.
    command = ["env", "--default-signal", sys.executable, "-m", "dragoman", "demo", "--api", "embedded"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        up = next(line for line in demo.stdout if line.startswith("a local cluster is up"))
        assert "helm install" in next(demo.stdout)
        demo.send_signal(number)
        _, errors = demo.communicate(timeout=90)
    assert demo.returncode == 130
    assert errors.splitlines()[-1] == "dragoman demo: stopped"
    api = urllib.parse.urlsplit(up.split()[-1])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((api.hostname, api.port), timeout=5).close()


@pytest.mark.vllm
@pytest.mark.vllm_start
@pytest.mark.cluster
@pytest.mark.timeout(620)
def test_the_demo_uses_the_cluster_of_a_kubeconfig_and_leaves_nothing_in_it(tmp_path: Path) -> None:
    options = ClusterOptions(dir=tmp_path / "cluster", api="embedded", gpus=0)
    bring_up(options)
    try:
        kubeconfig = str(options.dir / "kubeconfig")
        demo = subprocess.run(
            [sys.executable, "-m", "dragoman", "demo", "--kubeconfig", kubeconfig],
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert demo.returncode == 0, demo.stdout + demo.stderr
        result = json.loads(demo.stdout.splitlines()[-1])
        assert result["exact"] >= 0.95 * result["translations"]
        assert result["lost"] == 0
        assert "local cluster" not in demo.stdout
    finally:
        take_down(options.dir)
