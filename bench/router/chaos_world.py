"""The cluster of the chaos run, what runs in it, and what is done to it."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
from chaos_engines import Engines
from chaos_processes import api_server, main_process
from kubernetes.aio.client import (
    ApiClient,
    ApiextensionsV1Api,
    AppsV1Api,
    CoreV1Api,
    CustomObjectsApi,
    V1Pod,
)
from kubernetes.aio.client.exceptions import ApiException

from dragoman_bench.line import Line
from dragoman_local.servers.server import free_port
from dragoman_operator.crd import custom_resource_definition

PLACE = ("dragoman.io", "v1alpha1", "default", "translationdeployments")
MERGE = "application/merge-patch+json"
OUTAGE_S = 6.0
MAX_HELD = 20_000
"""One replica may be less than the load needs, and the callers of this run neither wait nor leave."""


def staying(pods: Iterable[V1Pod]) -> dict[str, tuple[str, bool]]:
    """The pods that nobody has deleted: a deleted one lives on for as long as its preStop takes.

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
    """The cluster, what runs in it, and what is done to it.

    Args:
        api: A client of it, not through the line.
        directory: State and logs; the cluster's own are in `cluster` there.
        api_kind: `embedded` or `kube-apiserver`.
        replicas: Engine pods.
        engines: What they run.
        line: The way of our processes to the API.
    """

    def __init__(
        self, api: ApiClient, directory: Path, api_kind: str, replicas: int, engines: Engines, line: Line
    ) -> None:
        self.replicas, self.line = replicas, line
        self._engines = engines
        self.core, self.apps, self.objects = CoreV1Api(api), AppsV1Api(api), CustomObjectsApi(api)
        self._api, self._dir, self._kind = api, directory, api_kind
        self.routers: list[subprocess.Popen[bytes]] = []
        self.operator: subprocess.Popen[bytes] | None = None
        self._turns = itertools.count()
        self.ports = [free_port() for _ in range(4)]

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
        flags += ["--host=127.0.0.1", "--namespaces=default", f"--max-held={MAX_HELD}"]
        return self.start(f"router-{at}", "router", *flags)

    async def router_ready(self, at: int) -> None:
        """Wait for its readiness probe."""

        async def ready() -> bool:
            if self.routers[at].poll() is not None:
                raise RuntimeError(f"router {at} has ended; see {self._dir / f'router-{at}.log'}")
            async with aiohttp.ClientSession() as http:
                with suppress(aiohttp.ClientError):
                    async with http.get(self._admin(at, "readyz")) as answer:
                        return answer.status == 200
            return False

        await self.until(ready)

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
            **self._engines.spec,
            "replicas": self.replicas,
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

        await self.until(created)

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
        """Scale, and wait until it is done and both routers know."""
        await self.patch({"replicas": replicas})
        await self.settled(replicas)

    async def settled(self, replicas: int | None = None) -> None:
        """Wait until all pods are as they should be, and both routers send to as many."""
        wanted = self.replicas if replicas is None else replicas

        async def holds() -> bool:
            known = await asyncio.gather(*(self.known_to(at) for at in (0, 1)))
            return all(count == wanted for count in known) and await self.rolled_out(wanted)

        await self.until(holds)

    async def known_to(self, at: int) -> int | None:
        """How many replicas router 0 or 1 sends to; None where it does not say."""
        with suppress(aiohttp.ClientError):
            async with aiohttp.ClientSession() as http, http.get(self._admin(at, "metrics")) as answer:
                found = re.search(
                    r"^dragoman_router_open_replicas\{.*\} (\S+)$", await answer.text(), re.MULTILINE
                )
                return int(float(found[1])) if found else None
        return None

    async def roll(self) -> None:
        """Replace all pods."""
        before = await self.pods()
        await self.patch({"podTemplate": {"labels": {"turn": f"t{int(time.time())}"}}})

        async def replaced() -> bool:
            return not before.keys() & (await self.pods()).keys()

        await self.until(replaced)
        await self.settled()

    async def pods(self) -> dict[str, tuple[str, bool]]:
        """The pods that stay; see `staying`."""
        found = await self.core.list_namespaced_pod("default", label_selector="dragoman.io/deployment=demo")
        return staying(found.items)

    async def kill_pod(self) -> None:
        """SIGKILL to the process of one pod, and wait until it was started again."""
        victim, (killed, _) = next(iter((await self.pods()).items()))
        os.kill(main_process(victim), signal.SIGKILL)

        async def ready_again() -> bool:
            container, ready = (await self.pods())[victim]
            return ready and container != killed

        await self.until(ready_again)
        await self.settled()

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
        await self.acted_on()

    async def restart_api(self) -> None:
        """SIGKILL to the API server, which the cluster starts again; no pod is, and afterwards all of it works."""
        before = await self.pods()
        killed = self._api_server()
        assert killed is not None, "no process of the API server"
        os.kill(killed, signal.SIGKILL)

        async def serves() -> bool:
            with suppress(aiohttp.ClientError, ApiException, OSError):
                # A kube-apiserver serves its own kinds before those of CRDs.
                await self.objects.get_namespaced_custom_object(*PLACE, "demo")
                return self._api_server() not in (None, killed)
            return False

        await self.until(serves)
        assert await self.pods() == before, "pods did not live through the restart of the API"
        await self.acted_on()
        # Controllers, node and routers hear of changes again.
        await self.scale(self.replicas - 1)
        await self.scale(self.replicas)

    async def cut_off(self) -> None:
        """Nobody of ours reaches the API for a while."""
        self.line.cut()
        await asyncio.sleep(OUTAGE_S)
        self.line.whole = True
        await self.acted_on()

    async def acted_on(self) -> None:
        """Change the object, and wait until the operator has carried it out: it leads, and hears of changes."""
        turn = {"chaos/turn": str(next(self._turns))}
        await self.patch({"service": {"annotations": turn}})

        async def done() -> bool:
            service = await self.core.read_namespaced_service("demo", "default")
            return turn.items() <= (service.metadata.annotations or {}).items()

        await self.until(done)

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Wait for a condition, as long as a step may take."""
        async with asyncio.timeout(self._engines.step_s):
            while not await holds():  # noqa: ASYNC110 - what is waited for is elsewhere
                await asyncio.sleep(0.1)

    def _admin(self, at: int, path: str) -> str:
        return f"http://127.0.0.1:{self.ports[at + 2]}/{path}"

    def _api_server(self) -> int | None:
        return api_server(self._kind, self._dir / "cluster")

    def stop(self) -> None:
        """End our processes."""
        for process in [*self.routers, *([self.operator] if self.operator else [])]:
            if process.poll() is None:
                process.kill()
                process.wait()
