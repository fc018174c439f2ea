"""Work done side by side whose first failure ends the rest."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable
from itertools import chain, islice
from typing import Any, TypeVar

from dragoman_service.core.slices import Slice

Item = TypeVar("Item")
Result = TypeVar("Result")


BEGUN_AT_A_TURN = 8
"""Beginning a generation takes about 0.1 ms."""


async def together(work: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """The results in order; the first failure ends the others and is raised by itself."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in work]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


async def in_order(
    items: Iterable[Item], work: Callable[[Item], Awaitable[Result]], places: int
) -> AsyncGenerator[Result]:
    """The results in the order of the items, each as soon as it and those before it are there.

    Closing the generator ends what is not finished, and waits for its end.

    Args:
        items: What is to be worked on, begun in this order.
        work: Done for each; the first failure is raised at once and ends all.
        places: How many are worked on at a time.
    """
    waiting = iter(items)
    first = list(islice(waiting, places + 1))
    if len(first) == 1:
        yield await work(first[0])
        return
    waiting = chain(first, waiting)
    loop = asyncio.get_running_loop()
    # Of what has begun and has not been given; with thousands of items, never one for each of them.
    results: deque[asyncio.Future[Result]] = deque()
    failed: asyncio.Future[None] = loop.create_future()
    slice_ = Slice()

    async def work_through() -> None:
        for item in waiting:
            result: asyncio.Future[Result] = loop.create_future()
            results.append(result)
            # What is there already takes no turn of the loop, which others wait for.
            await asyncio.sleep(0)
            await slice_.pause()
            try:
                result.set_result(await work(item))
            except Exception as error:
                if not failed.done():
                    failed.set_exception(error)
                return

    workers: list[asyncio.Task[None]] = []
    try:
        for number in range(min(places, len(first))):
            workers.append(asyncio.create_task(work_through()))
            if number % BEGUN_AT_A_TURN == 0:
                await asyncio.sleep(0)
        # A worker that is done with an item has begun the next one: only in the end there is none here.
        while results:
            await slice_.pause()
            result = results.popleft()
            if not result.done():
                await asyncio.wait((result, failed), return_when=asyncio.FIRST_COMPLETED)
            if failed.done():
                failed.result()
            yield result.result()
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        if failed.done():
            failed.exception()
