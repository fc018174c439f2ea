"""Work queue with deduplication, one reconciliation per key at a time, and exponential backoff per key.

It holds no state that a restart loses: keys are enqueued again from the lists that begin every watch.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

from dragoman_kube.errors import ClusterError, ConflictError, WriteForbiddenError


class Backoff(NamedTuple):
    """Delays that double from one failure in a row to the next."""

    first_s: float
    max_s: float

    def delay_s(self, failures: int) -> float:
        """Seconds to wait after so many failures in a row (1 or more)."""
        return min(self.max_s, self.first_s * 2.0 ** min(failures - 1, 30))


K = TypeVar("K", bound=Hashable)
Work = Callable[[K], Awaitable[float | None]]
"""Reconciles one key; returns the seconds after which the key is enqueued again, or None for never."""

log = logging.getLogger(__name__)

BACKOFF = Backoff(0.25, 60.0)


class WorkQueue(Generic[K]):
    """Keys that wait for their reconciliation.

    Args:
        name: Prefix of keys in the log.
        workers: Number of keys that are reconciled at once.
        settle_s: Delay of a key that is added: one change of a Deployment causes several events at once.
        expected: Errors that are logged without a traceback.
        quiet: Errors that are logged at level debug.
    """

    def __init__(
        self,
        workers: int = 1,
        *,
        name: str = "",
        settle_s: float = 0.05,
        backoff: Backoff = BACKOFF,
        expected: tuple[type[Exception], ...] = (ClusterError,),
        quiet: tuple[type[Exception], ...] = (ConflictError,),
    ) -> None:
        self._name = name
        self._workers = workers
        self._settle_s = settle_s
        self._backoff = backoff
        self._expected = expected
        self._quiet = quiet
        self._ready: asyncio.Queue[K] = asyncio.Queue()
        self._queued: set[K] = set()
        self._running: set[K] = set()
        self._added_again: set[K] = set()
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._failures: dict[K, int] = {}

    def add(self, key: K, delay_s: float = 0.0) -> None:
        """Enqueue a key, regardless of its backoff; a key that is being reconciled is reconciled again afterwards.

        A key that is due earlier stays so.
        """
        if key in self._running and not delay_s:
            self._added_again.add(key)
        elif key not in self._queued:
            self._after(max(delay_s, self._settle_s), key)

    @property
    def depth(self) -> int:
        """Number of keys that wait for a worker."""
        return self._ready.qsize()

    async def run(self, work: Work[K]) -> None:
        """Reconcile keys until cancelled; running reconciliations are cancelled too.

        Args:
            work: Reconciles one key. Every exception but WriteForbiddenError is logged and retried with backoff.

        Raises:
            WriteForbiddenError: This process may not write any more.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._workers):
                    group.create_task(self._worker(work))
        except* WriteForbiddenError as forbidden:
            raise forbidden.exceptions[0] from None
        finally:
            for timer in self._timers.values():
                timer.cancel()

    async def _worker(self, work: Work[K]) -> None:
        while True:
            key = await self._ready.get()
            self._queued.discard(key)
            self._running.add(key)
            try:
                delay_s = await self._once(work, key)
            finally:
                self._running.discard(key)
            again = key in self._added_again
            self._added_again.discard(key)
            if again and key not in self._failures:
                delay_s = self._settle_s
            if delay_s is not None:
                self._after(delay_s, key)

    async def _once(self, work: Work[K], key: K) -> float | None:
        try:
            delay_s = await work(key)
        except WriteForbiddenError:
            raise
        except Exception as error:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            delay_s = self._backoff.delay_s(failures)
            self._log(key, error, delay_s)
        else:
            self._failures.pop(key, None)
        return delay_s

    def _log(self, key: K, error: Exception, delay_s: float) -> None:
        extra = {"key": str(key)}
        target = f"{self._name} {key}".strip()
        if isinstance(error, self._expected):
            level = logging.DEBUG if isinstance(error, self._quiet) else logging.WARNING
            log.log(level, "%s: %s; retry in %.2f s", target, error, delay_s, extra=extra)
        else:
            log.error("%s: unexpected failure; retry in %.2f s", target, delay_s, exc_info=error, extra=extra)

    def _after(self, delay_s: float, key: K) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + delay_s
        timer = self._timers.get(key)
        if timer is not None:
            if timer.when() <= due:
                return
            timer.cancel()
        self._timers[key] = loop.call_at(due, self._enqueue, key)

    def _enqueue(self, key: K) -> None:
        self._timers.pop(key, None)
        if key in self._running:
            self._added_again.add(key)
        elif key not in self._queued:
            self._queued.add(key)
            self._ready.put_nowait(key)
