"""A local cluster under load: our object in it, the operator and two routers beside it."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
from kubernetes.aio import client

from dragoman_devcluster.ports import free_port
from dragoman_operator.api.crd import custom_resource_definition
from faults.line import Line

PLACE = ("dragoman.io", "v1alpha1", "default", "translationdeployments")
NAME = "demo"
MODEL = {"uri": "file:///opt/dragoman/examples/demo-model", "promptFamily": "chatml-generic"}
MERGE = "application/merge-patch+json"

LEASE_LOST = 1
"""Exit status of an operator that could not renew its Lease."""

Pod = Any
"""A pod as the client reads it: `V1Pod` declares every field optional, and the API always sends these."""


def staying(pods: Iterable[Pod]) -> dict[str, tuple[str, bool]]:
    """The pods without a deletion timestamp: a deleted one lives on for as long as its preStop takes.

    Returns:
        By name the id of its container, new with each start, and whether it is ready; without a container none.
    """
    return {
        pod.metadata.name: (status.container_id, status.ready)
        for pod in pods
        if pod.metadata.deletion_timestamp is None
        for status in (pod.status.container_statuses or ())
    }


class World:
    """The cluster and what runs in it.

    Args:
        directory: State and logs; the cluster's own are in `cluster` there.
        line: The way of our processes to the API.
        step_s: The longest that one thing done to the cluster may take.
        lease_s: The operator's Lease: duration, renew deadline and retry interval.
    """

    def __init__(
        self,
        api: client.ApiClient,
        directory: Path,
        line: Line,
        step_s: float,
        *,
        router_flags: Sequence[str] = (),
        lease_s: tuple[float, float, float] = (3, 2, 0.3),
    ) -> None:
        self.line = line
        self._step_s = step_s
        self._router_flags = list(router_flags)
        self._lease_s = lease_s
        self.core, self.apps = client.CoreV1Api(api), client.AppsV1Api(api)
        self.objects = client.CustomObjectsApi(api)
        self._api, self.dir = api, directory
        self.routers: list[subprocess.Popen[bytes]] = []
        self.operator: subprocess.Popen[bytes] | None = None
        self._restarting: asyncio.Task[None] | None = None
        self._turns = itertools.count()
        self.ports = [free_port() for _ in range(4)]

    def start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        """One of our processes; it reaches the API through the line."""
        environment = {**os.environ, "KUBECONFIG": str(self.dir / "through-the-line")}
        with (self.dir / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "dragoman", *arguments], env=environment, stdout=log, stderr=log
            )

    def start_operator(self) -> None:
        """The operator."""
        flags = ["--namespaces=default", "--lease-namespace=default", "--host=127.0.0.1", "--health-port=0"]
        duration_s, renew_deadline_s, retry_s = self._lease_s
        flags += [
            "--metrics-port=0",
            f"--lease-duration-s={duration_s:g}",
            f"--lease-renew-deadline-s={renew_deadline_s:g}",
            f"--lease-retry-s={retry_s:g}",
        ]
        self.operator = self.start("operator", "operator", *flags)
        self._restarting = asyncio.create_task(self._restart_after_loss(self.operator))

    async def _restart_after_loss(self, operator: subprocess.Popen[bytes]) -> None:
        """Start the operator again, as a kubelet does, if it has lost its Lease: it exits with status 1."""
        while (status := operator.poll()) is None:  # noqa: ASYNC110 - a process has no event
            await asyncio.sleep(0.2)
        if status == LEASE_LOST:
            self.start_operator()

    def start_router(self, at: int) -> subprocess.Popen[bytes]:
        """Router 0 or 1."""
        flags = [f"--port={self.ports[at]}", f"--admin-port={self.ports[at + 2]}", f"--router-id=router-{at}"]
        flags += ["--host=127.0.0.1", "--namespaces=default", *self._router_flags]
        return self.start(f"router-{at}", "router", *flags)

    async def router_ready(self, at: int) -> None:
        """Wait for its readiness probe."""

        async def ready() -> bool:
            if self.routers[at].poll() is not None:
                raise RuntimeError(f"router {at} has ended; see {self.dir / f'router-{at}.log'}")
            async with aiohttp.ClientSession() as http:
                with suppress(aiohttp.ClientError):
                    async with http.get(f"{self.admin(at)}/readyz") as answer:
                        return answer.status == 200
            return False

        await self.until(ready)

    async def create(self, specs: Mapping[str, Mapping[str, Any]]) -> None:
        """Our kind, and objects of it: their specs by name, without the model."""
        definition = custom_resource_definition()
        await client.ApiextensionsV1Api(self._api).patch_custom_resource_definition(
            definition["metadata"]["name"],
            definition,
            field_manager="faults",
            force=True,
            _content_type="application/apply-patch+yaml",
        )
        for name, spec in specs.items():
            body = {
                "apiVersion": "dragoman.io/v1alpha1",
                "kind": "TranslationDeployment",
                "metadata": {"name": name},
                "spec": {"model": MODEL, **spec},
            }
            await self.until(partial(self._created, body))

    async def _created(self, body: dict[str, Any]) -> bool:
        try:
            await self.objects.create_namespaced_custom_object(*PLACE, body)
        except Exception:  # The kind is not served yet.
            return False
        return True

    async def patch(self, fields: dict[str, Any], name: str = NAME) -> None:
        """Merge into the spec."""
        await self.objects.patch_namespaced_custom_object(*PLACE, name, {"spec": fields}, _content_type=MERGE)

    async def rolled_out(self, replicas: int | None = None, name: str = NAME) -> bool:
        """Whether all pods are current, ready and as many as desired, and these so many where a number is given."""
        try:
            found = await self.apps.read_namespaced_deployment(name, "default")
        except Exception:  # Not made yet.
            return False
        metadata, spec, status = found.metadata, found.spec, found.status
        if metadata is None or spec is None or status is None:
            return False
        wanted = found.spec.replicas if replicas is None else replicas
        counts = (status.replicas, status.updated_replicas, status.available_replicas, spec.replicas)
        observed = (status.observed_generation or 0) >= (metadata.generation or 0)
        return observed and all((count or 0) == wanted for count in counts)

    async def pods(self, name: str = NAME) -> dict[str, tuple[str, bool]]:
        """The pods that stay; see `staying`."""
        return staying(await self.all_pods(name))

    async def all_pods(self, name: str = NAME) -> list[Pod]:
        """The pods of an object, those that are leaving included."""
        selector = f"dragoman.io/deployment={name}"
        found = await self.core.list_namespaced_pod("default", label_selector=selector)
        return list(found.items)

    async def acted_on(self, name: str = NAME) -> None:
        """Change the object, and wait until the operator has carried it out: it leads, and hears of changes."""
        turn = {"chaos/turn": str(next(self._turns))}
        await self.patch({"service": {"annotations": turn}}, name)

        async def done() -> bool:
            service = await self.core.read_namespaced_service(name, "default")
            annotations = (service.metadata and service.metadata.annotations) or {}
            return turn.items() <= annotations.items()

        await self.until(done)

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Wait for a condition, as long as a step may take."""
        async with asyncio.timeout(self._step_s):
            while not await holds():  # noqa: ASYNC110 - what is waited for is elsewhere
                await asyncio.sleep(0.1)

    def admin(self, at: int) -> str:
        """The address of the admin port of router 0 or 1."""
        return f"http://127.0.0.1:{self.ports[at + 2]}"

    def stop(self) -> None:
        """End our processes."""
        if self._restarting is not None:
            self._restarting.cancel()
        for process in [*self.routers, *([self.operator] if self.operator else [])]:
            if process.poll() is None:
                process.kill()
                process.wait()
