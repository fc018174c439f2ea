"""Operators as processes of their own, so that they can be killed and frozen, and objects for them to work on."""

import asyncio
import json
import os
import re
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import pytest
from kubernetes.aio.client import ApiClient, ApiextensionsV1Api, CustomObjectsApi
from tests.support.load import Load
from tests.support.servers import ForkedProcess

from dragoman_devcluster.ports import free_port
from dragoman_kube.client import KubeClient
from dragoman_kube.errors import ClusterError
from dragoman_kube.kinds import DEPLOYMENT, EVENT, POD, Kind
from dragoman_kube.objects import Key
from dragoman_operator.api.crd import custom_resource_definition
from dragoman_operator.api.labels import selector
from dragoman_operator.observed.snapshot import TRANSLATION_DEPLOYMENT

T = TypeVar("T")
PLACE = ("dragoman.io", "v1alpha1")
PLURAL = "translationdeployments"
DEADLINE_S = 120.0


class Operator:
    """One `dragoman operator` process; times are short, so that successions do not take long.

    Args:
        kubeconfig: Of the cluster.
        namespace: The one that is served, with the Lease.
        log: File for what it writes to standard error.
        identity: Its name in the Lease.
        restart: Whether it is started again when it exits by itself, as a kubelet does.
        options: Further flags.
    """

    def __init__(
        self,
        kubeconfig: Path,
        namespace: str,
        log: Path,
        identity: str,
        restart: bool = True,
        **options: object,
    ) -> None:
        self.log, self.identity = log, identity
        self.metrics_port = free_port()
        settings = {
            "namespaces": namespace,
            "lease-namespace": namespace,
            "identity": identity,
            "host": "127.0.0.1",
            "health-port": 0,
            "metrics-port": self.metrics_port,
            "lease-duration-s": 6,
            "lease-renew-deadline-s": 4,
            "lease-retry-s": 0.3,
            **options,
        }
        flags = [f"--{name}={value}" for name, value in settings.items()]
        self._arguments = ["operator", *flags]
        # A killed process leaves its temporary files: the client's certificate is one.
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "TMPDIR": str(log.parent)}
        self.process = self._started()
        self.exits: list[int] = []
        """Statuses of the processes that ended by themselves."""
        self._supervisor = asyncio.create_task(self._supervise()) if restart else None

    def _started(self) -> ForkedProcess:
        return ForkedProcess(self._arguments, self.log, self._environment)

    async def _supervise(self) -> None:
        while True:
            if (status := self.process.poll()) is not None:
                self.exits.append(status)
                self.process = self._started()
            await asyncio.sleep(0.1)

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """End it at once, without any chance to tidy up; it is not started again."""
        self._let_go()
        self.process.kill()
        self.process.wait()

    def _let_go(self) -> None:
        if self._supervisor is not None:
            self._supervisor.cancel()

    def stop(self) -> int:
        """End it as a kubelet would; its exit status."""
        self._let_go()
        self.send(signal.SIGCONT)
        self.process.terminate()
        return self.process.wait(timeout=10)

    async def metric(self, pattern: str) -> float:
        """The sum of the samples whose name and labels match."""
        url = f"http://127.0.0.1:{self.metrics_port}/metrics"
        try:
            async with (
                aiohttp.ClientSession() as http,
                http.get(url, timeout=aiohttp.ClientTimeout(2)) as answer,
            ):
                text = await answer.text()
        except (aiohttp.ClientError, TimeoutError):
            return 0.0
        return sum(float(line.split()[-1]) for line in text.splitlines() if re.match(pattern, line))

    async def leads(self) -> bool:
        return await self.metric("dragoman_operator_leader") == 1


