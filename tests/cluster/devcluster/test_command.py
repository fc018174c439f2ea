"""`dragoman devcluster`: what a person types, and what is left afterwards."""

import os
import re
import subprocess
import sys

import pytest

from dragoman_devcluster.state import born, read_supervisor

pytestmark = pytest.mark.cluster


def local(*words, status=0):
    """Run the command; its output."""
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", "devcluster", *words], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def test_up_status_down_leave_nothing_behind(tmp_path, api_kind):
    place = tmp_path / "state"
    where = ("--dir", str(place))
    assert "no cluster runs" in local("status", *where, status=1)
    try:
        output = local("up", "--api", api_kind, *where)
        assert f"export KUBECONFIG={place}/kubeconfig" in output
        supervisor = read_supervisor(place)
        assert supervisor is not None
        assert re.search(rf"{api_kind} at https://127\.0\.0\.1:\d+", output)
        assert "already up" in local("up", *where)
        assert read_supervisor(place) == supervisor
        shown = local("status", *where)
        assert api_kind in shown
        assert "is ready" in shown
    finally:
        local("down", *where)
    assert born(supervisor.pid) is None
    assert sorted(path.name for path in place.iterdir()) == ["logs"]
    assert "no cluster runs" in local("down", *where)


def test_down_never_ends_a_process_that_only_has_the_number(tmp_path):
    stranger = os.getpid()
    content = f'{{"pid": {stranger}, "born": 1, "phase": "ready"}}'
    (tmp_path / "cluster.json").write_text(content)
    assert "no cluster runs" in local("down", "--dir", str(tmp_path))
    assert not (tmp_path / "cluster.json").exists()


def test_a_failed_start_has_its_reason(tmp_path):
    environment = {**os.environ, "KUBEBUILDER_ASSETS": str(tmp_path)}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "dragoman",
            "devcluster",
            "up",
            "--api",
            "kube-apiserver",
            "--dir",
            str(tmp_path / "state"),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
    )
    assert done.returncode == 1
    assert "no kube-apiserver and no etcd: set KUBEBUILDER_ASSETS" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
