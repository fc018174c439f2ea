"""The cluster that `--kubeconfig` names, and the chart in it: `make test-cluster`.

Nothing of Dragoman may be installed there. Everything that the tests make is removed at the end; two namespaces are
theirs, with the Pod Security level `restricted`.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config
from tests.support.fresh import GROUP, PLURAL, Fresh, found_or_none, until
from tests.support.release import LINES, OBJECTS, RELEASE, START_S, SYSTEM, World

CRD = f"{PLURAL}.{GROUP}"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
IMAGES = {
    "image": "dragoman-operator",
    "router.image": "dragoman-router",
    "engineImages.cpu": "dragoman-engine",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """The cluster, and what is installed there."""
    group = parser.getgroup("a real cluster")
    group.addoption("--kubeconfig", type=Path, help="its kubeconfig, with the rights of an administrator")
    group.addoption("--images", default="", help="prefix of the images; default: they are on the nodes")
    group.addoption("--engine", default="vllm", choices=["vllm", "scripted"], help="of the engine pods")
    group.addoption("--prometheus", default="", help="URL of a Prometheus in the cluster, for KEDA")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """They are one sequence, of which each step begins with what the one before left."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.real_cluster)
            item.add_marker(pytest.mark.timeout(5 * START_S))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the lines."""
    if LINES:
        terminalreporter.section("cluster")
        for line in LINES:
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def fresh(request: pytest.FixtureRequest) -> Iterator[Fresh]:
    """The cluster, with two namespaces."""
    kubeconfig = request.config.getoption("--kubeconfig", default=None)
    if kubeconfig is None:
        pytest.skip("no cluster: make test-cluster KUBECONFIG=FILE")
    with config.new_client_from_config(config_file=str(kubeconfig), persist_config=False) as api:
        cluster = Fresh(kubeconfig, api, helm_timeout_s=400)
        if found_or_none(lambda: cluster.definitions.read_custom_resource_definition(CRD)):
            pytest.fail(
                f"Dragoman is installed in this cluster: it has the CRD {CRD}. Name another cluster, or remove the "
                "release, its objects and the CRD (docs/how-to/install.md)",
                pytrace=False,
            )
        try:
            for name in (SYSTEM, OBJECTS):
                cluster.core.create_namespace({"metadata": {"name": name, "labels": RESTRICTED}})
            yield cluster
        finally:
            clean(cluster)


def clean(cluster: Fresh) -> None:
    """Remove the release, the CRD with all objects, and the namespaces, as far as they are there."""
    if f"{RELEASE}\t" in cluster.helm("list", "--all", f"--namespace={SYSTEM}"):
        cluster.helm("uninstall", RELEASE, f"--namespace={SYSTEM}", "--wait")
    found_or_none(lambda: cluster.definitions.delete_custom_resource_definition(CRD))
    for name in (SYSTEM, OBJECTS):
        found_or_none(partial(cluster.core.delete_namespace, name))
    until(
        lambda: not any(found_or_none(partial(cluster.core.read_namespace, name)) for name in (SYSTEM, OBJECTS)),
        "the namespaces are deleted",
        180,
    )  # fmt: skip


@pytest.fixture(scope="session")
def api_url(fresh: Fresh) -> Iterator[str]:
    """`kubectl proxy`: the API at an address of this machine, and through it any Service."""
    own = Path(sys.executable).parent / "kubectl"
    kubectl = str(own) if own.exists() else shutil.which("kubectl")
    if kubectl is None:
        pytest.fail(
            "kubectl is neither in .venv nor on PATH; the router is reached through it", pytrace=False
        )
    command = [kubectl, "--kubeconfig", str(fresh.kubeconfig), "proxy", "--port=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as proxy:
        try:
            assert proxy.stdout is not None
            yield f"http://{proxy.stdout.readline().split()[-1]}"
        finally:
            proxy.terminate()


@pytest.fixture(scope="session")
def world(fresh: Fresh, api_url: str, request: pytest.FixtureRequest) -> World:
    """The release, installed, with nothing in it."""
    option = request.config.getoption
    prefix = option("--images").rstrip("/")
    values = [f"--set={path}.repository={prefix}/{name}" for path, name in IMAGES.items()] if prefix else []
    url = f"{api_url}/api/v1/namespaces/{SYSTEM}/services/{RELEASE}-router:http/proxy"
    made = World(fresh, url, values, option("--engine"), option("--prometheus"))
    made.install()
    return made


@pytest.fixture
def needs_api(fresh: Fresh) -> Any:
    """Skip a test where the cluster does not serve an API, with the reason."""

    def check(group: str, controller: str) -> None:
        groups = {each.name for each in client.ApisApi(fresh.api).get_api_versions().groups}
        if group not in groups:
            LINES.append(f"skipped: {controller}: the cluster has no API {group}")
            pytest.skip(f"{controller}: the cluster has no API {group}")

    return check


@pytest.fixture
def note() -> Any:
    """Add a line to the summary."""
    return LINES.append
