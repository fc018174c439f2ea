"""The audit log: one line of JSON for each request, never a text or a key.

Lines are collected and written by threads twice a second: a reader of standard output that stops reading stops neither
a request nor the end of the router.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from threading import Lock, Thread
from typing import BinaryIO

import msgspec

from dragoman_router.request import AuditEntry, RoutedRequest

log = logging.getLogger(__name__)

FLUSH_S = 0.5
END_S = 2.0
"""Maximum time that the end of the router waits for the last lines to be written."""
STDOUT = 1
MAX_LINES = 20_000
"""Lines that wait to be written, about 6 MB; more are dropped, and counted."""
MAX_PAIRS = 16
"""Language pairs of one line; Azure's clients may name hundreds."""
MAX_TAG_CHARS = 35
"""The longest tag that RFC 5646 (section 4.4.1) asks programs to support."""

MAX_ADDRESS_CHARS = 64
"""A trusted proxy may send what is no address."""


class _Line(msgspec.Struct):
    time: str
    caller: str | None
    client: str
    api: str
    deployment: str | None
    pairs: list[tuple[str, str]]
    characters: int
    status: int | None
    error: str | None
    duration_s: float


class AuditLog:
    """Writes a line for each request.

    Args:
        stream: Where to.
        on_dropped: Called with the number of lines that were dropped.
    """

    def __init__(
        self,
        stream: BinaryIO,
        on_dropped: Callable[[int], object] = lambda _: None,
        seconds: Callable[[], float] = time.time,
    ) -> None:
        self._stream, self._on_dropped, self._seconds = stream, on_dropped, seconds
        self._encode = msgspec.json.Encoder().encode
        self._lines: list[bytes] = []
        self._dropped = 0
        self._writing = Lock()

    def add(self, request: RoutedRequest, entry: AuditEntry, duration_s: float) -> None:
        """Write a line for a request that has ended, later; never waits."""
        if len(self._lines) >= MAX_LINES:
            self._dropped += 1
            return
        pairs = dict.fromkeys(
            ((need.source or "auto")[:MAX_TAG_CHARS], target[:MAX_TAG_CHARS])
            for need in entry.needs[:MAX_PAIRS]
            for target in need.targets[:MAX_PAIRS]
        )
        line = _Line(
            datetime.fromtimestamp(self._seconds(), UTC).isoformat(timespec="milliseconds"),
            request.key_name,
            request.client[:MAX_ADDRESS_CHARS],
            entry.api,
            entry.deployment,
            list(pairs)[:MAX_PAIRS],
            entry.characters,
            entry.status,
            entry.error,
            round(duration_s, 4),
        )
        self._lines.append(self._encode(line) + b"\n")

    async def run(self) -> None:
        """Write until cancelled, and then what is left."""
        try:
            while True:
                await asyncio.sleep(FLUSH_S)
                await self.flush()
        finally:
            with suppress(TimeoutError):
                async with asyncio.timeout(END_S):
                    await self._written(self._taken())

    async def flush(self) -> None:
        """Write what is there."""
        if self._dropped:
            log.warning("audit log: %d lines were dropped, because they are not read", self._dropped)
            self._on_dropped(self._dropped)
            self._dropped = 0
        if self._lines:
            await self._written(self._taken())

    def _taken(self) -> bytes:
        lines, self._lines = self._lines, []
        return b"".join(lines)

    async def _written(self, lines: bytes) -> None:
        """Write in a thread; what was to be written before is written before."""
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def write() -> None:
            with self._writing:
                self._write(lines)
            with suppress(RuntimeError):  # The loop may have ended without this.
                loop.call_soon_threadsafe(done.set)

        # A daemon: the threads of an executor are waited for by the interpreter's end, however long a write takes.
        Thread(target=write, name="audit-log", daemon=True).start()
        await done.wait()

    def _write(self, lines: bytes) -> None:
        left = memoryview(lines)
        try:
            while left:
                left = left[self._stream.write(left) :]
        except OSError as error:
            log.warning("audit log: %s", error)


def standard_output() -> BinaryIO:
    """Without a buffer, whose lock the interpreter's end takes, and waits for."""
    return open(STDOUT, "wb", buffering=0, closefd=False)
