"""An operator as a process of its own, and what it uses."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import aiohttp

from dragoman_bench.reconcile.cluster import Installed
from dragoman_devcluster.ports import free_port
from dragoman_tune.errors import MetricsError, ServerError
from dragoman_tune.scrape import scrape
from dragoman_tune.server import Server

POLL_S = 0.1
START_S = 60.0


class Operator(Server):
    """One `dragoman operator` with the chart's arguments and its ServiceAccount's rights."""

    def __init__(self, cluster: Installed, identity: str, directory: Path) -> None:
        port = free_port()
        own = (f"--identity={identity}", "--host=127.0.0.1", "--health-port=0", f"--metrics-port={port}")
        command = [sys.executable, "-m", "dragoman", *cluster.arguments, *own]
        environment = {"KUBECONFIG": str(cluster.kubeconfig)}
        log = directory / f"{identity}.log"
        super().__init__(f"the {identity} operator", command, port, "/metrics", log, environment)

    async def until_leader(self, leader: bool) -> None:
        """Wait until it leads, or until it serves without leading.

        Raises:
            ServerError: It ended, or took too long.
        """
        deadline_s = time.monotonic() + START_S
        while await self._metric("dragoman_operator_leader") != float(leader):
            if reason := self.ended():
                raise ServerError(reason)
            if time.monotonic() > deadline_s:
                raise ServerError(f"{self.name} did not start within {START_S:g} s")
            await asyncio.sleep(POLL_S)

    async def reconciles(self) -> int:
        """Number of reconciliations since its start, of every result."""
        return int(await self._metric("dragoman_operator_reconciles_total") or 0)

    async def _metric(self, name: str) -> float | None:
        async with aiohttp.ClientSession() as http:
            with suppress(MetricsError):
                return (await scrape(http, self.url)).get(name)
        return None

    async def until_ended(self) -> NoReturn:
        """Wait until it ends by itself.

        Raises:
            ServerError: It did.
        """
        while (reason := self.ended()) is None:  # noqa: ASYNC110 - a process sets no event
            await asyncio.sleep(POLL_S)
        raise ServerError(reason)

    def resident_bytes(self) -> tuple[int, int]:
        """Resident memory of its own process: now, and its maximum since the start."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        now, peak = (re.search(rf"^{name}:\s+(\d+) kB$", status, re.MULTILINE) for name in ("VmRSS", "VmHWM"))
        return int(now[1]) * 1024 if now else 0, int(peak[1]) * 1024 if peak else 0
