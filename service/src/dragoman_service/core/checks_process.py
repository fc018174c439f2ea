"""A process beside the event loop's that runs the guards, which take a millisecond an answer."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import pickle
import signal
import sys
from contextlib import suppress
from typing import Any

from dragoman_service.text.guard_server import LENGTH_BYTES, Question, frame
from dragoman_service.text.guards import Expectation, Finding

log = logging.getLogger(__name__)

PROGRAM = "dragoman_service.text.guard_server"

MOST_WAITING = 64
"""Answers before the next one; beyond them an event loop is quicker, busy as it may be."""

AGAIN_AFTER_S = 5.0
"""Between the end of a process and the start of the next."""


class GuardsGoneError(Exception):
    """The process ended before it answered."""


class GuardProcess:
    """The guards in a process of their own, so that they do not take their time from everything else a pod does.

    Questions go out once a turn of the loop, all in one write. No threads: a busy loop keeps those waiting.

    Attributes:
        up: Set while there is a process.
        pid: Of the process; None while there is none.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._asked: dict[int, asyncio.Future[tuple[Finding, ...]]] = {}
        self._unsent: list[Question] = []
        self._into: asyncio.StreamWriter | None = None
        self.up = asyncio.Event()
        self.pid: int | None = None

    @property
    def is_free(self) -> bool:
        """Whether it runs and has few answers before it."""
        return self.up.is_set() and len(self._asked) < MOST_WAITING

    async def check(self, source: str, output: str, expected: Expectation) -> tuple[Finding, ...]:
        """As `guards.check`.

        Raises:
            GuardsGoneError: The process ended meanwhile.
        """
        loop = asyncio.get_running_loop()
        number = next(self._numbers)
        found: asyncio.Future[tuple[Finding, ...]] = loop.create_future()
        self._asked[number] = found
        if not self._unsent:
            loop.call_soon(self._send)
        self._unsent.append((number, source, output, expected))
        try:
            return await found
        finally:
            self._asked.pop(number, None)

    async def run(self) -> None:
        """Keep a process until cancelled, and end it then."""
        while True:
            try:
                ended = f"ended with status {await self._one()}"
            except OSError as error:
                ended = f"does not start: {error}"
            log.warning("the guards' process %s; they run beside HTTP for %g s", ended, AGAIN_AFTER_S)
            await asyncio.sleep(AGAIN_AFTER_S)

    async def _one(self) -> int:
        """A process from its start to its end; its exit status."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", PROGRAM, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdin is not None
        assert process.stdout is not None
        self._into, self.pid = process.stdin, process.pid
        self.up.set()
        try:
            await self._receive(process.stdout)
        finally:
            self.up.clear()
            self._into = self.pid = None
            self._forget()
            with suppress(ProcessLookupError):
                # Not `process.kill`: it polls first, and takes the exit status that asyncio's watcher waits for.
                os.kill(process.pid, signal.SIGKILL)
            status = await process.wait()
        return status

    def _send(self) -> None:
        unsent, self._unsent = self._unsent, []
        if self._into is None:
            self._forget()
        else:
            self._into.write(frame(unsent))

    async def _receive(self, out_of: asyncio.StreamReader) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                length = int.from_bytes(await out_of.readexactly(LENGTH_BYTES), "big")
                for number, found in pickle.loads(await out_of.readexactly(length)):
                    self._settle(number, found)

    def _settle(self, number: int, found: Any) -> None:
        waiting = self._asked.pop(number, None)
        if waiting is None or waiting.done():
            # Who asked has left.
            return
        if isinstance(found, Exception):
            waiting.set_exception(found)
        else:
            waiting.set_result(found)

    def _forget(self) -> None:
        for number in list(self._asked):
            self._settle(number, GuardsGoneError())
