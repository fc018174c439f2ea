"""`make kind`, as far as it can be judged without Docker: it builds, loads and names what the chart runs."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml


@pytest.fixture
def recipe(root: Path) -> str:
    """The commands, each on one line."""
    done = subprocess.run(
        ["make", "--dry-run", "kind"], cwd=root, capture_output=True, text=True, timeout=30, check=True
    )
    return done.stdout.replace("\\\n", " ")


@pytest.fixture
def installed(recipe: str, render: Any) -> Any:
    """The chart with the values that the recipe sets."""
    (values,) = re.findall(r"--set (\S+)", recipe)
    path, _, value = values.partition("=")
    group, _, name = path.partition(".")
    return render(**{group: {name: yaml.safe_load(value)}})


def deployments(installed: Any) -> dict[str, dict[str, Any]]:
    return {
        item["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"]: item
        for item in installed.all("Deployment")
    }


def containers(installed: Any) -> dict[str, dict[str, Any]]:
    return {
        component: item["spec"]["template"]["spec"]["containers"][0]
        for component, item in deployments(installed).items()
    }


def test_it_builds_and_loads_exactly_the_images_that_run(recipe: str, installed: Any, root: Path) -> None:
    demo = yaml.safe_load((root / "examples/demo.yaml").read_text())["spec"]
    found = containers(installed)
    (engine,) = (
        argument.partition("=")[2]
        for argument in found["operator"]["args"]
        if argument.startswith(f"--{demo['engine']['device']}-image=")
    )
    running = {container["image"] for container in found.values()} | {engine}
    assert found.keys() == {"operator", "router"}
    assert set(re.findall(r"--tag (\S+)", recipe)) == running
    (loaded,) = re.findall(r"kind load docker-image --name \S+ +(.+)", recipe)
    assert set(loaded.split()) == running
    assert all((root / path).is_file() for path in re.findall(r"docker build --file (\S+)", recipe))


def test_loaded_images_are_not_pulled(installed: Any) -> None:
    assert {container["imagePullPolicy"] for container in containers(installed).values()} == {"IfNotPresent"}


def test_cluster_has_one_name(recipe: str, root: Path) -> None:
    name = yaml.safe_load((root / "kind-config.yaml").read_text())["name"]
    assert set(re.findall(r"--name (\S+)", recipe)) == {name}
    assert set(re.findall(r"--(?:kube-)?context (\S+)", recipe)) == {f"kind-{name}"}


def test_it_prints_the_address_of_the_router(recipe: str, installed: Any) -> None:
    ((namespace, service, port),) = re.findall(
        r"--namespace (\S+) port-forward service/(\S+) \d+:(\d+)", recipe
    )
    # The release is called dragoman here, and release in these tests.
    found = installed.named("Service", service.replace("dragoman", "release-dragoman", 1))
    assert [each["port"] for each in found["spec"]["ports"]] == [int(port)]
    assert f"--namespace {namespace} --create-namespace" in recipe


def test_routers_are_spread_over_the_nodes_that_there_are(installed: Any, root: Path) -> None:
    nodes = yaml.safe_load((root / "kind-config.yaml").read_text())["nodes"]
    workers = [node for node in nodes if node["role"] == "worker"]
    assert workers
    spread = deployments(installed)["router"]["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert {each["whenUnsatisfiable"] for each in spread} == {"ScheduleAnyway"}
