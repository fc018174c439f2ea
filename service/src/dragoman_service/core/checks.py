"""Runs the guards on generated texts: in a process of their own, if there is one, else on the event loop in slices."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import pickle
import signal
import sys
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from dragoman_protocols.glossaries.matching import Term
from dragoman_protocols.languages import Pair
from dragoman_service.core.checks_process import LENGTH_BYTES, Question, frame
from dragoman_service.core.concurrency import Slice
from dragoman_service.core.evaluate import evaluate, expectation, output_of
from dragoman_service.core.stages import Evaluation, GeneratedText
from dragoman_service.text.document import Segment
from dragoman_service.text.guards import Expectation, Finding, check

log = logging.getLogger(__name__)

PROGRAM = "dragoman_service.core.checks_process"

INLINE_CHARS = 2_000
"""Longer texts, source and output together, are checked in a thread, so that short ones do not queue behind them in the
guard process or on the event loop: the guards take about 2 µs a character."""

MAX_PENDING = 64
"""Pending checks of the guard process; beyond them the event loop is faster, however busy it is."""

RESTART_S = 5.0
"""Between the end of a guard process and the start of the next."""

Findings = tuple[Finding, ...]


class GuardProcessError(Exception):
    """The guard process ended before it answered."""


class GuardProcess:
    """The guards in a process of their own, so that they take no time of the event loop.

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


class Evaluator:
    """Evaluates generated texts so that many at once do not block the event loop.

    Without a guard process, in slices: a lock takes a turn of the loop for each text, and a thread waits milliseconds
    for a busy event loop, so that with hundreds of generations in flight either is slower than an engine.

    Args:
        process: A guard process, run by the caller; None: there is none.
    """

    def __init__(self, process: GuardProcess | None = None) -> None:
        self._process = process
        self._waiting: deque[tuple[asyncio.Future[Findings], str, str, Expectation]] = deque()
        self._working = False

    async def evaluation(
        self, segment: Segment, generated: GeneratedText, pair: Pair, terms: Sequence[Term]
    ) -> Evaluation:
        """Everything wrong with a generated text.

        Args:
            segment: The segment.
            generated: The engine's output for it.
            pair: Its languages.
            terms: Those that apply to the segment.
        """
        output = output_of(segment, generated)
        found = await self.findings(segment.text, output, expectation(generated, pair))
        return evaluate(segment, generated, terms, output, found)

    async def findings(self, source: str, output: str, expected: Expectation) -> Findings:
        """See `guards.check`."""
        if len(source) + len(output) > INLINE_CHARS:
            return await asyncio.to_thread(check, source, output, expected)
        if self._process is not None and self._process.is_free:
            with suppress(GuardProcessError):
                return await self._process.check(source, output, expected)
        loop = asyncio.get_running_loop()
        found: asyncio.Future[Findings] = loop.create_future()
        self._waiting.append((found, source, output, expected))
        if not self._working:
            self._working = True
            loop.call_soon(self._work, loop)
        return await found

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        slice_ = Slice()
        while self._waiting and not slice_.is_over:
            found, source, output, expected = self._waiting.popleft()
            if found.done():
                # The caller was cancelled.
                continue
            try:
                found.set_result(check(source, output, expected))
            except Exception as error:
                found.set_exception(error)
        if self._waiting:
            loop.call_soon(self._work, loop)
        else:
            self._working = False
