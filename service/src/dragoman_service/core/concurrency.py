"""Concurrent work on the event loop: time slices, results in order, and one computation for equal work."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Generic, Literal, TypeVar

from cachetools import LRUCache

MAX_CONCURRENT_SEGMENTS = 128
"""Generations of one request that the engine has at once, alternatives and all targets included: submitting a thousand
blocks the event loop for longer than other requests should wait, and this many fill the batch of any CPU and most
GPUs."""

SLICE_S = 0.0015
"""Long work runs for this time before other tasks of the event loop have their turn. With 4 ms, hostile requests raised
the p99 of other clients 1.60 times instead of 1.44 (docs/benchmarks.md)."""

STARTED_PER_TURN = 8
"""Starting a generation takes about 0.1 ms."""

ENTRY_BYTES = 1024
"""Bytes of a cache entry beside its text: its key, its place in two tables, the objects around it."""

Item = TypeVar("Item")
Result = TypeVar("Result")
Value = TypeVar("Value")

How = Literal["made", "in_flight", "cache"]


class Slice:
    """The time until long work on the event loop has to pause; all tasks that share it share the time."""

    def __init__(self) -> None:
        self._end_s = time.perf_counter() + SLICE_S
        self._is_next_scheduled = False

    @property
    def is_over(self) -> bool:
        """Whether the work has to pause."""
        return time.perf_counter() >= self._end_s

    async def pause(self) -> None:
        """If the slice is over, wait for the next one, which starts after the event loop has had its turn."""
        while self.is_over:
            if not self._is_next_scheduled:
                self._is_next_scheduled = True
                asyncio.get_running_loop().call_soon(self._start)
            await asyncio.sleep(0)

    def _start(self) -> None:
        self._end_s = time.perf_counter() + SLICE_S
        self._is_next_scheduled = False


async def together(work: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """The results in order; the first failure ends the others and is raised by itself."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in work]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


async def in_order(
    items: Iterable[Item], work: Callable[[Item], Awaitable[Result]], workers: int
) -> AsyncGenerator[Result]:
    """The results in the order of the items, each as soon as it and those before it are there.

    Closing the generator cancels unfinished work, and waits for its end.

    Args:
        items: The items, started in this order.
        work: Called for each; the first failure is raised at once and ends all.
        workers: Maximum number of items in progress.
    """
    waiting = iter(items)
    first = list(islice(waiting, workers + 1))
    if len(first) == 1:
        yield await work(first[0])
        return
    waiting = chain(first, waiting)
    loop = asyncio.get_running_loop()
    # Started and not yet yielded; with thousands of items, never one for each of them.
    results: deque[asyncio.Future[Result]] = deque()
    failed: asyncio.Future[None] = loop.create_future()
    slice_ = Slice()

    async def work_through() -> None:
        for item in waiting:
            result: asyncio.Future[Result] = loop.create_future()
            results.append(result)
            # Work that never suspends (a cached result) must not starve other tasks of the loop.
            await asyncio.sleep(0)
            await slice_.pause()
            try:
                result.set_result(await work(item))
            except Exception as error:
                if not failed.done():
                    failed.set_exception(error)
                return

    tasks: list[asyncio.Task[None]] = []
    try:
        for number in range(min(workers, len(first))):
            tasks.append(asyncio.create_task(work_through()))
            if number % STARTED_PER_TURN == 0:
                await asyncio.sleep(0)
        # A worker that is done with an item has started the next one: only in the end there is none here.
        while results:
            await slice_.pause()
            result = results.popleft()
            if not result.done():
                await asyncio.wait((result, failed), return_when=asyncio.FIRST_COMPLETED)
            if failed.done():
                failed.result()
            yield result.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if failed.done():
            failed.exception()


def key_of(*parts: object) -> bytes:
    """A key of everything that can change a result: values whose `repr` identifies them."""
    return hashlib.blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=20).digest()


@dataclass
class _Computation(Generic[Value]):
    task: asyncio.Task[Value]
    waiting: int = 0


class Deduplication(Generic[Value]):
    """Computes values by key: each once at a time, with an optional cache.

    Args:
        cache_bytes: Maximum size of the cache; 0: no cache.
        size_bytes: Of a value; None for a value that is not cached.
    """

    def __init__(self, cache_bytes: int, size_bytes: Callable[[Value], int | None]) -> None:
        self._cache: LRUCache[bytes, tuple[Value, int]] = LRUCache(cache_bytes, getsizeof=_entry_bytes)
        self._size_bytes = size_bytes
        self._computations: dict[bytes, _Computation[Value]] = {}

    async def get(self, key: bytes, make: Callable[[], Coroutine[Any, Any, Value]]) -> tuple[Value, How]:
        """The value of `key`: cached, being computed, or computed now by `make`.

        A computation goes on while a caller waits for it; the last to be cancelled ends it, and waits for its
        end. All callers get the same failure, and a failure is not cached.
        """
        cached = self._cache.get(key)
        if cached is not None:
            return cached[0], "cache"
        shared = self._computations.get(key)
        how: How = "made" if shared is None else "in_flight"
        if shared is None:
            shared = self._computations[key] = _Computation(asyncio.create_task(make()))
            shared.task.add_done_callback(lambda task: self._done(key, task))
        shared.waiting += 1
        try:
            return await asyncio.shield(shared.task), how
        finally:
            shared.waiting -= 1
            if not shared.waiting and not shared.task.done():
                # A caller that comes now starts a new computation rather than waiting for one that is cancelled.
                self._computations.pop(key, None)
                shared.task.cancel()
                await asyncio.wait((shared.task,))

    def _done(self, key: bytes, task: asyncio.Task[Value]) -> None:
        made = self._computations.get(key)
        if made is not None and made.task is task:
            del self._computations[key]
        if task.cancelled() or task.exception() is not None or not self._cache.maxsize:
            return
        size_bytes = self._size_bytes(task.result())
        # A value that would push out most of the others is not cached.
        if size_bytes is not None and size_bytes + ENTRY_BYTES <= self._cache.maxsize // 8:
            self._cache[key] = (task.result(), size_bytes + ENTRY_BYTES)


def _entry_bytes(entry: tuple[object, int]) -> int:
    return entry[1]
