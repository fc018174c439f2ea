"""Clusters in which nothing is installed yet: the chart brings the CRD, and its operator may watch everything."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from kubernetes import client, config

from dragoman_contract.kubernetes import LOCAL_ADDRESS
from dragoman_devcluster.lifecycle import bring_up, take_down
from dragoman_devcluster.options import ClusterOptions

ROOT = Path(__file__).parents[3]
HELM = Path(sys.executable).parent / "helm"
GROUP, VERSION, PLURAL = "dragoman.io", "v1alpha1", "translationdeployments"

T = TypeVar("T")


@dataclass(frozen=True)
class Fresh:
    """A cluster of one test module's own, seen as its administrator."""

    kubeconfig: Path
    api: client.ApiClient

    @property
    def core(self) -> Any:
        return client.CoreV1Api(self.api)

    @property
    def apps(self) -> client.AppsV1Api:
        return client.AppsV1Api(self.api)

    @property
    def objects(self) -> client.CustomObjectsApi:
        return client.CustomObjectsApi(self.api)

    @property
    def definitions(self) -> client.ApiextensionsV1Api:
        return client.ApiextensionsV1Api(self.api)

    def helm(self, *arguments: str) -> str:
        """Run helm to its end; its standard output."""
        done = self._helm(*arguments)
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    def helm_fails(self, *arguments: str) -> str:
        """Run helm, which fails; what it printed."""
        done = self._helm(*arguments)
        assert done.returncode != 0, done.stdout
        return done.stdout + done.stderr

    def _helm(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(HELM), *arguments, "--kubeconfig", str(self.kubeconfig)]
        return subprocess.run(command, capture_output=True, text=True, timeout=110)

    def serves(self, definition: dict[str, Any]) -> bool:
        """Whether the API answers for a kind that a CustomResourceDefinition's spec defines."""
        kind = (definition["group"], definition["versions"][0]["name"], definition["names"]["plural"])
        return found_or_none(lambda: self.objects.list_cluster_custom_object(*kind)) is not None

    def lease_holder(self, namespace: str, name: str) -> str:
        """Who holds a Lease; empty if it was released or deleted."""
        leases = client.CoordinationV1Api(self.api)
        lease = found_or_none(lambda: leases.read_namespaced_lease(name, namespace))
        return str(lease.spec.holder_identity or "") if lease and lease.spec else ""

    def local_address(self, name: str, namespace: str) -> str:
        """Where a Service is reached from this machine; empty until the local cluster has annotated it."""
        service = self.core.read_namespaced_service(name, namespace)
        return str((service.metadata.annotations or {}).get(LOCAL_ADDRESS, ""))

    def make_namespace(self, name: str) -> str:
        self.core.create_namespace({"metadata": {"name": name}})
        return name

    def create(self, namespace: str, name: str, **spec: Any) -> None:
        """A TranslationDeployment; without replicas, so that no engine has to start."""
        made = {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": "TranslationDeployment",
            "metadata": {"name": name},
            "spec": make_spec(**spec),
        }
        self.objects.create_namespaced_custom_object(GROUP, VERSION, namespace, PLURAL, made)

    def edit(self, namespace: str, name: str, **spec: Any) -> None:
        """Merge into a TranslationDeployment's spec."""
        changed = {"spec": spec}
        self.objects.patch_namespaced_custom_object(GROUP, VERSION, namespace, PLURAL, name, changed)

    def read(self, namespace: str, name: str) -> dict[str, Any]:
        found: Any = self.objects.get_namespaced_custom_object(GROUP, VERSION, namespace, PLURAL, name)
        return dict(found)

    def deployment(self, namespace: str, name: str) -> client.V1Deployment | None:
        return found_or_none(lambda: self.apps.read_namespaced_deployment(name, namespace))


def make_spec(**changes: Any) -> dict[str, Any]:
    return {
        "model": {"uri": "file:///opt/dragoman/examples/demo-model", "promptFamily": "chatml-generic"},
        "engine": {"device": "cpu"},
        "replicas": 0,
        **changes,
    }


def found_or_none(read: Callable[[], T]) -> T | None:
    """What `read` returns; None if the API responds 404."""
    try:
        return read()
    except client.ApiException as error:
        if error.status != 404:
            raise
        return None


@pytest.fixture
def until() -> Callable[..., Any]:
    """Wait until a question has a true answer, and return it; fails with `what` after `timeout_s`."""

    def wait(ask: Callable[[], T], what: str, timeout_s: float = 30) -> T:
        deadline = time.monotonic() + timeout_s
        while not (answer := ask()):
            assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
            time.sleep(0.05)
        return answer

    return wait


@pytest.fixture(scope="module")
def fresh(api_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fresh]:
    directory = tmp_path_factory.mktemp(f"{api_kind}-chart") / "cluster"
    bring_up(ClusterOptions(dir=directory, api=api_kind, gpus=0))
    try:
        kubeconfig = directory / "kubeconfig"
        with config.new_client_from_config(config_file=str(kubeconfig), persist_config=False) as api:
            yield Fresh(kubeconfig, api)
    finally:
        take_down(directory)
