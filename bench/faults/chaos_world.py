"""What the chaos run does to its cluster, step by step."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import aiohttp
from kubernetes.aio.client import ApiClient
from kubernetes.aio.client.exceptions import ApiException

from dragoman_tune.errors import MetricsError
from dragoman_tune.scrape import scrape
from faults.cluster import api_server, main_process
from faults.line import Line
from faults.world import PLACE, World

OUTAGE_S = 6.0
MAX_QUEUED = 20_000
"""One replica may be less than the load needs, and the callers of this run neither wait nor leave."""


class ChaosWorld(World):
    """The cluster, what runs in it, and what is done to it.

    Args:
        api_kind: `embedded` or `kube-apiserver`.
    """

    def __init__(
        self, api: ApiClient, directory: Path, line: Line, step_s: float, api_kind: str, replicas: int
    ) -> None:
        super().__init__(
            api,
            directory,
            line,
            step_s,
            router_flags=[f"--max-queued-requests={MAX_QUEUED}", f"--max-connections={2 * MAX_QUEUED}"],
        )
        self.replicas = replicas
        self._kind = api_kind

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
        async with aiohttp.ClientSession() as http:
            with suppress(MetricsError):
                found = (await scrape(http, self.admin(at))).get("dragoman_router_available_replicas")
                return None if found is None else int(found)
        return None

    async def roll(self) -> None:
        """Replace all pods."""
        before = await self.pods()
        await self.patch({"podTemplate": {"labels": {"turn": f"t{int(time.time())}"}}})

        async def replaced() -> bool:
            return not before.keys() & (await self.pods()).keys()

        await self.until(replaced)
        await self.settled()

    async def kill_pod(self) -> None:
        """SIGKILL to the process of one pod, and wait until it was started again."""
        victim, (killed, _) = next(iter((await self.pods()).items()))
        os.kill(main_process(killed), signal.SIGKILL)

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
        """Operator and routers are cut off from the API for a while."""
        self.line.cut()
        await asyncio.sleep(OUTAGE_S)
        self.line.whole = True
        await self.acted_on()

    def _api_server(self) -> int | None:
        return api_server(self._kind, self.dir / "cluster")
