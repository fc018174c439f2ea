"""`.ci/targets.py`: what is run once more, what is flaky, and when the run fails."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def loaded() -> Any:
    spec = importlib.util.spec_from_file_location("targets", ROOT / ".ci/targets.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


targets = loaded()


class Made:
    """Runs no command. `make` fails for targets with failed tests; these fail again where `fails_again`."""

    def __init__(
        self, failed: dict[str, list[str]], *, status: int | None = 1, fails_again: bool = False
    ) -> None:
        self.failed, self.status, self.fails_again = failed, status, fails_again
        self.commands: list[list[str]] = []

    def __call__(self, command: list[str], variables: dict[str, str]) -> int:
        self.commands.append(command)
        if command[0] != "make":
            return int(self.fails_again)
        found = self.failed.get(command[1])
        if found is not None and self.status is not None:
            report = Path(variables["PYTEST_ADDOPTS"].removeprefix("--failed-to="))
            report.write_text(json.dumps({"status": self.status, "failed": found}))
        return 0 if found is None else 2


def test_flaky_tests_are_named_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    made = Made({"test": ["a.py::b", "a.py::c"]})
    assert targets.main(["check", "test", 'test-images "ONLY=not vllm"'], made) == 0
    assert made.commands == [
        ["make", "check"],
        ["make", "test"],
        [".venv/bin/python", "-m", "pytest", "a.py::b", "a.py::c"],
        ["make", "test-images", "ONLY=not vllm"],
    ]
    assert capsys.readouterr().out.splitlines()[-2:] == ["FLAKY a.py::b", "FLAKY a.py::c"]


def test_more_than_two_flaky_tests_of_all_targets_fail(capsys: pytest.CaptureFixture[str]) -> None:
    made = Made({"test": ["a.py::b", "a.py::c"], "test-devcluster": ["d.py::e"]})
    assert targets.main(["test", "test-devcluster"], made) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "3 tests are flaky; 2 are tolerated"


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(Made({"test": ["a.py::b"]}, fails_again=True), id="fails-again"),
        pytest.param(Made({"test": []}, status=5), id="no-test-ran"),
        pytest.param(Made({"test": ["a.py::b"]}, status=2), id="interrupted"),
        pytest.param(Made({"test": []}, status=None), id="not-started"),
        pytest.param(Made({"check": ["a.py::b"]}), id="not-retried"),
    ],
)
def test_other_failures_end_the_run(made: Made) -> None:
    with pytest.raises(SystemExit, match="failed"):
        targets.main(["check", "test", "test-vllm"], made)
    assert ["make", "test-vllm"] not in made.commands


FAILING = """
import pytest

def test_passes(): pass
def test_fails(): assert False

@pytest.fixture
def broken(): raise OSError
def test_with_fixture(broken): pass
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workers", "content", "status", "failed"),
    [(2, FAILING, 1, {"test_it.py::test_fails", "test_it.py::test_with_fixture"}), (0, "", 5, set())],
    ids=["two-workers", "no-test"],
)
def test_pytest_reports_what_failed(
    tmp_path: Path, workers: int, content: str, status: int, failed: set[str]
) -> None:
    (tmp_path / "test_it.py").write_text(content)
    report = tmp_path / "report.json"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        f"--rootdir={tmp_path}",
        "-p",
        "tests.support.failed_tests",
    ]
    done = subprocess.run(
        [*command, f"-n{workers}", f"--failed-to={report}", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    found = json.loads(report.read_text())
    assert (found["status"], set(found["failed"])) == (status, failed), done.stdout + done.stderr
