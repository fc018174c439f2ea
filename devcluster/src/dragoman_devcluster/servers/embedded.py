"""The embedded API server, in a process of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dragoman_devcluster.guardian import Guardian
from dragoman_devcluster.options import ClusterOptions
from dragoman_devcluster.process import Process
from dragoman_devcluster.servers.server import STOP_GRACE_S, free_port, service_range, until_ready


class EmbeddedServer:
    """Runs ``python -m dragoman_devcluster.api``."""

    kind = "embedded"

    def __init__(self, options: ClusterOptions, guardian: Guardian) -> None:
        self._options = options
        self._guardian = guardian
        self._port = options.port or free_port()
        self._process: Process | None = None

    async def start(self) -> Path:
        """Start it and wait until it answers; the kubeconfig that it has written."""
        root = self._options.dir.resolve()
        log = root / "logs" / "api.log"
        services = service_range(root / "api", first_octet=127)
        flags = ["--port", str(self._port), "--dir", str(root), "--service-range", services]
        self._process = Process.start(
            [sys.executable, "-m", "dragoman_devcluster.api", *flags],
            env=os.environ,
            cwd=root,
            output=log,
            guardian=self._guardian,
        )
        kubeconfig = root / "kubeconfig"
        await until_ready(kubeconfig, self._process, log)
        return kubeconfig

    async def wait(self) -> None:
        """Wait until it ends."""
        if self._process is not None:
            await self._process.wait()

    async def stop(self) -> None:
        """End it."""
        if self._process is not None:
            await self._process.stop(STOP_GRACE_S)
