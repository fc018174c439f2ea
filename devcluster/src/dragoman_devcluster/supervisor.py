"""The supervisor: the one process that runs a cluster until it gets SIGTERM."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from dragoman_devcluster.cluster import LocalCluster
from dragoman_devcluster.errors import AlreadyRunningError
from dragoman_devcluster.options import ClusterOptions
from dragoman_devcluster.state import READY, STOPPING, Supervisor, write_supervisor

logger = logging.getLogger(__name__)


async def supervise(options: ClusterOptions) -> None:
    """Run a cluster until SIGTERM or SIGINT.

    Raises:
        AlreadyRunningError: Another supervisor runs a cluster in this state directory.
        StartFailedError: A part of it does not start, or the API server ends and does not start again.
    """
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    with _sole_use(options.dir):
        here = Supervisor.here()
        write_supervisor(options.dir, here)
        async with LocalCluster(options) as cluster:
            here = replace(here, phase=READY, api=cluster.api, url=cluster.url)
            write_supervisor(options.dir, here)
            logger.info("ready: %s at %s", cluster.api, cluster.url)
            await _first(stop.wait(), cluster.keep())
            write_supervisor(options.dir, replace(here, phase=STOPPING))
            logger.info("stopping")
    logger.info("stopped")


async def _first(*waits: Coroutine[Any, Any, object]) -> None:
    """Wait until one of them ends, end the others, and raise what it raised."""
    tasks = [asyncio.create_task(wait) for wait in waits]
    ended, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    for task in ended:
        task.result()


@contextmanager
def _sole_use(directory: Path) -> Iterator[None]:
    """Hold the state directory's lock, which the kernel releases when this process ends."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise AlreadyRunningError(
                f"a cluster runs in {directory} already: `dragoman devcluster down --dir {directory}` stops it"
            ) from error
        yield
