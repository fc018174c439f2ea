"""The cluster of the chaos run, what runs in it, and what is done to it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
from chaos_line import Line
from kubernetes.aio.client import ApiClient, ApiextensionsV1Api, AppsV1Api, CoreV1Api, CustomObjectsApi

from dragoman_operator.crd import custom_resource_definition

PLACE = ("dragoman.io", "v1alpha1", "default", "translationdeployments")
MERGE = "application/merge-patch+json"
STEP_S = 90.0
OUTAGE_S = 6.0
ENGINE = {"first_token_s": 0.02, "token_s": 0.002, "slowdown_ratio": 0.02, "load_s": 0.5}
"""A short sentence takes about 50 ms, as on a GPU that is not full."""


class World:
    """The cluster, what runs in it, and what is done to it."""

    def __init__(self, api: ApiClient, directory: Path, api_kind: str, replicas: int) -> None:
        self.replicas = replicas
        self.core, self.apps, self.objects = CoreV1Api(api), AppsV1Api(api), CustomObjectsApi(api)
        self._api, self._dir, self._kind = api, directory, api_kind
        self.routers: list[subprocess.Popen[bytes]] = []
        self.operator: subprocess.Popen[bytes] | None = None
        self.ports = [_free_port() for _ in range(4)]
        self.line: Line | None = None

    def start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        """One of our processes; it reaches the API through the line."""
        environment = {**os.environ, "KUBECONFIG": str(self._dir / "through-the-line")}
        with (self._dir / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "dragoman", *arguments], env=environment, stdout=log, stderr=log
            )

    def start_operator(self) -> None:
        """The operator, with a Lease that is short."""
        flags = ["--namespaces=default", "--lease-namespace=default", "--host=127.0.0.1", "--health-port=0"]
        flags += [
            "--metrics-port=0",
            "--lease-duration-s=3",
            "--lease-renew-deadline-s=2",
            "--lease-retry-s=0.3",
        ]
        self.operator = self.start("operator", "operator", *flags)

    def start_router(self, at: int) -> subprocess.Popen[bytes]:
        """Router 0 or 1."""
        flags = [f"--port={self.ports[at]}", f"--admin-port={self.ports[at + 2]}", f"--router-id=router-{at}"]
        source = "slices" if self._kind == "embedded" else "pods"
        flags += ["--host=127.0.0.1", "--namespaces=default", f"--endpoints-from={source}"]
        return self.start(f"router-{at}", "router", *flags)

    async def router_ready(self, at: int) -> None:
        """Wait for its readiness probe."""

        async def ready() -> bool:
            async with aiohttp.ClientSession() as http:
                with suppress(aiohttp.ClientError):
                    async with http.get(f"http://127.0.0.1:{self.ports[at + 2]}/readyz") as answer:
                        return answer.status == 200
            return False

        await until(ready)

    async def create(self) -> None:
        """Our kind, and one object of it."""
        definition = custom_resource_definition()
        await ApiextensionsV1Api(self._api).patch_custom_resource_definition(
            definition["metadata"]["name"],
            definition,
            field_manager="chaos",
            force=True,
            _content_type="application/apply-patch+yaml",
        )
        spec = {
            "model": {"uri": "file:///opt/dragoman/examples/demo-model", "promptFamily": "chatml-generic"},
            "languages": [{"source": "en", "targets": ["de", "fr"]}],
            "engine": {"device": "cpu", "maxNumSeqs": 16, "extraArgs": ENGINE},
            "replicas": self.replicas,
            "rollout": {"drainTimeout": "10s"},
            "podTemplate": {"env": [{"name": "DRAGOMAN_ENGINE", "value": "scripted"}]},
        }
        body = {
            "apiVersion": "dragoman.io/v1alpha1",
            "kind": "TranslationDeployment",
            "metadata": {"name": "demo"},
            "spec": spec,
        }

        async def created() -> bool:
            try:
                await self.objects.create_namespaced_custom_object(*PLACE, body)
            except Exception:  # The kind is not served yet.
                return False
            return True

        await until(created)

    async def patch(self, fields: dict[str, Any]) -> None:
        """Merge into the spec."""
        await self.objects.patch_namespaced_custom_object(
            *PLACE, "demo", {"spec": fields}, _content_type=MERGE
        )

    async def rolled_out(self, replicas: int) -> bool:
        """Whether all pods are current, ready and as many as asked for."""
        try:
            found = await self.apps.read_namespaced_deployment("demo", "default")
        except Exception:  # Not made yet.
            return False
        status = found.status
        counts = (status.replicas, status.updated_replicas, status.available_replicas, found.spec.replicas)
        observed = (status.observed_generation or 0) >= found.metadata.generation
        return observed and all((count or 0) == replicas for count in counts)

    async def scale(self, replicas: int) -> None:
        """Scale, and wait until it is done."""
        await self.patch({"replicas": replicas})
        await until(lambda: self.rolled_out(replicas))

    async def roll(self) -> None:
        """Replace all pods."""
        before = await self.pods()
        await self.patch({"podTemplate": {"labels": {"turn": f"t{int(time.time())}"}}})

        async def replaced() -> bool:
            return not set(before) & set(await self.pods()) and await self.rolled_out(self.replicas)

        await until(replaced)

    async def pods(self) -> list[str]:
        """Names of all pods."""
        found = await self.core.list_namespaced_pod("default", label_selector="dragoman.io/deployment=demo")
        return [pod.metadata.name for pod in found.items]

    async def kill_pod(self) -> None:
        """SIGKILL to the process of one pod, and wait until it was started again."""
        victim = (await self.pods())[0]
        os.kill(process_of(victim), signal.SIGKILL)
        await asyncio.sleep(1)
        await until(lambda: self.rolled_out(self.replicas))

    async def kill_router(self) -> None:
        """SIGKILL to a router, and start it again."""
        self.routers[0].kill()
        self.routers[0].wait()
        await asyncio.sleep(1)
        self.routers[0] = self.start_router(0)
        await self.router_ready(0)

    async def drain_router(self) -> None:
        """SIGTERM to a router; it goes with status 0, and is started again."""
        leaving = self.routers[1]
        leaving.terminate()
        status = await asyncio.to_thread(leaving.wait, 60)
        assert status == 0, f"a drained router ended with {status}"
        self.routers[1] = self.start_router(1)
        await self.router_ready(1)

    async def restart_operator(self) -> None:
        """SIGTERM, and start it again."""
        assert self.operator is not None
        self.operator.terminate()
        await asyncio.to_thread(self.operator.wait, 30)
        self.start_operator()

    async def cut_off(self) -> None:
        """Nobody of ours reaches the API for a while."""
        assert self.line is not None
        self.line.cut()
        await asyncio.sleep(OUTAGE_S)
        self.line.whole = True
        await asyncio.sleep(2)

    def stop(self) -> None:
        """End our processes."""
        for process in [*self.routers, *([self.operator] if self.operator else [])]:
            if process.poll() is None:
                process.kill()
                process.wait()


def process_of(pod: str) -> int:
    """The engine's process of a pod of the local cluster."""
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            command = (environment.parent / "cmdline").read_bytes()
            if f"HOSTNAME={pod}".encode() in environment.read_bytes().split(b"\0") and b"serve" in command:
                return int(environment.parent.name)
    raise RuntimeError(f"no process of pod {pod}")


async def until(holds: Callable[[], Awaitable[bool]], timeout_s: float = STEP_S) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(timeout_s):
        while not await holds():  # noqa: ASYNC110 - what is waited for is elsewhere
            await asyncio.sleep(0.1)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
