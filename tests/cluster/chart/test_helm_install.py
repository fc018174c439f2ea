"""The chart as its users meet it: install, upgrade, uninstall, install again. A real API server also enforces
the roles that it installs."""

import shutil
from pathlib import Path

import pytest
import yaml

CHART = Path(__file__).parents[3] / "charts/dragoman"
CRD = "translationdeployments.dragoman.io"
SYSTEM = ["--namespace", "dragoman-system"]

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]


@pytest.fixture
def newer_chart(tmp_path: Path) -> Path:
    """The next release of the chart, whose CRD has one more column."""
    copy = tmp_path / "dragoman"
    shutil.copytree(CHART, copy)
    path = copy / f"files/{CRD}.yaml"
    definition = yaml.safe_load(path.read_text())
    column = {"name": "Newer", "type": "string", "jsonPath": ".metadata.uid"}
    definition["spec"]["versions"][0]["additionalPrinterColumns"].append(column)
    path.write_text(yaml.safe_dump(definition))
    return copy


def operators(fresh, namespace="dragoman-system"):
    selector = "app.kubernetes.io/name=dragoman,app.kubernetes.io/component=operator"
    return fresh.core.list_namespaced_pod(namespace, label_selector=selector).items


def is_ready(pod) -> bool:
    return any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions or ())


def has_seen(fresh, namespace, name) -> bool:
    found = fresh.read(namespace, name)
    return bool(found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"])


def test_install_upgrade_uninstall_and_install_again(fresh, until, newer_chart):
    fresh.helm("install", "dragoman", str(CHART), *SYSTEM, "--create-namespace", "--wait", "--timeout=90s")
    (first,) = operators(fresh)
    assert is_ready(first), "helm --wait waits for the operator"

    fresh.create("default", "demo")
    until(lambda: fresh.deployment("default", "demo"), "the operator made the Deployment")
    until(lambda: has_seen(fresh, "default", "demo"), "the operator wrote the status")

    upgrade = ["upgrade", "dragoman", str(newer_chart), *SYSTEM, "--reuse-values", "--wait", "--timeout=90s"]
    fresh.helm(*upgrade, "--set", "replicas=2", "--set", "logLevel=debug")
    columns = (
        fresh.definitions.read_custom_resource_definition(CRD).spec.versions[0].additional_printer_columns
    )
    assert columns[-1].name == "Newer", "the CRD was upgraded with the release"
    until(lambda: first.metadata.name not in names(operators(fresh)), "the old operator left")
    assert [is_ready(pod) for pod in operators(fresh)] == [True, True], "the one that stands by is ready too"
    fresh.edit("default", "demo", engine={"maxNumSeqs": 7})
    until(lambda: "7" in engine_arguments(fresh, "demo"), "the new operator acts on what is edited")

    output = fresh.helm("uninstall", "dragoman", *SYSTEM, "--wait")
    assert CRD in output, "helm says that the CRD was kept"
    until(lambda: not operators(fresh), "the operators left")
    until(lambda: not fresh.lease_holder("dragoman-system", "dragoman"), "no Lease has a holder")
    assert fresh.definitions.read_custom_resource_definition(CRD)
    assert fresh.read("default", "demo")["spec"]["engine"]["maxNumSeqs"] == 7
    assert fresh.deployment("default", "demo"), "engine pods go on without the operator"

    fresh.edit("default", "demo", engine={"maxNumSeqs": 8})
    fresh.helm("install", "dragoman", str(CHART), *SYSTEM, "--wait", "--timeout=90s")
    until(lambda: "8" in engine_arguments(fresh, "demo"), "the operator carries on with what it finds")
    fresh.helm("uninstall", "dragoman", *SYSTEM, "--wait")


def test_an_operator_for_some_namespaces_leaves_the_others_alone(fresh, until):
    mine, others = fresh.make_namespace("mine"), fresh.make_namespace("others")
    install = ["install", "mine", str(CHART), "--namespace", "mine-system", "--create-namespace", "--wait"]
    if fresh.definitions.list_custom_resource_definition().items:
        install += ["--set", "crds.install=false"]
    fresh.helm(*install, "--timeout=90s", "--set", "watchNamespaces={mine}")
    fresh.create(others, "first")
    fresh.create(mine, "second")
    until(lambda: fresh.deployment(mine, "second"), "the operator made the Deployment")
    until(lambda: has_seen(fresh, mine, "second"), "the operator wrote the status")
    assert fresh.deployment(others, "first") is None
    assert fresh.read(others, "first")["status"]["observedGeneration"] == -1
    fresh.helm("uninstall", "mine", "--namespace", "mine-system", "--wait")


def names(pods) -> set[str]:
    return {pod.metadata.name for pod in pods}


def engine_arguments(fresh, name) -> list[str]:
    found = fresh.deployment("default", name)
    return found.spec.template.spec.containers[0].args if found else []
