"""The router in a cluster where everything is replaced, killed or cut off: no request is lost or answered wrongly."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.cluster

CHAOS = Path(__file__).parents[3] / "bench/faults/chaos.py"


@pytest.mark.timeout(600)
def test_nothing_is_lost(api_kind: str, tmp_path: Path) -> None:
    """Every phase of the bench, each as short as what happens in it allows."""
    figures = tmp_path / "figures.json"
    flags = [
        "--rate=20",
        "--seconds=10",
        f"--api={api_kind}",
        "--preload=tests.support.preloaded",
        f"--dir={tmp_path / 'run'}",
        f"--json={figures}",
    ]
    done = subprocess.run([sys.executable, str(CHAOS), *flags], capture_output=True, text=True, timeout=580)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(figures.read_text())
    phases = found["phases"]
    assert len(phases) == 11
    assert any(phase["phase"].startswith("SIGKILL of the API") for phase in phases)
    assert all(phase["sent"] for phase in phases)
    # All responses came from the engines.
    assert found["work"]["texts"] == found["sent"]
    reconnected = {phase["phase"] for phase in phases if phase["reconnected"]}
    # A request that was sent just before a router is killed counts for the phase before.
    assert reconnected <= {"SIGKILL of a pod", "SIGKILL of a router", "SIGTERM of a router"}
    for log in (tmp_path / "run").glob("router-*.log"):
        assert "Traceback" not in log.read_text()
