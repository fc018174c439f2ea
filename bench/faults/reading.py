"""What processes hold, read from /proc and from their metrics."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import aiohttp

from dragoman_contract.http import ENGINE_PORT
from dragoman_devcluster.state import born
from dragoman_tune.errors import MetricsError
from dragoman_tune.scrape import scrape
from dragoman_tune.server import resident_bytes
from faults.cluster import main_process
from faults.growth import Lifetime
from faults.world import Pod, World

ESTABLISHED = "01"

ROUTER_GAUGES = {
    "active": "dragoman_router_requests_active",
    "in_flight": "dragoman_router_requests_in_flight",
    "held": "dragoman_router_requests_queued",
    "body_bytes": "dragoman_router_body_bytes",
    "ejected": "dragoman_router_ejected_replicas",
}
POD_GAUGES = {
    "in_flight": "dragoman_requests_in_flight",
    "admitted_tokens": "dragoman_admitted_tokens",
    "running": "vllm:num_requests_running",
    "waiting": "vllm:num_requests_waiting",
    "kv_cache": "vllm:kv_cache_usage_perc",
}
CLIENTS, UPSTREAM = "client_connections", "connections_to_pods"


class Process(NamedTuple):
    """A process and what it is; a number is given to another one later."""

    role: str
    name: str
    pid: int


class Connection(NamedTuple):
    """An established TCP connection of this machine: ports and the inode of its socket."""

    local_port: int
    remote_port: int
    inode: str


def connections() -> list[Connection]:
    """The established ones."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [
        Connection(int(row[1].rpartition(":")[2], 16), int(row[2].rpartition(":")[2], 16), row[9])
        for row in rows
        if row[3] == ESTABLISHED
    ]


def descriptors(pid: int) -> list[str]:
    """What a process has open.

    Raises:
        OSError: There is no such process.
    """
    found = []
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.append(os.readlink(each))
    return found


class Reader:
    """Reads the world's processes.

    Args:
        others: Processes that are sampled and not judged, by name.
    """

    def __init__(self, world: World, names: Sequence[str], others: Mapping[str, int]) -> None:
        self._world, self._names, self._others = world, names, others
        self._pods: dict[str, int] = {}
        self.lifetimes: dict[tuple[int, int], Lifetime] = {}

    def routers(self) -> list[Process]:
        """Those that run."""
        return [
            Process("router", f"router-{at}", router.pid)
            for at, router in enumerate(self._world.routers)
            if router.poll() is None
        ]

    async def pods(self) -> list[Pod]:
        """Those of all objects that have an address."""
        found = [pod for name in self._names for pod in await self._world.all_pods(name)]
        return [pod for pod in found if pod.status.pod_ip]

    def processes(self, pods: Iterable[Pod]) -> list[Process]:
        """All that run, with those of the pods."""
        found = [Process("other", name, pid) for name, pid in self._others.items()]
        operator = self._world.operator
        if operator is not None and operator.poll() is None:
            found.append(Process("operator", "operator", operator.pid))
        found += self.routers()
        for pod in pods:
            for status in pod.status.container_statuses or ():
                if status.state.running is None or not status.container_id:
                    continue
                if status.container_id not in self._pods:
                    # It may have ended since.
                    with suppress(RuntimeError):
                        self._pods[status.container_id] = main_process(status.container_id)
                if pid := self._pods.get(status.container_id):
                    found.append(Process("pod", pod.metadata.name, pid))
        return found

    def note(self, processes: Iterable[Process], at_s: float) -> None:
        """Add a sample to each process' lifetime."""
        for role, name, pid in processes:
            start = born(pid)
            with suppress(OSError):
                if start is None:
                    continue
                rss_mb, open_files = round(resident_bytes(pid) / 2**20, 2), descriptors(pid)
                lifetime = self.lifetimes.setdefault((pid, start), Lifetime(role, name))
                lifetime.at_s.append(round(at_s, 1))
                lifetime.rss_mb.append(rss_mb)
                lifetime.fds.append(len(open_files))
                lifetime.sockets.append(sum(each.startswith("socket:") for each in open_files))

    async def held(self, pods: Iterable[Pod]) -> dict[str, dict[str, float]]:
        """What each router and each pod that answers holds, by its name."""
        table = connections()
        routers = self.routers()
        targets = [
            *((each.name, self._world.admin(int(each.name[-1])), ROUTER_GAUGES) for each in routers),
            *((pod.metadata.name, f"http://{pod.status.pod_ip}:{ENGINE_PORT}", POD_GAUGES) for pod in pods),
        ]
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as http:
            values = await asyncio.gather(*(_gauges(http, url, gauges) for _, url, gauges in targets))
        found = {
            name: known for (name, _, _), known in zip(targets, values, strict=True) if known is not None
        }
        for router in routers:
            with suppress(OSError, KeyError):
                sockets = {each[8:-1] for each in descriptors(router.pid) if each.startswith("socket:[")}
                own = [each for each in table if each.inode in sockets]
                port = self._world.ports[int(router.name[-1])]
                found[router.name][CLIENTS] = sum(each.local_port == port for each in own)
                found[router.name][UPSTREAM] = sum(each.remote_port == ENGINE_PORT for each in own)
        return found


async def _gauges(
    http: aiohttp.ClientSession, url: str, gauges: Mapping[str, str]
) -> dict[str, float] | None:
    """Gauges by our names, those that are there; None of a server that does not answer."""
    with suppress(MetricsError):
        values = await scrape(http, url)
        return {ours: values[name] for ours, name in gauges.items() if name in values}
    return None
