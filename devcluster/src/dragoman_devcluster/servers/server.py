"""A Kubernetes API server as the local cluster runs it."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from dragoman_devcluster.errors import StartFailedError
from dragoman_devcluster.guardian import Guardian
from dragoman_devcluster.options import Backoff, ClusterOptions
from dragoman_devcluster.ports import free_port
from dragoman_devcluster.process import Process
from dragoman_kube.client import connect
from dragoman_kube.config import configuration
from dragoman_kube.errors import ClusterError
from dragoman_kube.kinds import NAMESPACE
from dragoman_kube.objects import Key

logger = logging.getLogger(__name__)

STARTS = 3
"""Maximum number of failed starts in a row; one may fail because another process has the port for a moment."""

RETRY_S = 1.0
HOST = "127.0.0.1"
START_TIMEOUT_S = 90.0
POLL_S = 0.1
STOP_GRACE_S = 10.0
LOG_TAIL_LINES = 15


class ApiServer:
    """An API server of one or several processes, on loopback.

    Args:
        kind: ``embedded`` or ``kube-apiserver``.
        root: State directory.
        guardian: Ends the processes if this one dies.
        commands: The command line of each process by its name, in the order of their starts; the last one serves the
            API. Called before every start.
    """

    def __init__(
        self, kind: str, root: Path, guardian: Guardian, commands: Callable[[], Mapping[str, list[str]]]
    ) -> None:
        self.kind = kind
        self._root = root
        self._guardian = guardian
        self._commands = commands
        self._processes: dict[str, Process] = {}

    async def start(self) -> Path:
        """Start what of it does not run, at the same address with what it held before, and wait until it answers.

        Returns:
            The kubeconfig of its administrator.

        Raises:
            StartFailedError: It does not start.
        """
        for name, argv in self._commands().items():
            if name not in self._processes or self._processes[name].has_ended:
                self._processes[name] = Process.start(
                    argv, env=os.environ, cwd=self._root, output=self._log(name), guardian=self._guardian
                )
        kubeconfig, serving = self._root / "kubeconfig", next(reversed(self._processes))
        await until_ready(kubeconfig, self._processes[serving], self._log(serving))
        return kubeconfig

    def _log(self, process: str) -> Path:
        return self._root / "logs" / f"{process}.log"

    async def wait(self) -> None:
        """Wait until one of its processes ends, by itself or stopped."""
        ends = [asyncio.create_task(process.wait()) for process in self._processes.values()]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()

    async def stop(self) -> None:
        """End it; what it holds stays on disk."""
        for process in reversed(self._processes.values()):
            await process.stop(STOP_GRACE_S)


def embedded_server(options: ClusterOptions, guardian: Guardian) -> ApiServer:
    """The embedded API server: ``python -m dragoman_devcluster.api``."""
    root, port = options.dir.resolve(), str(options.port or free_port())

    def commands() -> dict[str, list[str]]:
        services = service_range(root / "api", first_octet=127)
        flags = ["--port", port, "--dir", str(root), "--service-range", services]
        return {"api": [sys.executable, "-m", "dragoman_devcluster.api", *flags]}

    return ApiServer("embedded", root, guardian, commands)


def service_range(state: Path, first_octet: int) -> str:
    """The network of a cluster's Services, chosen once at random, so that two clusters do not meet.

    Args:
        state: Directory that remembers it.
        first_octet: The network's first octet. What follows it is also what Services' loopback addresses
            have after 127, outside of the pods' part of it.
    """
    path = state / "service-range"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{first_octet}.{random.randrange(96, 128)}.{random.randrange(0, 256, 4)}.0/22")
    return path.read_text()


async def until_ready(kubeconfig: Path, process: Process, log: Path) -> None:
    """Wait until the API server behind a kubeconfig is ready.

    Raises:
        StartFailedError: It ended, or took too long; the message holds the end of its log.
    """
    try:
        async with asyncio.timeout(START_TIMEOUT_S):
            while not await _is_ready(kubeconfig):
                if process.has_ended:
                    raise StartFailedError(f"the API server ended:\n{tail(log)}")
                await asyncio.sleep(POLL_S)
    except TimeoutError as error:
        raise StartFailedError(f"no API after {START_TIMEOUT_S:g} s:\n{tail(log)}") from error


def tail(log: Path) -> str:
    """The last lines of a log."""
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        return f"(no {log})"
    return "\n".join([*lines[-LOG_TAIL_LINES:], f"(all of it: {log})"])


async def _is_ready(kubeconfig: Path) -> bool:
    if not await asyncio.to_thread(kubeconfig.exists):
        return False
    try:
        async with connect(await configuration(kubeconfig)) as client:
            return await client.get(NAMESPACE, Key("", "default")) is not None
    except ClusterError:
        return False


async def keep(server: ApiServer, backoff: Backoff) -> None:
    """Start an API server again whenever it ends, as a kubelet does with a static pod, until cancelled.

    Raises:
        StartFailedError: It failed to start `STARTS` times in a row; the message is the last one's.
    """
    loop = asyncio.get_running_loop()
    delay_s: float | None = None
    while True:
        began_s = loop.time()
        await server.wait()
        delay_s = backoff.next_delay_s(delay_s, loop.time() - began_s)
        logger.warning("the API server has ended; it is started again in %g s", delay_s)
        await asyncio.sleep(delay_s)
        await _start_again(server)
        logger.info("the API server answers again")


async def _start_again(server: ApiServer) -> None:
    for left in reversed(range(STARTS)):
        try:
            await server.start()
        except StartFailedError as error:
            if not left:
                raise
            logger.warning("%s", error)
            await asyncio.sleep(RETRY_S)
        else:
            return
