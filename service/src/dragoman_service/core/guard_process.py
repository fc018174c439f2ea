"""The guards in a process of their own, so that they take no time of the event loop.

Frames in both directions: four bytes of length, big-endian, then a pickled list. Of questions, `(number, source,
output, expectation)`; of answers, `(number, findings)`, where an exception instead of findings is a defect of a
guard. The process ends with its input, and so with the process that started it.
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
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, BinaryIO

from dragoman_protocols.detection import detect
from dragoman_service.text.guards import Expectation, Finding, check

log = logging.getLogger(__name__)

PROGRAM = "dragoman_service.core.guard_process"

LENGTH_BYTES = 4

MAX_PENDING = 64
"""Pending checks of the guard process; beyond them the event loop is faster, however busy it is."""

RESTART_S = 5.0
"""Between the end of a guard process and the start of the next."""

SLICE_S = 0.002
"""Findings made within this time are sent together: each write wakes the other process up."""

Question = tuple[int, str, str, Expectation]
Found = tuple[int, Any]


class GuardProcessError(Exception):
    """The guard process ended before it answered."""


class GuardProcess:
    """Starts the process and sends it checks.

    Checks are sent once per turn of the loop, in one write. No threads: a busy event loop delays those.

    Attributes:
        up: Set while the process runs.
        pid: Of the process; None while none runs.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._pending: dict[int, asyncio.Future[tuple[Finding, ...]]] = {}
        self._unsent: list[Question] = []
        self._stdin: asyncio.StreamWriter | None = None
        self.up = asyncio.Event()
        self.pid: int | None = None

    @property
    def is_free(self) -> bool:
        """Whether it runs and has less than `MAX_PENDING` checks to do."""
        return self.up.is_set() and len(self._pending) < MAX_PENDING

    async def check(self, source: str, output: str, expected: Expectation) -> tuple[Finding, ...]:
        """As `guards.check`.

        Raises:
            GuardProcessError: The process ended before it answered.
        """
        loop = asyncio.get_running_loop()
        number = next(self._numbers)
        found: asyncio.Future[tuple[Finding, ...]] = loop.create_future()
        self._pending[number] = found
        if not self._unsent:
            loop.call_soon(self._send)
        self._unsent.append((number, source, output, expected))
        try:
            return await found
        finally:
            self._pending.pop(number, None)

    async def run(self) -> None:
        """Keep a process running until cancelled, then end it."""
        while True:
            try:
                ended = f"ended with status {await self._one()}"
            except OSError as error:
                ended = f"does not start: {error}"
            log.warning("guard process %s; guards run in the HTTP process for %g s", ended, RESTART_S)
            await asyncio.sleep(RESTART_S)

    async def _one(self) -> int:
        """Run one process to its end.

        Returns:
            Its exit status.
        """
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", PROGRAM, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self.pid = process.stdin, process.pid
        self.up.set()
        try:
            await self._receive(process.stdout)
        finally:
            self.up.clear()
            self._stdin = self.pid = None
            self._fail_pending()
            with suppress(ProcessLookupError):
                # Not `process.kill`: it polls first, and takes the exit status that asyncio's watcher waits for.
                os.kill(process.pid, signal.SIGKILL)
            status = await process.wait()
        return status

    def _send(self) -> None:
        unsent, self._unsent = self._unsent, []
        if self._stdin is None:
            self._fail_pending()
        else:
            self._stdin.write(frame(unsent))

    async def _receive(self, stdout: asyncio.StreamReader) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                length = int.from_bytes(await stdout.readexactly(LENGTH_BYTES), "big")
                for number, found in pickle.loads(await stdout.readexactly(length)):
                    self._settle(number, found)

    def _settle(self, number: int, found: Any) -> None:
        waiting = self._pending.pop(number, None)
        if waiting is None or waiting.done():
            # The caller was cancelled.
            return
        if isinstance(found, Exception):
            waiting.set_exception(found)
        else:
            waiting.set_result(found)

    def _fail_pending(self) -> None:
        for number in list(self._pending):
            self._settle(number, GuardProcessError())


def frame(content: list[Any]) -> bytes:
    """A list as it is sent."""
    packed = pickle.dumps(content, pickle.HIGHEST_PROTOCOL)
    return len(packed).to_bytes(LENGTH_BYTES, "big") + packed


def serve(questions: BinaryIO, answers: BinaryIO) -> None:
    """Answer frames of questions until the input ends."""
    while head := questions.read(LENGTH_BYTES):
        for found in _slices(pickle.loads(questions.read(int.from_bytes(head, "big")))):
            answers.write(frame(found))
            answers.flush()


def _slices(questions: list[Question]) -> Iterator[list[Found]]:
    found: list[Found] = []
    end_s = time.perf_counter() + SLICE_S
    for number, source, output, expected in questions:
        found.append((number, _checked(source, output, expected)))
        if time.perf_counter() > end_s:
            yield found
            found = []
            end_s = time.perf_counter() + SLICE_S
    if found:
        yield found


def _checked(source: str, output: str, expected: Expectation) -> Any:
    try:
        return check(source, output, expected)
    except Exception as error:
        return error


def main() -> None:
    """Serve on the standard streams."""
    # Ctrl-C goes to all processes of a terminal; this one ends after its parent.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    detect("Load the detection model before the first question.")
    gc.collect()
    gc.freeze()
    serve(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
