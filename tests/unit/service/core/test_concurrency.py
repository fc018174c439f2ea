"""Thousands of segments of one request: in order, and the event loop goes on meanwhile."""

import asyncio
import itertools
import time

import pytest

from dragoman_service.core import concurrency
from dragoman_service.core.concurrency import in_order

MANY = 500
PLACES = 128


async def test_every_item_is_given_in_order_with_any_number_of_places() -> None:
    async def work(item: int) -> int:
        for _ in range(item % 3):
            await asyncio.sleep(0)
        return item

    for places in (1, 2, PLACES):
        for count in (0, 1, 2, 3, PLACES + 1, MANY):
            assert [each async for each in in_order(range(count), work, places)] == list(range(count))


async def test_a_failure_of_a_late_item_is_raised() -> None:
    async def work(item: int) -> int:
        if item == MANY - 1:
            raise ValueError("the last one")
        return item

    with pytest.raises(ValueError, match="the last one"):
        [each async for each in in_order(range(MANY), work, 3)]


async def test_items_are_started_and_given_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1_000_000))
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock) / 10)
    monkeypatch.setattr(concurrency, "SLICE_S", 1.0)
    first_may_end, all_started = asyncio.Event(), asyncio.Event()
    started: list[int] = []
    turns: list[int] = []

    async def work(item: int) -> int:
        started.append(item)
        if len(started) == MANY:
            all_started.set()
        if item == 0:
            await first_may_end.wait()
        return item

    async def watch() -> None:
        while True:
            turns.append(len(started) + len(given))
            await asyncio.sleep(0)

    given: list[int] = []
    give = given.append
    watching = asyncio.create_task(watch())

    async def gather() -> None:
        async for each in in_order(range(MANY), work, PLACES):
            give(each)

    gathering = asyncio.create_task(gather())
    await all_started.wait()
    first_may_end.set()
    await gathering
    watching.cancel()
    assert given == list(range(MANY))
    assert max(after - before for before, after in itertools.pairwise(turns)) < 20
