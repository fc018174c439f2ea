"""Pods, and routers before them, as separate processes, asked over HTTP as their callers would."""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


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
        command = [sys.executable, "-m", "dragoman", "serve", "--host", "127.0.0.1", "--port", str(self.port)]
        command += ["--termination-log", str(self.last_words), *arguments]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
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

    def descendants(self) -> list[int]:
        """Processes that this one started, and those that they did."""
        parents: dict[int, list[int]] = {}
        for status in Path("/proc").glob("[0-9]*/status"):
            try:
                fields = dict(
                    line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line
                )
            except OSError:
                continue
            if not fields["State"].startswith("Z"):
                parents.setdefault(int(fields["PPid"]), []).append(int(fields["Pid"]))
        found: list[int] = []
        todo = [self.process.pid]
        while todo:
            children = parents.get(todo.pop(), [])
            found += children
            todo += children
        return found

    def end(self, number: int = signal.SIGTERM, deadline_s: float = 30) -> int:
        """Send a signal and wait for the exit status."""
        self.process.send_signal(number)
        return self.process.wait(deadline_s)

    def close(self) -> None:
        self.client.close()
        if self.process.poll() is None:
            started = self.descendants()
            self.process.kill()
            self.process.wait()
            # vLLM's engine process takes up to a minute to notice that it is alone.
            for pid in started:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="session")
def pod_process() -> type[PodProcess]:
    """The class, for fixtures that keep a pod longer than a test."""
    return PodProcess


StartPod = Callable[..., PodProcess]


@pytest.fixture
def start_pod(tmp_path: Path) -> Iterator[StartPod]:
    """Start pods that end with the test."""
    pods: list[PodProcess] = []

    def start(*arguments: str) -> PodProcess:
        pods.append(PodProcess(tmp_path, *arguments))
        return pods[-1]

    yield start
    for pod in pods:
        pod.close()


@pytest.fixture
def start_scripted(start_pod: StartPod) -> StartPod:
    """Start pods with the scripted engine, its script given by name."""

    def start(*arguments: str, **script: Any) -> PodProcess:
        return start_pod(
            *("--model", "org/model", "--engine", "scripted", "--engine-args", json.dumps(script)), *arguments
        )

    return start


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
        command = [sys.executable, "-m", "dragoman", "router", "--host=127.0.0.1", f"--port={self.port}"]
        command += [f"--admin-port={self.admin_port}", f"--router-id=router-{self.port}", *arguments]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    def wait_until_ready(self, deadline_s: float = 30) -> None:
        end_s = time.monotonic() + deadline_s
        while time.monotonic() < end_s:
            assert self.process.poll() is None, f"the router ended:\n{self.log.read_text()}"
            try:
                # The client's port too: it is listened to a moment after the probe turned.
                httpx.get(f"{self.url}/")
                if httpx.get(f"http://127.0.0.1:{self.admin_port}/readyz").status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.02)
        raise AssertionError(f"the router was not ready in {deadline_s} s:\n{self.log.read_text()}")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class RoutedPods:
    """Routers before pods for every pair, which share state.

    Args:
        directory: For the list of pods, and the logs.
        state_url: Of Redis.
        ports: Of the pods.
    """

    def __init__(self, directory: Path, state_url: str, *ports: int) -> None:
        self._directory, self._state_url = directory, state_url
        self._static = directory / "routed-pods.yaml"
        replicas = [f"127.0.0.1:{port}" for port in ports]
        self._static.write_text(yaml.safe_dump({"deployments": [{"name": "any", "replicas": replicas}]}))
        self._prefix = f"{secrets.token_hex(4)}:"
        self.routers: list[RouterProcess] = []

    def start_router(self) -> RouterProcess:
        flags = [
            f"--static={self._static}",
            f"--state-url={self._state_url}",
            f"--state-prefix={self._prefix}",
        ]
        self.routers.append(RouterProcess(self._directory, *flags, "--state-timeout-s=10"))
        return self.routers[-1]

    def close(self) -> None:
        for router in self.routers:
            router.close()


@pytest.fixture(scope="session")
def routed_pods() -> type[RoutedPods]:
    """The class."""
    return RoutedPods
