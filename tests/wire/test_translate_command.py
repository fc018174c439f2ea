"""`dragoman translate` against a pod, interrupted and resumed."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.servers import PodProcess, bare_environment

from dragoman.exits import DONE, INTERRUPTED, UNREACHABLE
from dragoman.journal import journal_of

pytestmark = pytest.mark.slow

LINES = 400
DEADLINE_S = 60

Start = Callable[..., PodProcess]


def words(number: int) -> str:
    """A number in letters: the scripted engine answers in reverse, and a guard counts digits."""
    return "line " + "".join(chr(ord("a") + int(digit)) for digit in f"{number:05}")


@pytest.fixture
def pod(start_scripted: Start) -> PodProcess:
    started = start_scripted(token_s=0.005, max_num_seqs=16)
    started.wait_for("/readyz")
    return started


class Command:
    """The command as a process of its own, for one input file."""

    def __init__(self, directory: Path, url: str, lines: int) -> None:
        self.output = directory / "out.txt"
        self.journal = journal_of(self.output)
        source = directory / "in.txt"
        source.write_text("".join(f"{words(number)}\n" for number in range(lines)))
        arguments = [
            "--url",
            url,
            "--from",
            "en",
            "--to",
            "de",
            "--file",
            str(source),
            "--output",
            str(self.output),
        ]
        self._command = [sys.executable, "-m", "dragoman", "translate", *arguments, "--batch", "8"]
        self.stderr = ""

    def finished(self) -> list[int]:
        """Line numbers in the journal, in its order; a line that is being written aside."""
        if not self.journal.exists():
            return []
        whole = self.journal.read_bytes().rpartition(b"\n")[0]
        return [json.loads(line)["line"] for line in whole.splitlines()[1:]]

    def run(self, number: signal.Signals | None = None, at_least: int = 0) -> int:
        """Run it to its end; with a signal, until so many lines are finished, and no longer."""
        process = subprocess.Popen(
            self._command,
            env=bare_environment(),
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        if number is not None:
            end_s = time.monotonic() + DEADLINE_S
            while len(self.finished()) < at_least:
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < end_s
                time.sleep(0.01)
            process.send_signal(number)
        _, self.stderr = process.communicate(timeout=DEADLINE_S)
        return process.returncode


@pytest.fixture
def command(pod: PodProcess, tmp_path: Path) -> Command:
    return Command(tmp_path, pod.url, LINES)


def test_an_interrupted_translation_goes_on_where_it_was(command: Command, pod: PodProcess) -> None:
    assert command.run(signal.SIGINT, LINES // 4) == INTERRUPTED
    assert "the same command goes on" in command.stderr
    after_interrupt = command.finished()
    assert LINES // 4 <= len(after_interrupt) < LINES
    assert not command.output.exists()

    assert command.run(signal.SIGKILL, LINES // 2) == -signal.SIGKILL
    after_kill = command.finished()
    assert LINES // 2 <= len(after_kill) < LINES
    assert after_kill[: len(after_interrupt)] == after_interrupt

    before = pod.metric("dragoman_segments_total")
    assert command.run() == DONE
    assert pod.metric("dragoman_segments_total") - before <= LINES - len(after_kill)
    assert len(set(after_kill)) == len(after_kill)
    assert command.output.read_text().splitlines() == [words(number)[::-1] for number in range(LINES)]
    assert not command.journal.exists()


def test_an_engine_lives_as_long_as_the_command(tmp_path: Path) -> None:
    log = tmp_path / "started"
    script = json.dumps({"journal": str(log)})
    environment = bare_environment() | {"DRAGOMAN_ENGINE": "scripted", "DRAGOMAN_ENGINE_ARGS": script}
    command = [
        sys.executable,
        "-m",
        "dragoman",
        "translate",
        "--model",
        "org/model",
        "--device",
        "cpu",
        "--to",
        "de",
    ]
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
