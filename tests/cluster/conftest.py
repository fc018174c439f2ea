"""Clusters of our own for tests: one per kind of API and session, in a temporary directory, on free ports."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, AppsV1Api, CoreV1Api
from kubernetes.aio.client.exceptions import NotFoundException

from dragoman_devcluster.lifecycle import bring_up, take_down
from dragoman_devcluster.options import Backoff, ClusterOptions
from dragoman_devcluster.servers.kube_apiserver import BINARIES, find_binaries

Manifest = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Cluster:
    """A cluster that is up.

    `kubeconfig` is its administrator's, `url` its API's address, `dir` its state directory, `api` its kind of
    API server: `embedded` or `kube-apiserver`.
    """

    kubeconfig: Path
    url: str
    dir: Path
    api: str

    @asynccontextmanager
    async def client(self) -> AsyncIterator[ApiClient]:
        """A client of the package `kubernetes.aio`: `async with cluster.client() as api: CoreV1Api(api)…`."""
        client = await config.new_client_from_config(config_file=str(self.kubeconfig), persist_config=False)
        async with client:
            yield client


SERVER = """
import http.server, os, pathlib

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.strip("/")
        body = os.environ.get(name, "") if name.isupper() else os.environ["HOSTNAME"]
        self.send_response(503 if name and pathlib.Path(name).exists() else 200)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *arguments):
        pass

http.server.ThreadingHTTPServer((os.environ["DRAGOMAN_HOST"], 8000), Handler).serve_forever()
"""
"""Answers its pod's name, or a variable that the path names; 503 where the path names a file in its directory."""

READY = {"httpGet": {"path": "/unready", "port": "http"}, "periodSeconds": 1}


def server(**fields: object) -> Manifest:
    """A container that serves on port 8000 at once, and is ready unless a file `unready` exists."""
    ports = [{"name": "http", "containerPort": 8000}]
    command = ["python", "-S", "-c", SERVER]
    return {
        "name": "main",
        "image": "none",
        "command": command,
        "ports": ports,
        "readinessProbe": READY,
        **fields,
    }


class Workloads:
    """Runs things in one namespace, and waits for them with a deadline."""

    def __init__(self, api: ApiClient, namespace: str) -> None:
        self.api, self.namespace = api, namespace
        # Any: the library types bodies as its models, which it takes as dictionaries too, and every field as Optional.
        self.core: Any = CoreV1Api(api)
        self.apps: Any = AppsV1Api(api)

    async def deploy(self, name: str, container: Manifest, **spec: Any) -> None:
        """Create a Deployment of one container; `pod` adds to the pod's spec, the rest to the Deployment's."""
        labels = {"app": name}
        pod = {"containers": [container], "terminationGracePeriodSeconds": 5, **spec.pop("pod", {})}
        template = {"metadata": {"labels": labels}, "spec": pod}
        body = {
            "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
        }
        await self.apps.create_namespaced_deployment(self.namespace, body)

    async def patch(self, name: str, **spec: object) -> None:
        """Merge fields into a Deployment's spec; containers by their name."""
        await self.apps.patch_namespaced_deployment(name, self.namespace, {"spec": spec})

    async def run(self, name: str, container: Manifest, **spec: object) -> None:
        """Create a pod of one container."""
        spec = {"containers": [container], "terminationGracePeriodSeconds": 5, **spec}
        body = {"metadata": {"name": name, "labels": {"app": name}}, "spec": spec}
        await self.core.create_namespaced_pod(self.namespace, body)

    async def expose(self, name: str, **spec: object) -> str:
        """Create a Service of the same name for `app`; its local address."""
        spec = {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": "http"}], **spec}
        await self.core.create_namespaced_service(self.namespace, {"metadata": {"name": name}, "spec": spec})
        service = await self.until(
            lambda: self.core.read_namespaced_service(name, self.namespace),
            lambda service: "dragoman.io/local-address" in (service.metadata.annotations or {}),
        )
        return str(service.metadata.annotations["dragoman.io/local-address"])

    async def deployment(self, name: str) -> Any:
        """The Deployment as it is now."""
        return await self.apps.read_namespaced_deployment(name, self.namespace)

    async def pod(self, name: str) -> Any:
        """The pod as it is now."""
        return await self.core.read_namespaced_pod(name, self.namespace)

    async def pods(self, app: str) -> list[Any]:
        """The pods of an app that are not being deleted, oldest first."""
        found = await self.core.list_namespaced_pod(self.namespace, label_selector=f"app={app}")
        staying = [pod for pod in found.items if pod.metadata.deletion_timestamp is None]
        return sorted(staying, key=lambda pod: pod.metadata.creation_timestamp)

    async def all_ready(self, name: str) -> Any:
        """Wait until a Deployment has rolled out."""
        return await self.until(lambda: self.deployment(name), has_rolled_out)

    async def events(self, reason: str) -> list[str]:
        """The messages of the events of a reason."""
        found = await self.core.list_namespaced_event(self.namespace)
        return [event.message for event in found.items if event.reason == reason]

    async def until(
        self, read: Callable[[], Awaitable[T]], holds: Callable[[T], bool], timeout_s: float = 30.0
    ) -> T:
        """Read again and again until what is read holds; fails with the last of it after `timeout_s`."""
        last: T | None = None
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    with suppress(NotFoundException):
                        last = await read()
                        if holds(last):
                            return last
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"not within {timeout_s:g} s; last seen: {last}") from None

    async def until_gone(self, read: Callable[[], Awaitable[object]], timeout_s: float = 30.0) -> None:
        """Wait until the object does not exist."""
        async with asyncio.timeout(timeout_s):
            with suppress(NotFoundException):
                while True:
                    await read()
                    await asyncio.sleep(0.05)


