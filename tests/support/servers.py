"""Engine pods and routers as processes of their own, called over HTTP as clients do.

Scripted pods and routers are forked from a process that has imported them, and run the same command line as
`python -m dragoman`; their imports take two seconds of CPU. Pods with vLLM are started anew: vLLM starts processes by
its own rules.
"""

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

from dragoman_devcluster.ports import free_port

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["tests.support.preloaded"])

VLLM_START_S = 400
"""Thirty seconds on two idle cores; tests may run beside others."""


def listens(port: int) -> bool:
    """Whether a process accepts connections at a port of loopback."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


def bare_environment() -> dict[str, str]:
    """The environment without settings of Dragoman."""
    return {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}


class ForkedProcess:
    """`dragoman` with arguments, forked; of `subprocess.Popen` what tests use.

    Args:
        arguments: What follows `dragoman`.
        log: Where standard output and standard error are appended.
        environment: All of its environment; None takes `bare_environment()`.
    """

    def __init__(self, arguments: list[str], log: Path, environment: dict[str, str] | None = None) -> None:
        environment = bare_environment() if environment is None else environment
        log.touch()
        self._process = FORKED.Process(target=_run, args=(arguments, str(log), environment, os.getcwd()))
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit status.

        Raises:
            subprocess.TimeoutExpired: The process still runs.
        """
        self._process.join(timeout)
        if (status := self.poll()) is None:
            raise subprocess.TimeoutExpired("dragoman", timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


def _run(arguments: list[str], log: str, environment: dict[str, str], directory: str) -> None:
    """In the forked process."""
    from dragoman.__main__ import main

    output = os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    tempfile.tempdir = None  # To be read from the environment again.
    sys.argv = ["dragoman", *arguments]
    sys.exit(main(arguments))


def descendants(pid: int) -> list[int]:
    """Processes that one started, and those that they did."""
    parents: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
        except OSError:
            continue
        if not fields["State"].startswith("Z"):
            parents.setdefault(int(fields["PPid"]), []).append(int(fields["Pid"]))
    found: list[int] = []
    todo = [pid]
    while todo:
        children = parents.get(todo.pop(), [])
        found += children
        todo += children
    return found


def wait_until_gone(processes: list[int], deadline_s: float = 15) -> None:
    """Wait for the end of processes; the last children end when the kernel closes the pipes of their parents."""
    end_s = time.monotonic() + deadline_s
    while left := [pid for pid in processes if _is_alive(pid)]:
        assert time.monotonic() < end_s, f"processes outlived their parent: {left}"
        time.sleep(0.05)


def _is_alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


class PodProcess:
    """One `dragoman serve`.

    Args:
        directory: For its log and its termination log.
        arguments: Flags beside those for host, port and termination log.
    """

    def __init__(self, directory: Path, *arguments: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.last_words = directory / f"last-words-{self.port}"
        self.log = directory / f"pod-{self.port}.log"
        command = ["serve", "--host", "127.0.0.1", "--port", str(self.port)]
        command += ["--termination-log", str(self.last_words), *arguments]
        self.process: ForkedProcess | subprocess.Popen[bytes]
        if "scripted" in arguments:
            self.process = ForkedProcess(command, self.log)
        else:
            command = [sys.executable, "-m", "dragoman", *command]
            with self.log.open("wb") as log:
                self.process = subprocess.Popen(command, stdout=log, stderr=log, env=bare_environment())
        self.client = httpx.Client(base_url=self.url, timeout=60)

    def wait_for(self, path: str, status: int = 200, deadline_s: float = 30) -> dict[str, Any]:
        """Poll a probe until it answers with `status`."""
        end_s = time.monotonic() + deadline_s
        while time.monotonic() < end_s:
            assert self.process.poll() is None, f"the pod ended:\n{self.log.read_text()}"
            try:
                answer = self.client.get(path)
            except httpx.TransportError:
                time.sleep(0.02)
                continue
            if answer.status_code == status:
                return dict(answer.json())
            time.sleep(0.02)
        raise AssertionError(f"{path} did not turn {status} in {deadline_s} s:\n{self.log.read_text()}")

    def translate(self, text: Any = "Hello", source: str = "en", target: str = "de") -> httpx.Response:
        """One native request."""
        return self.client.post(
            "/translate", json={"text": text, "source_lang": source, "target_lang": target}
        )

    def metric(self, name: str) -> float:
        """The sum of a metric's samples."""
        lines = self.client.get("/metrics").text.splitlines()
        samples = [line for line in lines if line.startswith((f"{name} ", f"{name}{{"))]
        assert samples, f"no metric {name}"
        return sum(float(line.rpartition(" ")[2]) for line in samples)

    def wait_for_metric(self, name: str, value: float, deadline_s: float = 10) -> float:
        """Seconds until a metric has a value."""
        began_s = time.monotonic()
        while (found := self.metric(name)) != value:
            assert time.monotonic() - began_s < deadline_s, f"{name} stays {found}"
            time.sleep(0.005)
        return time.monotonic() - began_s

    def wait_for_log(self, text: str, deadline_s: float = 10) -> None:
        """Wait for a text in its log."""
        end_s = time.monotonic() + deadline_s
        while text not in self.log.read_text():
            assert time.monotonic() < end_s, f"not logged: {text!r}\n{self.log.read_text()}"
            time.sleep(0.02)

    def descendants(self) -> list[int]:
        """Processes that this one started, and those that they did."""
        return descendants(self.process.pid)

    def wait_for_long_texts(self, deadline_s: float = 120) -> int:
        """The process for long texts, which a long text has started, once it waits for the next."""
        end_s = time.monotonic() + deadline_s
        while time.monotonic() < end_s:
            for pid in self.descendants():
                if b"worker_process" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                    # It does not sleep before it has loaded what it needs, which takes longer than this.
                    if fields[0] == "S" and int(fields[11]) / os.sysconf("SC_CLK_TCK") > 0.3:
                        return pid
            time.sleep(0.05)
        raise AssertionError(f"the process for long texts does not start:\n{self.log.read_text()}")

    def end(self, number: int = signal.SIGTERM, deadline_s: float = 30) -> int:
        """Send a signal and wait for the exit status."""
        self.process.send_signal(number)
        return self.process.wait(deadline_s)

    def close(self) -> None:
        """End it at once."""
        self.client.close()
        if self.process.poll() is None:
            started = self.descendants()
            self.process.kill()
            self.process.wait()
            # vLLM's engine process takes up to a minute to notice that it is alone.
            for pid in started:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


class RouterProcess:
    """One `dragoman router`.

    Args:
        directory: For its log.
        arguments: Flags beside those for host and ports.
    """

    def __init__(self, directory: Path, *arguments: str) -> None:
        self.port, self.admin_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = directory / f"router-{self.port}.log"
        command = ["router", "--host=127.0.0.1", f"--port={self.port}", f"--admin-port={self.admin_port}"]
        self.process = ForkedProcess([*command, f"--router-id=router-{self.port}", *arguments], self.log)

    def wait_until_ready(self, deadline_s: float = 30) -> None:
        """Wait for both ports."""
        end_s = time.monotonic() + deadline_s
        while time.monotonic() < end_s:
            assert self.process.poll() is None, f"the router ended:\n{self.log.read_text()}"
            try:
                # The client's port too: it is listened to a moment after the probe turned.
                ready = httpx.get(f"http://127.0.0.1:{self.admin_port}/readyz").status_code == 200
                if ready and listens(self.port):
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.02)
        raise AssertionError(f"the router was not ready in {deadline_s} s:\n{self.log.read_text()}")

    def close(self) -> None:
        """End it at once."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
