"""`--failed-to=FILE` writes which tests failed, for `.ci/targets.py`."""

import json
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--failed-to", type=Path, default=None, help="JSON file for the status and failed tests")


def pytest_configure(config: pytest.Config) -> None:
    """Workers of pytest-xdist report to their controller."""
    path = config.getoption("failed_to")
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailedTests(path))


class FailedTests:
    """Writes an object with pytest's `status` and the identifiers of the tests that `failed`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._failed: dict[str, None] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            # xdist adds the group.
            self._failed[report.nodeid.partition("@")[0]] = None

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self._path.write_text(json.dumps({"status": int(exitstatus), "failed": [*self._failed]}))
