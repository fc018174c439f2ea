"""Work done side by side whose first failure ends the rest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


async def together(work: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """The results in order; the first failure ends the others and is raised by itself."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in work]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


async def in_order(
    items: Sequence[Item], work: Callable[[Item], Awaitable[Result]], places: int
) -> AsyncGenerator[Result]:
    """The results in the order of the items, each as soon as it and those before it are there.

    Closing the generator ends what is not finished, and waits for its end.

    Args:
        items: What is to be worked on, begun in this order.
        work: Done for each; the first failure is raised at once and ends all.
        places: How many are worked on at a time.
    """
    if len(items) == 1:
        yield await work(items[0])
        return
    loop = asyncio.get_running_loop()
    results: list[asyncio.Future[Result]] = [loop.create_future() for _ in items]
    failed: asyncio.Future[None] = loop.create_future()
    waiting = iter(zip(items, results, strict=True))

    async def work_through() -> None:
        for item, result in waiting:
            try:
                result.set_result(await work(item))
            except Exception as error:
                if not failed.done():
                    failed.set_exception(error)
                return
            # What was there already takes no turn of the loop, which others wait for.
            await asyncio.sleep(0)

    workers = [asyncio.create_task(work_through()) for _ in range(min(places, len(items)))]
    try:
        for result in results:
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
