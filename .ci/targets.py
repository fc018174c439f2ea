"""Runs targets of the Makefile; tests that fail run once more, alone, and are flaky if they pass then.

Four at a time on two cores, a test may miss a deadline that it keeps alone. A few such tests are tolerated, and named
at the end; more than `MAX_FLAKY` fail the run, as does one that fails again, and a run in which no test ran.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

RETRIED = ("test", "test-devcluster")
MAX_FLAKY = 2

Run = Callable[[list[str], dict[str, str]], int]
"""Runs a command with variables beside those of the environment; returns its exit status."""


def call(command: list[str], variables: dict[str, str]) -> int:
    """See `Run`."""
    return subprocess.run(command, env={**os.environ, **variables}).returncode


def flaky_tests(target: str, run: Run = call) -> list[str]:
    """Run a target; its tests that failed and passed alone.

    Raises:
        SystemExit: It failed.
    """
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.json"
        if run(["make", *shlex.split(target)], {"PYTEST_ADDOPTS": f"--failed-to={report}"}) == 0:
            return []
        # Without a report, or with another status, not all tests ran.
        found = json.loads(report.read_text()) if report.exists() else {"status": None}
    if target not in RETRIED or found["status"] != 1 or not found["failed"]:
        raise SystemExit(f"make {target} failed")
    failed: list[str] = found["failed"]
    print(f"once more, alone: {' '.join(failed)}", flush=True)
    if run([".venv/bin/python", "-m", "pytest", *failed], {}) != 0:
        raise SystemExit(f"make {target} failed, and tests of it failed again alone")
    return failed


def main(targets: list[str], run: Run = call) -> int:
    """Run targets in order; 0 unless one fails or too many tests are flaky."""
    flaky: list[str] = []
    try:
        for target in targets:
            flaky += flaky_tests(target, run)
    finally:
        for name in flaky:
            print(f"FLAKY {name}")
    if len(flaky) > MAX_FLAKY:
        print(f"{len(flaky)} tests are flaky; {MAX_FLAKY} are tolerated")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
