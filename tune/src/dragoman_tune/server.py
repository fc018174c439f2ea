"""Servers under test: started as processes in a session of their own, and removed with all their processes."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp

from dragoman_tune.errors import MetricsError, ServerError
from dragoman_tune.scrape import scrape

POLL_S = 0.05
SETTLE_S = 60.0
"""Maximum time to capture the deferred CUDA graphs; an idle pod on an H200 took 9 s."""
END_S = 10.0
"""What a server gets to end by itself: vLLM takes 2 to 3 s."""

ERROR = re.compile(r"(?:^|\s)((?:dragoman \w+: \S.*)|(?:\w+\.)*\w*(?:Error|Exception): \S.*)$")
WRAPPERS = ("Engine core initialization failed", "WorkerProc initialization failed", "root cause above")


class Server:
    """One process that answers HTTP on loopback.

    Args:
        ready_path: What answers 200 once it is ready.
        environment: Added to this process's own.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        port: int,
        ready_path: str,
        log: Path,
        environment: Mapping[str, str],
    ) -> None:
        self.name = name
        self.url = f"http://127.0.0.1:{port}"
        self._ready_path = ready_path
        self._log = log
        self._gone = False
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **environment},
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The id of its own process."""
        return self._process.pid

    def kill(self) -> None:
        """End its own process at once, as a failing node would."""
        self._process.kill()
        self._process.wait()

    def ended(self) -> str | None:
        """Why it has ended; None while it runs."""
        status = self._process.poll()
        if status is None:
            return None
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        error = last_error(self._log.read_text(errors="replace"))
        return f"{self.name} {how}" + (f": {error}" if error else f"; see {self._log}")

    async def ready(self, deadline_s: float) -> None:
        """Wait until it answers.

        Raises:
            ServerError: It ended, or is not ready in time.
        """
        end_s = time.monotonic() + deadline_s
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session:
            while time.monotonic() < end_s:
                reason = self.ended()
                if reason is not None:
                    raise ServerError(reason)
                with suppress(aiohttp.ClientError, TimeoutError):
                    async with session.get(self.url + self._ready_path) as answer:
                        if answer.status == 200:
                            return
                await asyncio.sleep(POLL_S)
        raise ServerError(f"{self.name} was not ready within {deadline_s:g} s; see {self._log}")

    def memory_bytes(self) -> int:
        """Resident memory of it and of all that it started."""
        return sum(resident_bytes(pid) for pid in session_members(self._process.pid))

    def cpu_s(self) -> tuple[float, float]:
        """Processor time so far: of its own process, which speaks HTTP, and of all that it started, the engine's."""
        own = _cpu_s(self._process.pid)
        return own, sum(map(_cpu_s, session_members(self._process.pid))) - own

    async def end(self) -> None:
        """End it and every process of its session; a second time, do nothing."""
        if self._gone:
            return
        if self._process.poll() is None:
            self._process.terminate()
        end_s = time.monotonic() + END_S
        while session_members(self._process.pid) and time.monotonic() < end_s:
            if self._process.poll() is not None:
                break
            await asyncio.sleep(POLL_S)
        while members := session_members(self._process.pid):
            for pid in members:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.poll()
            await asyncio.sleep(POLL_S)
        self._process.wait()
        self._gone = True


@asynccontextmanager
async def running(server: Server, deadline_s: float) -> AsyncIterator[Server]:
    """A server for the time of a block, ready at its start, gone after it.

    Raises:
        ServerError: It did not get ready.
    """
    try:
        await server.ready(deadline_s)
        yield server
    finally:
        await asyncio.shield(server.end())


async def settled(server: Server) -> None:
    """Wait until an idle server has captured all CUDA graphs, at most `SETTLE_S`; not for one that reports none."""
    end_s = time.monotonic() + SETTLE_S
    async with aiohttp.ClientSession() as session:
        while time.monotonic() < end_s and server.ended() is None:
            with suppress(MetricsError):
                if not (await scrape(session, server.url)).get("dragoman_cuda_graphs_deferred"):
                    return
            await asyncio.sleep(POLL_S)


async def until_terminated(work: Coroutine[Any, Any, int]) -> int:
    """Run until done, or until SIGTERM, which ends servers as orderly as an interrupt does.

    Raises:
        CancelledError: SIGTERM came.
    """
    task = asyncio.ensure_future(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task


def last_error(log: str) -> str | None:
    """The line of a log that best says why a process ended; None where none does.

    Args:
        log: What it wrote; tracebacks end in the line that is looked for.
    """
    errors = [found[1].strip() for line in log.splitlines() if (found := ERROR.search(line))]
    plain = [line for line in errors if not any(wrapper in line for wrapper in WRAPPERS)]
    ours = [line for line in plain if line.startswith("dragoman ")]
    best = ours[-1:] or plain[:1] or errors[-1:]
    return best[0][:500] if best else None


def session_members(leader: int) -> list[int]:
    """Processes of a session that are not zombies.

    Args:
        leader: Its id, which is that of the process that began it.

    Source: https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html
    """
    members = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            # The name stands in parentheses and may hold anything.
            state, _parent, _group, session = stat.read_text().rpartition(")")[2].split()[:4]
            if int(session) == leader and state != "Z":
                members.append(int(stat.parent.name))
    return members


def _cpu_s(pid: int) -> float:
    with suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def resident_bytes(pid: int) -> int:
    """Memory of a process that is in RAM; 0 where there is no such process."""
    with suppress(OSError, ValueError, IndexError):
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return 0
