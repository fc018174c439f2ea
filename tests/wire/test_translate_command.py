"""`dragoman translate --model`: an engine for the time of the command."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.servers import bare_environment

from dragoman.exits import DONE, UNREACHABLE

pytestmark = pytest.mark.slow


def test_an_engine_lives_as_long_as_the_command(tmp_path: Path) -> None:
    log = tmp_path / "started"
    script = json.dumps({"journal": str(log)})
    environment = bare_environment() | {"DRAGOMAN_ENGINE": "scripted", "DRAGOMAN_ENGINE_ARGS": script}
    command = [sys.executable, "-m", "dragoman", "translate", "--to", "de"]
    command += ["--model", "org/model", "--device", "cpu"]
    run = subprocess.run([*command, "abc def"], env=environment, capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout) == (DONE, "fed cba\n"), run.stderr
    engine = int(log.read_text().split()[0])
    assert not Path(f"/proc/{engine}").exists()


def test_an_engine_that_does_not_start_says_why(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dragoman", "translate", "--model", str(tmp_path), "--to", "de"]
    environment = bare_environment() | {
        "DRAGOMAN_ENGINE": "scripted",
        "DRAGOMAN_ENGINE_ARGS": '{"fail_load": "no"}',
    }
    run = subprocess.run([*command, "abc"], env=environment, capture_output=True, text=True, timeout=60)
    assert run.returncode == UNREACHABLE
    assert "the engine ended with status" in run.stderr
