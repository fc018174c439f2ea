"""Work that several callers want at once is done once, and what was worth keeping is kept for the next."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

Value = TypeVar("Value")

How = Literal["made", "in_flight", "cache"]

ENTRY_BYTES = 1024
"""What an entry takes beside its text: its key, its place in two tables, the objects around it."""


def key_of(*parts: object) -> bytes:
    """A key for whatever can change a result: values with a `repr` that tells them apart."""
    return hashlib.blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=20).digest()


@dataclass
class _Shared(Generic[Value]):
    task: asyncio.Task[Value]
    waiting: int = 0


class Sharing(Generic[Value]):
    """Makes values by key, each once at a time.

    Args:
        cache_bytes: What the values that are kept may take; 0 keeps none.
        size_bytes: Of a value; None where it is not to be kept.
    """

    def __init__(self, cache_bytes: int, size_bytes: Callable[[Value], int | None]) -> None:
        self._cache_bytes = cache_bytes
        self._size_bytes = size_bytes
        self._kept: OrderedDict[bytes, tuple[Value, int]] = OrderedDict()
        self._kept_bytes = 0
        self._making: dict[bytes, _Shared[Value]] = {}

    @property
    def kept_bytes(self) -> int:
        """About what the kept values take."""
        return self._kept_bytes

    async def get(self, key: bytes, make: Callable[[], Coroutine[Any, Any, Value]]) -> tuple[Value, How]:
        """The value of `key`: kept, in the making, or made now.

        It is made as long as anybody waits for it; the last to leave ends it, and waits for its end. All who
        wait share a failure, none tries again, and nothing of it is kept.

        Args:
            key: As `key_of` makes it.
            make: Called where there is none; what it raises is raised here.
        """
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key][0], "cache"
        shared = self._making.get(key)
        how: How = "made" if shared is None else "in_flight"
        if shared is None:
            shared = self._making[key] = _Shared(asyncio.create_task(make()))
            shared.task.add_done_callback(lambda task: self._made(key, task))
        shared.waiting += 1
        try:
            return await asyncio.shield(shared.task), how
        finally:
            shared.waiting -= 1
            if not shared.waiting and not shared.task.done():
                # Whoever comes now begins anew rather than waiting for what is being ended.
                self._making.pop(key, None)
                shared.task.cancel()
                await asyncio.wait((shared.task,))

    def _made(self, key: bytes, task: asyncio.Task[Value]) -> None:
        made = self._making.get(key)
        if made is not None and made.task is task:
            del self._making[key]
        if task.cancelled() or task.exception() is not None:
            return
        size_bytes = self._size_bytes(task.result()) if self._cache_bytes else None
        if size_bytes is not None:
            self._keep(key, task.result(), size_bytes + ENTRY_BYTES)

    def _keep(self, key: bytes, value: Value, size_bytes: int) -> None:
        if size_bytes > self._cache_bytes // 8:
            return
        self._kept[key] = (value, size_bytes)
        self._kept_bytes += size_bytes
        while self._kept_bytes > self._cache_bytes:
            _, (_, dropped_bytes) = self._kept.popitem(last=False)
            self._kept_bytes -= dropped_bytes
