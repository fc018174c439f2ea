"""A cluster as its administrator sees it: helm, objects, and what became of them."""

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from kubernetes import client

from dragoman_contract.kubernetes import LOCAL_ADDRESS

HELM = Path(sys.executable).parent / "helm"
GROUP, VERSION, PLURAL = "dragoman.io", "v1alpha1", "translationdeployments"

T = TypeVar("T")


@dataclass(frozen=True)
class Fresh:
    """A cluster in which the tests install.

    `helm_timeout_s` is the maximum time of a command of helm.
    """

    kubeconfig: Path
    api: client.ApiClient
    helm_timeout_s: float = 110

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
        return subprocess.run(command, capture_output=True, text=True, timeout=self.helm_timeout_s)

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

    def pods(self, namespace: str, selector: str) -> dict[str, Any]:
        """Pods that are not being deleted, by their uid."""
        found = self.core.list_namespaced_pod(namespace, label_selector=selector).items
        return {pod.metadata.uid: pod for pod in found if pod.metadata.deletion_timestamp is None}

    def conditions(self, namespace: str, name: str) -> dict[str, dict[str, str]]:
        """The conditions of a TranslationDeployment, by type."""
        found = self.read(namespace, name).get("status", {}).get("conditions", [])
        return {each["type"]: each for each in found}

    def is_complete(self, namespace: str, name: str, replicas: int) -> bool:
        """Whether a TranslationDeployment's status is that of its spec, and all pods run it."""
        found = self.read(namespace, name)
        status = found.get("status", {})
        conditions = {each["type"]: each["reason"] for each in status.get("conditions", [])}
        return (
            status.get("observedGeneration") == found["metadata"]["generation"]
            and conditions.get("Progressing") == "Complete"
            and status.get("readyReplicas") == replicas
        )


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


def until(read: Callable[[], T], what: str, timeout_s: float = 30) -> T:
    """Read until the result is true, and return it; fails with `what` after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while not (found := read()):
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(0.05)
    return found
