"""Memory over many requests: a bound for `bench/memory/growth.py`."""

import subprocess
import sys
from pathlib import Path

import pytest

REQUESTS = 50_000

MAX_MIB = 8
"""Of growth after the first quarter; a leak of 250 bytes a request would be more."""


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_nothing_stays_behind_of_fifty_thousand_requests() -> None:
    bench = Path(__file__).parents[3] / "bench" / "memory" / "growth.py"
    command = [sys.executable, str(bench), "--requests", str(REQUESTS), "--max-mib", str(MAX_MIB)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    for status in ("200", "400", "422", "disconnected", "503"):
        assert f"'{status}'" in found.stdout
