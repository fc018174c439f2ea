"""A reconciler: keys that need a look, looked at one after another until the look succeeds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from dragoman_devcluster.errors import ApiUnreachableError, ConflictError, LocalClusterError, NotFoundError
from dragoman_devcluster.objects import Key

logger = logging.getLogger(__name__)

FIRST_RETRY_S = 0.1
LAST_RETRY_S = 10.0


class Reconciler:
    """Calls `reconcile(key)` for each key that was enqueued, never twice at once for one key.

    Args:
        name: For the log.
        reconcile: Brings one object closer to what it should be; returns the seconds after which it wants
            to look again, or None. A LocalClusterError is retried with a growing delay.
    """

    def __init__(self, name: str, reconcile: Callable[[Key], Awaitable[float | None]]) -> None:
        self._name = name
        self._reconcile = reconcile
        self._due: dict[Key, float] = {}
        self._failures: dict[Key, int] = {}
        self._changed = asyncio.Event()

    def enqueue(self, key: Key, delay_s: float = 0.0) -> None:
        """Have `key` looked at after `delay_s`, or earlier if it is already due earlier."""
        due = asyncio.get_running_loop().time() + delay_s
        self._due[key] = min(due, self._due.get(key, due))
        self._changed.set()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await self._look(await self._next())

    async def _next(self) -> Key:
        while True:
            self._changed.clear()
            now = asyncio.get_running_loop().time()
            key = min(self._due, key=self._due.__getitem__, default=None)
            if key is not None and self._due[key] <= now:
                del self._due[key]
                return key
            wait_s = None if key is None else self._due[key] - now
            try:
                async with asyncio.timeout(wait_s):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def _look(self, key: Key) -> None:
        try:
            again_s = await self._reconcile(key)
        except LocalClusterError as error:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            retry_s = min(LAST_RETRY_S, FIRST_RETRY_S * 2 ** (failures - 1))
            expected = isinstance(error, (ConflictError, NotFoundError, ApiUnreachableError))
            level = logging.DEBUG if expected else logging.WARNING
            logger.log(level, "%s %s/%s: %s; again in %.1f s", self._name, *key, error, retry_s)
            self.enqueue(key, retry_s)
            return
        self._failures.pop(key, None)
        if again_s is not None:
            self.enqueue(key, again_s)
