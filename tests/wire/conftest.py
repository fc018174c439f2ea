"""Pods, and routers before them, as separate processes, called over HTTP as clients do."""

import json
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.browser import ARGUMENTS, CHROMIUM, axe_script, watched_page
from tests.support.few_authorities import trust_one_authority
from tests.support.servers import PodProcess, RouterProcess

trust_one_authority()


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


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium for all tests of a module; each has a profile of its own."""
    playwright = pytest.importorskip("playwright.sync_api", reason="requirements/test.txt has it")
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """See `watched_page`."""
    with watched_page(browser) as opened:
        yield opened


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe-core."""
    return axe_script(tmp_path_factory.mktemp("axe"))
