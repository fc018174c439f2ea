"""One process of this machine with everything it starts: its own session, its output in a file."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from dragoman_devcluster.errors import StartFailedError
from dragoman_devcluster.guardian import Guardian
from dragoman_devcluster.preload import Forked, Preload


class Process:
    """A running process group. When its main process ends, the rest of the group is killed."""

    def __init__(self, main: subprocess.Popen[bytes] | Forked, guardian: Guardian) -> None:
        self._main = main
        self._guardian = guardian
        self._exit: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._end = main.end_descriptor() if isinstance(main, Forked) else os.pidfd_open(main.pid)
        asyncio.get_running_loop().add_reader(self._end, self._ended)

    @classmethod
    def start(
        cls,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        output: Path,
        guardian: Guardian,
        append: bool = True,
        preload: Preload | None = None,
    ) -> Process:
        """Start a process; the program is looked up in the PATH of `env`, which is its whole environment.

        It is forked from `preload` where that can run it.

        Raises:
            StartFailedError: The program cannot be executed.
        """
        output.parent.mkdir(parents=True, exist_ok=True)
        try:
            with output.open("ab" if append else "wb") as sink:
                main = (
                    Forked(argv, env, cwd, output)
                    if preload is not None and preload.can_run(argv, env)
                    else subprocess.Popen(
                        argv,
                        env=env,
                        cwd=cwd,
                        stdin=subprocess.DEVNULL,
                        stdout=sink,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                    )
                )
        except (OSError, ValueError) as error:
            raise StartFailedError(f"cannot start {argv[0]!r}: {error}") from error
        guardian.watch(main.pid)
        return cls(main, guardian)

    @property
    def pid(self) -> int:
        """The main process, which is also the process group."""
        return self._main.pid

    @property
    def has_ended(self) -> bool:
        """Whether the main process has ended."""
        return self._exit.done()

    async def wait(self) -> int:
        """Wait for the end; the exit code, or 128 + n after signal n."""
        return await asyncio.shield(self._exit)

    async def stop(self, grace_s: float) -> int:
        """Send SIGTERM to the main process, and SIGKILL to the whole group when `grace_s` is over."""
        self.send(signal.SIGTERM)
        try:
            async with asyncio.timeout(grace_s):
                return await self.wait()
        except TimeoutError:
            self.kill()
            return await self.wait()

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the main process, if it still runs."""
        if not self.has_ended:
            # The process is not reaped before `_ended`, so its number cannot be another's; a forked one is reaped
            # a moment before.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the whole group, if the main process still runs."""
        if not self.has_ended:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    def _ended(self) -> None:
        asyncio.get_running_loop().remove_reader(self._end)
        os.close(self._end)
        # What is left of the group dies with its leader, as in a container. Before the leader is reaped,
        # its number still names the group and no other.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        code = self._main.wait()
        self._guardian.release(self.pid)
        self._exit.set_result(code if code >= 0 else 128 - code)
