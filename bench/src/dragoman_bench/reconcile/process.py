"""An operator as a process of its own, and what it uses."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

import aiohttp

from dragoman_bench.errors import OperatorEndedError
from dragoman_bench.reconcile.cluster import Installed
from dragoman_devcluster.ports import free_port

POLL_S = 0.1
START_S = 60.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Operator:
    """One `dragoman operator` with the chart's arguments and its ServiceAccount's rights."""

    def __init__(
        self, cluster: Installed, identity: str, directory: Path, flags: tuple[str, ...] = ()
    ) -> None:
        self._port = free_port()
        own = (
            f"--identity={identity}",
            "--host=127.0.0.1",
            "--health-port=0",
            f"--metrics-port={self._port}",
        )
        environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
        self.log = directory / f"{identity}.log"
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "dragoman", *cluster.arguments, *own, *flags],
                env=environment,
                stderr=output,
            )

    async def until_leader(self, leader: bool) -> None:
        """Wait until it leads, or until it serves without leading.

        Raises:
            OperatorEndedError: It ended, or took too long.
        """
        deadline = time.monotonic() + START_S
        async with aiohttp.ClientSession() as http:
            while await self._metric(http, "dragoman_operator_leader") != float(leader):
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise OperatorEndedError(f"the operator did not start:\n{self._tail()}")
                await asyncio.sleep(POLL_S)

    async def reconciles(self) -> dict[str, int]:
        """Number of reconciliations since its start, by result."""
        async with aiohttp.ClientSession() as http:
            text = await self._metrics(http)
        found = re.findall(r'^dragoman_operator_reconciles_total{result="(\w+)"} (\S+)$', text, re.MULTILINE)
        return {result: int(float(count)) for result, count in found}

    async def _metric(self, http: aiohttp.ClientSession, name: str) -> float | None:
        try:
            found = re.search(rf"^{name} (\S+)$", await self._metrics(http), re.MULTILINE)
        except aiohttp.ClientError:
            return None
        return float(found[1]) if found else None

    async def _metrics(self, http: aiohttp.ClientSession) -> str:
        async with http.get(f"http://127.0.0.1:{self._port}/metrics") as response:
            return await response.text()

    async def until_ended(self) -> NoReturn:
        """Wait until it ends by itself.

        Raises:
            OperatorEndedError: It did.
        """
        while self._process.poll() is None:  # noqa: ASYNC110 - a process sets no event
            await asyncio.sleep(POLL_S)
        raise OperatorEndedError(f"the operator ended:\n{self._tail()}")

    def _tail(self) -> str:
        return self.log.read_text(errors="replace")[-2000:]

    def cpu_s(self) -> float:
        """CPU seconds since its start."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S

    def memory_bytes(self) -> tuple[int, int]:
        """Resident memory: now, and its maximum since the start."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        now, peak = (re.search(rf"^{name}:\s+(\d+) kB$", status, re.MULTILINE) for name in ("VmRSS", "VmHWM"))
        return int(now[1]) * 1024 if now else 0, int(peak[1]) * 1024 if peak else 0

    def kill(self) -> None:
        """End it at once, as a failing node would."""
        self._process.kill()
        self._process.wait()
