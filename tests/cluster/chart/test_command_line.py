"""The commands for people against what the chart installs: operator, router, and two engines."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.servers import bare_environment

from dragoman.exits import DONE, INTERRUPTED, USAGE
from dragoman.journal import journal_of
from dragoman_contract.http import ENGINE_PORT
from dragoman_contract.kubernetes import LABEL_DEPLOYMENT

CHART = Path(__file__).parents[3] / "charts/dragoman"
SYSTEM, NAMESPACE = "people-system", "people"
LINES, BATCH, CONCURRENCY = 5000, 16, 8
SCRIPT = '{"token_s": 0.01}'
DEADLINE_S = 60

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]


def words(number: int) -> str:
    """A number in letters: the scripted engine answers in reverse, and a guard counts digits."""
    return "line " + "".join(chr(ord("a") + int(digit)) for digit in f"{number:05}")


class Translate:
    """`dragoman translate` as a process, for a file of its own, interrupted where the test wants it.

    Args:
        directory: For the file and its translation.
        lines: Of the file.
        flags: Where to, and how.
    """

    def __init__(self, directory: Path, lines: int, *flags: str) -> None:
        self.output = directory / "out.txt"
        self.journal = journal_of(self.output)
        self.stderr = ""
        source = directory / "in.txt"
        source.write_text("".join(f"{words(number)}\n" for number in range(lines)))
        files = ("--file", str(source), "--output", str(self.output))
        self._command = [sys.executable, "-m", "dragoman", "translate", "--to", "de", *files, *flags]

    def finished(self) -> list[int]:
        """Line numbers in the journal, in its order; a line that is being written aside."""
        if not self.journal.exists():
            return []
        whole = self.journal.read_bytes().rpartition(b"\n")[0]
        return [json.loads(line)["line"] for line in whole.splitlines()[1:]]

    def run(self, number: signal.Signals | None = None, at_least: int = 0) -> int:
        """Run it to its end; with a signal, until so many lines are finished, and no longer.

        Returns:
            The exit status, negative for a signal; `stderr` has what it wrote.
        """
        process = subprocess.Popen(
            self._command,
            env=bare_environment(),
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            # A shell starts its background jobs with SIGINT ignored, and children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        end_s = time.monotonic() + DEADLINE_S
        if number is not None:
            while len(self.finished()) < at_least:
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < end_s, f"{len(self.finished())} lines are finished"
                time.sleep(0.01)
            process.send_signal(number)
        _, self.stderr = process.communicate(timeout=DEADLINE_S)
        return process.returncode


@pytest.fixture(scope="module")
def installed(fresh: Any) -> Any:
    """The chart with a router, and a TranslationDeployment of two scripted engines, complete."""
    place = ["--namespace", SYSTEM, "--create-namespace", "--wait", "--timeout=90s"]
    values = ["--set", "router.enabled=true", "--set", "router.replicas=1"]
    fresh.helm("install", "dragoman", str(CHART), *place, *values)
    fresh.make_namespace(NAMESPACE)
    variables = [
        {"name": "DRAGOMAN_ENGINE", "value": "scripted"},
        {"name": "DRAGOMAN_ENGINE_ARGS", "value": SCRIPT},
    ]
    languages = [{"source": "en", "targets": ["de"]}]
    fresh.create(NAMESPACE, "demo", replicas=2, languages=languages, podTemplate={"env": variables})
    return fresh


@pytest.fixture
def cluster(installed: Any, until: Any) -> list[str]:
    """The flags that name it."""
    until(lambda: installed.is_complete(NAMESPACE, "demo", 2), "two engines are ready", timeout_s=90)
    return ["--kubeconfig", str(installed.kubeconfig)]


def test_a_person_sees_the_object_and_translates_with_it(cluster: list[str]) -> None:
    status, table = dragoman("status", *cluster)
    assert status == DONE
    title, line = table.splitlines()
    assert title.startswith("NAMESPACE")
    assert line.split()[:3] == [NAMESPACE, "demo", "2/2"]
    status, explained = dragoman("status", *cluster, f"{NAMESPACE}/demo")
    assert status == DONE
    assert "2 of 2 replicas are ready" in explained
    assert "AsExpected: nothing needs attention" in explained

    to = ("--to", "de", "abc def")
    assert dragoman("translate", *cluster, *to) == (DONE, "fed cba\n")
    assert dragoman("translate", *cluster, "--deployment", f"{NAMESPACE}/demo", *to) == (DONE, "fed cba\n")
    status, reason = dragoman("translate", *cluster, "--deployment", "nowhere/demo", *to)
    assert status == USAGE
    assert "no Service nowhere/demo" in reason


def test_each_line_of_an_interrupted_file_is_there_once_and_in_order(
    cluster: list[str], installed: Any, tmp_path: Path
) -> None:
    pace = ["--batch", str(BATCH), "--concurrency", str(CONCURRENCY)]
    command = Translate(tmp_path, LINES, *cluster, *pace)
    before, began_s = translated(installed), time.monotonic()

    assert command.run(signal.SIGINT, LINES // 4) == INTERRUPTED
    assert "the same command goes on" in command.stderr
    after_interrupt = command.finished()
    assert command.run(signal.SIGKILL, LINES // 2) == -signal.SIGKILL
    after_kill = command.finished()
    assert LINES // 4 <= len(after_interrupt) < LINES // 2 <= len(after_kill) < LINES
    assert after_kill[: len(after_interrupt)] == after_interrupt
    assert len(set(after_kill)) == len(after_kill)
    assert not command.output.exists()

    assert command.run() == DONE
    assert command.output.read_text().splitlines() == [words(number)[::-1] for number in range(LINES)]
    assert not command.journal.exists()
    again = translated(installed) - before - LINES
    # What was under way when the command was interrupted.
    assert 0 <= again <= 2 * BATCH * CONCURRENCY
    print(
        f"{LINES} lines in {time.monotonic() - began_s:.1f} s: {len(after_interrupt)} kept after SIGINT, "
        f"{len(after_kill)} after SIGKILL; {again} translated twice; each once in the output, in order"
    )


def dragoman(*arguments: str) -> tuple[int, str]:
    """The exit status and the output of a command."""
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", *arguments],
        env=bare_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout


def translated(installed: Any) -> int:
    """How many lines the engines have translated."""
    found = 0.0
    for pod in installed.pods(NAMESPACE, f"{LABEL_DEPLOYMENT}=demo").values():
        metrics = httpx.get(f"http://{pod.status.pod_ip}:{ENGINE_PORT}/metrics").raise_for_status().text
        samples = [line for line in metrics.splitlines() if line.startswith("dragoman_segments_total")]
        found += sum(float(sample.split()[-1]) for sample in samples)
    return int(found)