class World:
    """One namespace: TranslationDeployments in it, what became of them, and the operators that serve it."""

    def __init__(self, api: ApiClient, kubeconfig: Path, namespace: str, logs: Path) -> None:
        self.namespace, self.kubeconfig, self._logs = namespace, kubeconfig, logs
        self.kube = KubeClient(api, 10)
        self.objects = CustomObjectsApi(api)
        self.operators: list[Operator] = []

    def operator(self, identity: str = "first", **options: Any) -> Operator:
        kubeconfig = Path(str(options.pop("kubeconfig", self.kubeconfig)))
        log = self._logs / f"{identity}.log"
        made = Operator(kubeconfig, self.namespace, log, identity, **options)
        self.operators.append(made)
        return made

    def load(self, url: str) -> Load:
        """Requests to a Service or a pod."""
        return Load(url)

    async def create(self, name: str = "demo", **groups: Any) -> None:
        """A TranslationDeployment on scripted engines; `groups` replace groups of its spec."""
        spec: dict[str, Any] = {
            "model": {"uri": "file:///opt/dragoman/examples/demo-model", "promptFamily": "chatml-generic"},
            "languages": [{"source": "en", "targets": ["de", "fr"]}],
            "engine": {"device": "cpu", "maxNumSeqs": 4},
            "replicas": 1,
            "rollout": {"drainTimeout": "2s"},
            "podTemplate": {"env": [{"name": "DRAGOMAN_ENGINE", "value": "scripted"}]},
        }
        body = {
            "apiVersion": "/".join(PLACE),
            "kind": "TranslationDeployment",
            "metadata": {"name": name},
            "spec": spec | groups,
        }
        await self.objects.create_namespaced_custom_object(*PLACE, self.namespace, PLURAL, body)

    async def edit(self, name: str = "demo", **groups: Any) -> None:
        """Merge into the spec."""
        body = {"spec": groups}
        await self.objects.patch_namespaced_custom_object(
            *PLACE, self.namespace, PLURAL, name, body, _content_type="application/merge-patch+json"
        )

    async def scale(self, replicas: int, name: str = "demo") -> None:
        body = {"spec": {"replicas": replicas}}
        await self.objects.patch_namespaced_custom_object_scale(
            *PLACE, self.namespace, PLURAL, name, body, _content_type="application/merge-patch+json"
        )

    async def delete(self, name: str = "demo") -> None:
        await self.objects.delete_namespaced_custom_object(*PLACE, self.namespace, PLURAL, name)

    async def get(self, kind: Kind, name: str = "demo") -> dict[str, Any]:
        """The object; empty where there is none."""
        return await self.kube.get(kind, Key(self.namespace, name)) or {}

    async def change(self, kind: Kind, fields: dict[str, Any], name: str = "demo") -> dict[str, Any]:
        """Change a child as a user of kubectl would; the changed object."""
        answer = await self.objects.api_client.call_api(
            *await self.objects.api_client.param_serialize(
                "PATCH",
                _path(kind, self.namespace, name),
                {},
                [("fieldManager", "another-client")],
                {"Content-Type": "application/merge-patch+json"},
                fields,
                auth_settings=["BearerToken"],
            )
        )
        changed: dict[str, Any] = json.loads(await answer.read())
        return changed

    async def remove(self, kind: Kind, name: str = "demo") -> str:
        """Delete a child; the uid it had."""
        uid = str((await self.get(kind, name))["metadata"]["uid"])
        await self.kube.delete(kind, Key(self.namespace, name), uid)
        return uid

    async def pods(self, name: str = "demo") -> list[dict[str, Any]]:
        """Engine pods that are not being deleted."""
        labels = ",".join(f"{label}={value}" for label, value in selector(name).items())
        found = (await self.kube.list(POD, self.namespace, labels=labels)).items
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    async def status(self, name: str = "demo") -> dict[str, Any]:
        status: dict[str, Any] = (await self.get(TRANSLATION_DEPLOYMENT, name)).get("status", {})
        return status

    async def conditions(self, name: str = "demo") -> dict[str, dict[str, Any]]:
        return {found["type"]: found for found in (await self.status(name)).get("conditions", [])}

    async def events(self) -> list[tuple[str, str, int]]:
        """The operator's events: type, reason and count."""
        found = (await self.kube.list(EVENT, self.namespace)).items
        ours = [event for event in found if event["source"].get("component") == "dragoman-operator"]
        return sorted((event["type"], event["reason"], event["count"]) for event in ours)

    async def until(
        self, read: Callable[[], Awaitable[T]], holds: Callable[[T], bool], timeout_s: float = DEADLINE_S
    ) -> T:
        """Read until it holds; fails with what was read last, and with the operators' logs."""
        last: object = None
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    with suppress(ClusterError):
                        last = found = await read()
                        if holds(found):
                            return found
                    await asyncio.sleep(0.1)
        except TimeoutError:
            logs = "\n".join(
                f"{operator.identity}:\n{operator.log.read_text()}" for operator in self.operators
            )
            raise AssertionError(f"not within {timeout_s:g} s; last seen: {last}\n{logs}") from None

    async def until_condition(
        self,
        kind: str,
        status: str,
        reason: str | None = None,
        name: str = "demo",
        timeout_s: float = DEADLINE_S,
    ) -> str:
        """Wait for a condition; its message."""
        found = await self.until(
            lambda: self.conditions(name),
            lambda conditions: (
                conditions.get(kind, {}).get("status") == status
                and reason in (None, conditions[kind]["reason"])
            ),
            timeout_s,
        )
        return str(found[kind]["message"])

    async def until_complete(self, name: str = "demo", timeout_s: float = DEADLINE_S) -> None:
        """Wait until all pods run the spec as it is now."""
        generation = (await self.get(TRANSLATION_DEPLOYMENT, name))["metadata"]["generation"]

        def complete(conditions: dict[str, dict[str, Any]]) -> bool:
            found = conditions.get("Progressing", {})
            return (found.get("reason"), found.get("observedGeneration")) == ("Complete", generation)

        await self.until(lambda: self.conditions(name), complete, timeout_s)

    async def until_quiet(self, name: str = "demo") -> None:
        """Wait until it is complete, and the Deployment's own controller has written its last status as well."""
        await self.until_complete(name)
        await self.until(
            lambda: self.get(DEPLOYMENT, name),
            lambda found: (
                any(c["reason"] == "NewReplicaSetAvailable" for c in found["status"]["conditions"])
                and found["status"].get("availableReplicas") == found["spec"]["replicas"]
            ),
        )


def _path(kind: Kind, namespace: str, name: str) -> str:
    root = "apis" if "/" in kind.api_version else "api"
    return f"/{root}/{kind.api_version}/namespaces/{namespace}/{kind.plural}/{name}"


@pytest.fixture
async def crd(api: ApiClient) -> None:
    """Our kind, installed as by `dragoman crd | kubectl apply`."""
    definition = custom_resource_definition()
    definitions = ApiextensionsV1Api(api)
    await definitions.patch_custom_resource_definition(
        definition["metadata"]["name"],
        definition,
        field_manager="tests",
        force=True,
        _content_type="application/apply-patch+yaml",
    )
    kube = KubeClient(api, 10)
    async with asyncio.timeout(20):
        while True:
            if await kube.serves(TRANSLATION_DEPLOYMENT):
                return
            await asyncio.sleep(0.05)


@pytest.fixture
async def world(
    cluster: Any, api: ApiClient, namespace: str, crd: None, tmp_path: Path
) -> AsyncIterator[World]:
    """An empty namespace; operators started in it end with the test."""
    made = World(api, cluster.kubeconfig, namespace, tmp_path)
    try:
        yield made
    finally:
        for operator in made.operators:
            operator.kill()
