"""The soak, short: every kind of fault while the operator scales, and nothing lost, wrong or left over."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

SOAK = Path(__file__).parents[3] / "bench/faults/soak.py"


@pytest.mark.timeout(900)
def test_a_short_soak(api_kind: str, tmp_path: Path) -> None:
    """Each kind of fault once or more, in a minute and a half of load."""
    result = tmp_path / "result.json"
    flags = ["--rate=15", "--seconds=90", "--every=3,6", "--seed=5", f"--api={api_kind}"]
    flags += [f"--dir={tmp_path / 'run'}", f"--json={result}"]
    done = subprocess.run([sys.executable, str(SOAK), *flags], capture_output=True, text=True, timeout=880)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(result.read_text())
    assert found["violations"] == []
    assert found["ok"] == found["sent"] - found["slow_cut"] > 500
    assert {fault["kind"] for fault in found["faults"]} >= {
        "pod SIGKILL",
        "pod SIGSTOP",
        "router SIGKILL",
        "router SIGTERM",
        "operator SIGKILL",
        "API gone",
        "rolling edit",
        "burst",
        "slow readers",
        "clients leave",
    }
    assert all("ended_s" in fault for fault in found["faults"])
    # What the run ends with: nothing of the load is left anywhere.
    last = found["samples"][-1]
    assert last["clients"] == 0
    assert not any(value for router in last["routers"].values() for value in router.values())
    assert last["pods"]["in_flight"] == last["pods"]["running"] == last["pods"]["waiting"] == 0
