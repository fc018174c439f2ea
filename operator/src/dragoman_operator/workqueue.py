"""A queue of keys to look at: each at most once at a time, many marks become one look, failures back off.

It holds no state that matters: whatever is lost in a restart is found again by looking.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from dragoman_operator.errors import ConflictError, OperatorError

Key = TypeVar("Key", bound=Hashable)

log = logging.getLogger(__name__)

SETTLE_S = 0.05
"""A mark waits this long for its like: one change of a Deployment makes several events at once."""
FIRST_BACKOFF_S = 0.25
MAX_BACKOFF_S = 60.0


class WorkQueue(Generic[Key]):
    """Calls `work` for keys that were marked.

    Args:
        workers: Keys worked on at once.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._ready: asyncio.Queue[Key] = asyncio.Queue()
        self._queued: set[Key] = set()
        self._running: set[Key] = set()
        self._marked_again: set[Key] = set()
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._failures: dict[Key, int] = {}

    def mark(self, key: Key) -> None:
        """Have `key` looked at soon; while it is being looked at, once more afterwards."""
        if key in self._running:
            self._marked_again.add(key)
        elif key not in self._queued:
            self._after(SETTLE_S, key)

    @property
    def depth(self) -> int:
        """Keys that wait for a worker."""
        return self._ready.qsize()

    async def run(self, work: Callable[[Key], Awaitable[float | None]]) -> None:
        """Work until cancelled; what is being worked on is cancelled with it.

        Args:
            work: Looks at one key; returns the seconds after which to look again without a mark, or None to
                forget the key. An exception makes it look again after a back-off.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._workers):
                    group.create_task(self._worker(work))
        finally:
            for timer in self._timers.values():
                timer.cancel()

    async def _worker(self, work: Callable[[Key], Awaitable[float | None]]) -> None:
        while True:
            key = await self._ready.get()
            self._queued.discard(key)
            self._running.add(key)
            try:
                pause_s = await self._once(work, key)
            finally:
                self._running.discard(key)
            again = key in self._marked_again
            self._marked_again.discard(key)
            if again and key not in self._failures:
                pause_s = SETTLE_S
            if pause_s is not None:
                self._after(pause_s, key)

    async def _once(self, work: Callable[[Key], Awaitable[float | None]], key: Key) -> float | None:
        try:
            pause_s = await work(key)
        except ConflictError as error:
            log.debug("looking again: %s", error, extra={"key": str(key)})
        except OperatorError as error:
            log.warning("%s", error, extra={"key": str(key)})
        except Exception:
            log.exception("unexpected failure", extra={"key": str(key)})
        else:
            self._failures.pop(key, None)
            return pause_s
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        return backoff_s(failures)

    def _after(self, pause_s: float, key: Key) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + pause_s
        timer = self._timers.get(key)
        if timer is not None:
            if timer.when() <= due:
                return
            timer.cancel()
        self._timers[key] = loop.call_at(due, self._enqueue, key)

    def _enqueue(self, key: Key) -> None:
        self._timers.pop(key, None)
        if key in self._running:
            self._marked_again.add(key)
        elif key not in self._queued:
            self._queued.add(key)
            self._ready.put_nowait(key)


def backoff_s(failures: int) -> float:
    """Seconds to wait after so many failures in a row (1 or more)."""
    return min(MAX_BACKOFF_S, FIRST_BACKOFF_S * 2.0 ** min(failures - 1, 10))
