"""A pod whose event loop is watched: how long it stood still at most, shared between processes through a file.

    python tests/support/hostile/watched.py FILE --model org/model --engine scripted --port 8000

A task on the loop ticks every millisecond. CPU time between two ticks is what kept the loop from them: a callback of
its own, or a thread that had the interpreter's lock. A clock would count other processes of a busy machine too.
"""

import asyncio
import mmap
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

TICK_S = 0.001

FORMAT = struct.Struct("ddddQ")
"""`Stall`, CPU time of the process since its start, number of ticks."""


class Stall(NamedTuple):
    """The longest times between two ticks, in seconds.

    Args:
        loop_s: CPU time of the loop's own thread: what its callbacks took.
        process_s: CPU time of all threads: with the time of threads that had the interpreter's lock.
        wall_s: On the clock: with what the machine took for others.
    """

    loop_s: float
    process_s: float
    wall_s: float


class Stalls:
    """What the watched pod and its watcher share."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(FORMAT.size))
        with path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), FORMAT.size)

    def read(self) -> tuple[Stall, float, int]:
        """The longest stall since `reset`, the CPU time of the process in seconds, the number of ticks."""
        loop_s, process_s, wall_s, cpu_s, ticks = FORMAT.unpack(self._shared[:])
        return Stall(loop_s, process_s, wall_s), cpu_s, ticks

    def write(self, stall: Stall, cpu_s: float, ticks: int) -> None:
        """See `read`."""
        self._shared[:] = FORMAT.pack(*stall, cpu_s, ticks)

    def reset(self) -> None:
        """Forget the longest stalls."""
        _, cpu_s, ticks = self.read()
        self.write(Stall(0.0, 0.0, 0.0), cpu_s, ticks)

    def settle(self, deadline_s: float = 60.0) -> tuple[Stall, float]:
        """The longest stall since `reset`, and the CPU time until now, once a whole tick has passed.

        Raises:
            TimeoutError: The loop did not tick.
        """
        first = self.read()[2]
        end_s = time.monotonic() + deadline_s
        while self.read()[2] < first + 2:
            if time.monotonic() > end_s:
                raise TimeoutError("the event loop does not tick")
            time.sleep(TICK_S / 2)
        stall, cpu_s, _ = self.read()
        return stall, cpu_s


async def watch(stalls: Stalls) -> None:
    """Tick until cancelled."""
    last = _now()
    while True:
        await asyncio.sleep(TICK_S)
        now = _now()
        longest, _, ticks = stalls.read()
        stall = Stall(*(max(most, at - before) for most, at, before in zip(longest, now, last, strict=True)))
        stalls.write(stall, now.process_s, ticks + 1)
        last = now


def _now() -> Stall:
    return Stall(time.thread_time(), time.process_time(), time.monotonic())


def serve(stalls: Stalls, flags: list[str]) -> int:
    """Run a pod; returns its exit status."""
    from dragoman_service import __main__ as service

    create: Callable[..., Any] = vars(service)["create_app"]

    def watched(*arguments: Any) -> Any:
        made = create(*arguments)
        return replace(made, watches=(*made.watches, lambda: watch(stalls)))

    vars(service)["create_app"] = watched
    return service.main(flags)


if __name__ == "__main__":
    sys.exit(serve(Stalls(Path(sys.argv[1])), sys.argv[2:]))
