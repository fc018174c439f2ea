"""Reads that many ask for at once, and that nobody may get the answer of who came after they began."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class FreshReads(Generic[T]):
    """One read of a key at a time; who comes while it runs shares the next, which begins after it.

    So what is found is never older than the question, and a thousand questions cost a few reads.

    Args:
        read: Reads a key.
    """

    def __init__(self, read: Callable[[str], Awaitable[T]]) -> None:
        self._read = read
        self._running: dict[str, asyncio.Task[T]] = {}
        self._next: dict[str, asyncio.Task[T]] = {}

    async def get(self, key: str) -> T:
        """What a read finds that begins now or later; raises what it raises."""
        task = self._next.get(key)
        if task is None:
            before = self._running.get(key)
            task = asyncio.create_task(self._after(key, before))
            task.add_done_callback(_seen)
            (self._running if before is None else self._next)[key] = task
        # Who leaves does not end it for the others.
        return await asyncio.shield(task)

    async def _after(self, key: str, before: asyncio.Task[T] | None) -> T:
        task = asyncio.current_task()
        assert task is not None
        if before is not None:
            await asyncio.wait((before,))
            self._running[key] = self._next.pop(key)
        try:
            return await self._read(key)
        finally:
            if self._running.get(key) is task:
                del self._running[key]


def _seen(task: asyncio.Task[T]) -> None:
    """All who asked may have left; an error that nobody takes is none to warn of."""
    if not task.cancelled():
        task.exception()