def has_rolled_out(deployment: Any) -> bool:
    """Whether every desired replica is current and available, and no other is left."""
    status, desired = deployment.status, deployment.spec.replicas
    counts = (status.replicas, status.updated_replicas, status.available_replicas)
    observed = (status.observed_generation or 0) >= deployment.metadata.generation
    return observed and all((count or 0) == desired for count in counts)


def api_kinds() -> list[object]:
    """The kinds of API that cluster tests run against; a real one is skipped where its binaries are missing."""
    missing = [name for name in BINARIES if name not in find_binaries(os.environ)]
    why = f"no {' and no '.join(missing)} in KUBEBUILDER_ASSETS or PATH"
    real = pytest.param("kube-apiserver", marks=pytest.mark.skipif(bool(missing), reason=why))
    return ["embedded", real]


@pytest.fixture(scope="session", params=api_kinds())
def api_kind(request: pytest.FixtureRequest) -> str:
    """The kind of API server, each in turn."""
    return str(request.param)


StartCluster = Callable[..., AbstractContextManager[Cluster]]


@pytest.fixture(scope="session")
def start_cluster(api_kind: str, tmp_path_factory: pytest.TempPathFactory) -> StartCluster:
    """Bring up a cluster for a while; crashing containers wait tenths of seconds instead of tens."""

    @contextmanager
    def start(gpus: int = 0) -> Iterator[Cluster]:
        directory = tmp_path_factory.mktemp(api_kind) / "cluster"
        options = ClusterOptions(
            dir=directory,
            api=api_kind,
            gpus=gpus,
            backoff=Backoff(0.2, 2.0),
            stop_grace_s=1,
            preload="tests.support.preloaded",
        )
        supervisor = bring_up(options)
        try:
            yield Cluster(directory / "kubeconfig", supervisor.url, directory, supervisor.api)
        finally:
            take_down(directory)

    return start


@pytest.fixture(scope="session")
def cluster(start_cluster: StartCluster) -> Iterator[Cluster]:
    """A cluster that lasts for the session."""
    with start_cluster() as started:
        yield started


@pytest.fixture(name="server")
def server_fixture() -> Callable[..., Manifest]:
    """The builder `server`, for test modules, which cannot import this one."""
    return server


@pytest.fixture
async def namespace(cluster: Cluster) -> AsyncIterator[str]:
    """A namespace of the test's own, deleted with everything in it afterwards."""
    async with cluster.client() as api:
        core: Any = CoreV1Api(api)
        created = await core.create_namespace({"metadata": {"generateName": "test-"}})
        yield created.metadata.name
        await core.delete_namespace(created.metadata.name)


@pytest.fixture
async def api(cluster: Cluster) -> AsyncIterator[ApiClient]:
    """A client with the administrator's rights."""
    async with cluster.client() as client:
        yield client


@pytest.fixture
def workloads(api: ApiClient, namespace: str) -> Workloads:
    """What local cluster tests run: small processes in a namespace of their own."""
    return Workloads(api, namespace)
