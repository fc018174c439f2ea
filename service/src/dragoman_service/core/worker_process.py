"""A process that runs pure functions, so that they take no time of the event loop and not its interpreter's lock.

Frames in both directions: four bytes of length, big-endian, then a pickle. First a callable that makes the object whose
methods are called; then lists of calls, `(number, method, arguments)`. Of answers, lists of `(number, value, is_last)`,
the first list empty; a value that is an exception was raised by the method. The process ends with its input, and so
with the process that started it.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
import os
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO

from dragoman_protocols.errors import RequestError

log = logging.getLogger(__name__)

PROGRAM = "dragoman_service.core.worker_process"

LENGTH_BYTES = 4

RESTART_S = 5.0
"""Between the end of a process and the start of the next."""

SLICE_S = 0.002
"""Answers made within this time are sent together: each write wakes the other process up."""

Make = Callable[[], object]
Call = tuple[int, str, tuple[Any, ...]]
Answer = tuple[int, Any, bool]


class WorkerProcessError(Exception):
    """The process does not run, or has too much to do, or ended before it answered."""


class WorkerProcess:
    """Starts the process, at the first call, and sends it calls, which it answers one after another.

    Calls are sent once per turn of the loop, in one write. No threads: a busy event loop delays those.

    Args:
        make: Called at each start, for the callable that makes the served object in the process; picklable. Its
            methods return an iterable of the parts of their answer, each small enough to be unpickled in a
            millisecond.
        niceness: Added to this process's.

    Attributes:
        pid: Of the process; None while none runs.
    """

    def __init__(self, name: str, make: Callable[[], Make], max_pending: int, niceness: int = 0) -> None:
        self._name, self._make, self._max_pending, self._niceness = name, make, max_pending, niceness
        self._numbers = itertools.count()
        # Also those whose callers were cancelled: they are work until they are answered.
        self._pending: dict[int, tuple[asyncio.Future[list[Any]], list[Any]]] = {}
        self._unsent: list[Call] = []
        self._stdin: asyncio.StreamWriter | None = None
        self._needed = asyncio.Event()
        self.up = asyncio.Event()
        self.pid: int | None = None

    async def call(self, method: str, *arguments: Any) -> list[Any]:
        """The parts that a method of the served object returns; raises what it raises.

        Raises:
            WorkerProcessError: The caller has to do the work.
        """
        self._needed.set()
        if not self.up.is_set() or len(self._pending) >= self._max_pending:
            raise WorkerProcessError
        loop = asyncio.get_running_loop()
        number = next(self._numbers)
        answered: asyncio.Future[list[Any]] = loop.create_future()
        self._pending[number] = answered, []
        if not self._unsent:
            loop.call_soon(self._send)
        self._unsent.append((number, method, arguments))
        return await answered

    async def run(self) -> None:
        """From the first call on keep a process running, until cancelled; then end it."""
        await self._needed.wait()
        while True:
            try:
                ended = f"ended with status {await self._one()}"
            except OSError as error:
                ended = f"does not start: {error}"
            log.warning("%s %s; the HTTP process does its work for %g s", self._name, ended, RESTART_S)
            await asyncio.sleep(RESTART_S)

    async def _one(self) -> int:
        """Run one process to its end.

        Returns:
            Its exit status.
        """
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", PROGRAM, str(self._niceness)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self.pid = process.stdin, process.pid
        try:
            process.stdin.write(frame(self._make()))
            await self._receive(process.stdout)
        finally:
            self.up.clear()
            self._stdin = self.pid = None
            for number in list(self._pending):
                self._settle(number, WorkerProcessError(), is_last=True)
            with suppress(ProcessLookupError):
                # Not `process.kill`: it polls first, and takes the exit status that asyncio's watcher waits for.
                os.kill(process.pid, signal.SIGKILL)
            status = await process.wait()
        return status

    def _send(self) -> None:
        calls = []
        for call in self._unsent:
            answered, _ = self._pending.get(call[0], (None, None))
            if answered is not None and answered.done():
                del self._pending[call[0]]  # The caller was cancelled.
            else:
                calls.append(call)
        self._unsent = []
        if self._stdin is not None:
            self._stdin.write(frame(calls))

    async def _receive(self, stdout: asyncio.StreamReader) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                length = int.from_bytes(await stdout.readexactly(LENGTH_BYTES), "big")
                for number, value, is_last in pickle.loads(await stdout.readexactly(length)):
                    self._settle(number, value, is_last=is_last)
                self.up.set()
                # Where more is at hand, reading it does not give others their turn.
                await asyncio.sleep(0)

    def _settle(self, number: int, value: Any, *, is_last: bool) -> None:
        answered, parts = self._pending[number]
        parts.append(value)
        if not is_last:
            return
        del self._pending[number]
        if answered.done():
            return  # The caller was cancelled.
        if isinstance(value, Exception):
            answered.set_exception(value)
        else:
            answered.set_result(parts)


def frame(content: object) -> bytes:
    """A value as it is sent."""
    packed = pickle.dumps(content, pickle.HIGHEST_PROTOCOL)
    return len(packed).to_bytes(LENGTH_BYTES, "big") + packed


def serve(calls: BinaryIO, answers: BinaryIO) -> None:
    """Answer frames of calls until the input ends."""
    frames = _frames(calls)
    served = next(frames)()
    gc.collect()
    gc.freeze()
    for each in itertools.chain(((),), frames):
        for found in _slices(served, each):
            answers.write(frame(found))
            answers.flush()


def _frames(stream: BinaryIO) -> Iterator[Any]:
    while head := stream.read(LENGTH_BYTES):
        yield pickle.loads(stream.read(int.from_bytes(head, "big")))


def _slices(served: object, calls: Iterable[Call]) -> Iterator[list[Answer]]:
    """Answers that are sent together; each part of one that has more is sent by itself."""
    found: list[Answer] = []
    end_s = time.perf_counter() + SLICE_S
    for number, method, arguments in calls:
        for value, is_last in _parts(getattr(served, method), arguments):
            found.append((number, value, is_last))
            if not is_last or time.perf_counter() > end_s:
                yield found
                found = []
                end_s = time.perf_counter() + SLICE_S
    yield found


def _parts(method: Callable[..., Iterable[Any]], arguments: tuple[Any, ...]) -> Iterator[tuple[Any, bool]]:
    try:
        parts = iter(method(*arguments))
        last = next(parts)
        for part in parts:
            yield last, False
            last = part
    except Exception as error:
        if not isinstance(error, RequestError):
            error.add_note(traceback.format_exc())
        last = error
    yield last, True


def main() -> None:
    """Serve on the standard streams; the argument is a niceness."""
    # First: what is imported for the served object takes a second.
    os.nice(int(sys.argv[1]))
    # Ctrl-C goes to all processes of a terminal; this one ends after its parent.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
