import asyncio

import pytest

from dragoman_service.engine.scripted.engine import SlotQueue


async def order(places: SlotQueue, priorities: list[int]) -> list[int]:
    """In which order waiters of these priorities get the one place."""
    served: list[int] = []

    async def wait(priority: int) -> None:
        async with places.slot(priority):
            served.append(priority)

    async with places.slot():
        tasks = [asyncio.create_task(wait(each)) for each in priorities]
        await asyncio.sleep(0)
        assert (places.running, places.waiting) == (1, len(priorities))
    await asyncio.gather(*tasks)
    assert (places.running, places.waiting) == (0, 0)
    return served


async def test_first_come_first_served_or_the_smallest() -> None:
    assert await order(SlotQueue(1), [3, 1, 2]) == [3, 1, 2]
    assert await order(SlotQueue(1, by_priority=True), [3, 1, 2]) == [1, 2, 3]


@pytest.mark.parametrize("handed", [False, True])
async def test_a_waiter_that_gives_up_loses_no_place(handed: bool) -> None:
    places = SlotQueue(1)

    async def wait() -> None:
        async with places.slot():
            await asyncio.sleep(60)

    first = asyncio.create_task(wait())
    await asyncio.sleep(0)
    second = asyncio.create_task(wait())
    await asyncio.sleep(0)
    if handed:
        # The place is the second's before it has woken to know.
        first.cancel()
        await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    async with asyncio.timeout(10), places.slot():
        assert (places.running, places.waiting) == (1, 0)
