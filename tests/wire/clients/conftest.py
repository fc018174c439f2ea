"""What the suites of real clients ask: a pod, and a router in front of the same pod.

`scripted_pod` has no model, `demo_pod` has vLLM, `start_served` starts a pod for one test. Each test that takes one of
them runs twice, with `pod` and with `router` in its name. `start_scripted` is for what only pods do: they refuse while
they load or are full, where a router queues; they have a quota and glossaries of their own.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from tests.support.demo_pod import LANGUAGES
from tests.support.servers import PodProcess, RouterProcess


class RoutedPod:
    """A pod whose clients ask a router; probes and metrics are the pod's.

    Args:
        pod: The pod.
        router: In front of it.
        client: Asks the router.
    """

    translate = PodProcess.translate

    def __init__(self, pod: PodProcess, router: RouterProcess, client: httpx.Client) -> None:
        self.pod, self.client = pod, client
        self.url, self.port = router.url, router.port

    def __getattr__(self, name: str) -> Any:
        return getattr(self.pod, name)


@contextmanager
def routed(pod: PodProcess, directory: Path, name: str, *languages: Any) -> Iterator[RoutedPod]:
    """A router in front of a pod.

    Args:
        pod: Ready.
        directory: For the list of deployments, and the log.
        name: Of the deployment, as the pod has it.
        languages: Its pairs; none: all.
    """
    replicas = [f"127.0.0.1:{pod.port}"]
    deployment = {
        "name": "default/one",
        "servedModelName": name,
        "languages": list(languages),
        "replicas": replicas,
    }
    listed = directory / f"deployments-{pod.port}.yaml"
    listed.write_text(yaml.safe_dump({"deployments": [deployment]}))
    router = RouterProcess(directory, f"--static={listed}")
    try:
        router.wait_until_ready()
        with httpx.Client(base_url=router.url, timeout=60) as client:
            yield RoutedPod(pod, router, client)
    finally:
        router.close()


@pytest.fixture(scope="session", params=["pod", "router"])
def way(request: pytest.FixtureRequest) -> Any:
    """What is called; of the whole session, so that each router starts once."""
    return request.param


@pytest.fixture(scope="session")
def own_scripted_pod(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PodProcess]:
    """The pod of `scripted_pod`."""
    pod = PodProcess(
        tmp_path_factory.mktemp("scripted-pod"),
        *("--model", "org/model", "--served-name", "scripted", "--engine", "scripted"),
    )
    try:
        pod.wait_for("/readyz")
        yield pod
    finally:
        pod.close()


@pytest.fixture(scope="session")
def scripted_pod(
    way: str, own_scripted_pod: PodProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    """Answers every segment at once with its reverse, for every pair of languages."""
    if way == "pod":
        yield own_scripted_pod
        return
    with routed(own_scripted_pod, tmp_path_factory.mktemp("scripted-router"), "scripted") as router:
        yield router


@pytest.fixture(scope="session")
def demo_pod(way: str, demo_pod: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Answers with the demo model."""
    if way == "pod":
        yield demo_pod
        return
    with routed(demo_pod, tmp_path_factory.mktemp("demo-router"), "demo", *LANGUAGES) as router:
        yield router


@pytest.fixture
def start_served(way: str, start_scripted: Any, tmp_path: Path) -> Iterator[Any]:
    """`start_scripted`, with a router in front of each pod."""
    with ExitStack() as stack:

        def start(*arguments: str, **script: Any) -> Any:
            pod = start_scripted(*arguments, **script)
            return pod if way == "pod" else stack.enter_context(routed(pod, tmp_path, "org/model"))

        yield start
