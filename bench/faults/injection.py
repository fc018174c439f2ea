"""Carries out the schedule of faults, and keeps what happened."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from faults.cluster import main_process
from faults.load import FaultLoad
from faults.prometheus import Prometheus
from faults.schedule import Fault
from faults.world import World

DRAIN_S = 120.0
"""Longest time from a router's SIGTERM to its end: notice and drain timeout together are 65 s."""
NO_PROMETHEUS = "no prometheus on PATH (Debian: apt install prometheus)"

ONE_AT_A_TIME = {
    "router SIGKILL": "routers",
    "router SIGTERM": "routers",
    "operator SIGKILL": "operator",
    "API gone": "API",
    "Prometheus gone": "Prometheus",
}
"""Faults of one thing wait for each other. The two routers are one: nothing serves while both are gone."""


class Injector:
    """What is done to the world, fault by fault.

    Args:
        rate: Requests a second of the steady load.
        prometheus: The one that an object's autoscaler reads; None where there is none.
    """

    def __init__(
        self, world: World, names: Sequence[str], load: FaultLoad, rate: float, prometheus: Prometheus | None
    ) -> None:
        self._world, self._names, self._load, self._prometheus = world, names, load, prometheus
        self._rate = rate
        self._locks: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._stopped: dict[str, int] = {}
        self._edits = 0
        self.happened: list[dict[str, Any]] = []
        self.down: set[str] = set()
        """Processes that a fault has ended and not yet started again."""
        self._ways: dict[str, Callable[..., Awaitable[str]]] = {
            "pod SIGKILL": self._kill_pod,
            "pod SIGSTOP": self._stop_pod,
            "router SIGKILL": self._kill_router,
            "router SIGTERM": self._drain_router,
            "operator SIGKILL": self._kill_operator,
            "API gone": self._cut_api,
            "Prometheus gone": self._kill_prometheus,
            "rolling edit": self._edit,
            "burst": self._burst,
            "slow readers": self._slow_readers,
            "clients leave": self._clients_leave,
        }

    @property
    def in_progress(self) -> list[str]:
        """The faults that have begun and not ended."""
        return [each["kind"] for each in self.happened if "began_s" in each and "ended_s" not in each]

    async def run(self, faults: Sequence[Fault]) -> None:
        """All of them, each at its time; returns once the last has ended."""
        async with asyncio.TaskGroup() as group:
            for fault in faults:
                await asyncio.sleep(max(0.0, fault.at_s - self._load.now_s))
                group.create_task(self._one(fault))

    async def _one(self, fault: Fault) -> None:
        record: dict[str, Any] = {"at_s": fault.at_s, "kind": fault.kind, "parameters": fault.parameters}
        self.happened.append(record)
        async with self._locks[ONE_AT_A_TIME.get(fault.kind, f"{fault.kind} at {fault.at_s}")]:
            record["began_s"] = round(self._load.now_s, 1)
            try:
                record["what"] = await self._ways[fault.kind](**fault.parameters)
            except Exception as error:
                # The run goes on, and fails with this in its sentence.
                record["problem"] = f"{type(error).__name__}: {error}"
            record["ended_s"] = round(self._load.now_s, 1)

    async def _victim(self, pick: float) -> tuple[str, int] | None:
        """A ready pod and its process."""
        pods = [
            (pod, container_id)
            for name in self._names
            for pod, (container_id, ready) in sorted((await self._world.pods(name)).items())
            if ready and pod not in self._stopped
        ]
        if not pods:
            return None
        victim, container_id = pods[int(pick * len(pods))]
        try:
            return victim, main_process(container_id)
        except RuntimeError:
            return None  # It has ended by itself in this moment.

    async def _kill_pod(self, pick: float) -> str:
        found = await self._victim(pick)
        if found is None:
            return "no ready pod"
        with suppress(ProcessLookupError):
            os.kill(found[1], signal.SIGKILL)
        return found[0]

    async def _stop_pod(self, pick: float, seconds: float) -> str:
        found = await self._victim(pick)
        if found is None:
            return "no ready pod"
        pod, process = found
        # A handle, because the node may kill the pod meanwhile, and its number may be given to another process.
        with suppress(ProcessLookupError):
            handle = os.pidfd_open(process)
            self._stopped[pod] = handle
            try:
                signal.pidfd_send_signal(handle, signal.SIGSTOP)
                await asyncio.sleep(seconds)
                signal.pidfd_send_signal(handle, signal.SIGCONT)
            finally:
                del self._stopped[pod]
                os.close(handle)
        return pod

    async def _kill_router(self, router: int, down_s: float) -> str:
        name = f"router-{router}"
        self.down.add(name)
        killed = self._world.routers[router]
        killed.kill()
        await asyncio.to_thread(killed.wait)
        await self._start_router(router, down_s)
        return name

    async def _drain_router(self, router: int, down_s: float) -> str:
        name = f"router-{router}"
        self.down.add(name)
        leaving = self._world.routers[router]
        leaving.terminate()
        try:
            status = await asyncio.to_thread(leaving.wait, DRAIN_S)
        except Exception:
            leaving.kill()
            await asyncio.to_thread(leaving.wait)
            await self._start_router(router, down_s)
            raise
        await self._start_router(router, down_s)
        if status:
            raise RuntimeError(f"{name} ended with status {status} after SIGTERM")
        return name

    async def _start_router(self, router: int, down_s: float) -> None:
        await asyncio.sleep(down_s)
        self._world.routers[router] = self._world.start_router(router)
        self.down.discard(f"router-{router}")
        await self._world.router_ready(router)

    async def _kill_operator(self, down_s: float) -> str:
        self.down.add("operator")
        operator = self._world.operator
        assert operator is not None
        operator.kill()
        await asyncio.to_thread(operator.wait)
        await asyncio.sleep(down_s)
        self._world.start_operator()
        self.down.discard("operator")
        return "operator"

    async def _cut_api(self, seconds: float) -> str:
        self._world.line.cut()
        try:
            await asyncio.sleep(seconds)
        finally:
            self._world.line.whole = True
        return "operator and routers are cut off"

    async def _kill_prometheus(self, seconds: float) -> str:
        if self._prometheus is None:
            print(f"Prometheus gone: skipped, {NO_PROMETHEUS}", flush=True)
            return f"skipped: {NO_PROMETHEUS}"
        await asyncio.to_thread(self._prometheus.kill)
        await asyncio.sleep(seconds)
        self._prometheus.start()
        return self._prometheus.url

    async def _edit(self, pick: float) -> str:
        name = self._names[int(pick * len(self._names))]
        self._edits += 1
        await self._world.patch({"podTemplate": {"labels": {"edit": f"e{self._edits}"}}}, name)
        return name

    async def _burst(self, rate_ratio: float, seconds: float) -> str:
        rate = self._rate * rate_ratio
        await self._load.send(rate, seconds, "burst")
        return f"{rate:.0f} requests a second more"

    async def _slow_readers(self, count: int, stall_s: float, stream: bool) -> str:
        await self._load.slow_readers(count, stall_s, stream)
        return f"{count} clients"

    async def _clients_leave(self, count: int, after_s: float) -> str:
        await self._load.clients_leave(count, after_s)
        return f"{count} clients"
