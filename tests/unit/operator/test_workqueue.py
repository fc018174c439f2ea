"""The queue: one look at a time for each key, many marks become one, failures back off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from dragoman_operator.errors import UnavailableError
from dragoman_operator.workqueue import MAX_BACKOFF_S, WorkQueue, backoff_s


@asynccontextmanager
async def running(
    work: Callable[[str], Awaitable[float | None]], workers: int = 4
) -> AsyncIterator[WorkQueue[str]]:
    queue: WorkQueue[str] = WorkQueue(workers)
    task = asyncio.create_task(queue.run(work))
    try:
        yield queue
    finally:
        task.cancel()
        await asyncio.wait([task])


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while True:
            if condition():
                return
            await asyncio.sleep(0.005)


async def test_many_marks_are_one_look() -> None:
    looks: list[str] = []

    async def work(key: str) -> None:
        looks.append(key)

    async with running(work) as queue:
        for _ in range(100):
            queue.mark("a")
        queue.mark("b")
        await until(lambda: len(looks) >= 2)
    assert sorted(looks) == ["a", "b"]


async def test_mark_during_a_look_makes_one_more_afterwards() -> None:
    looks, together, most = 0, 0, 0
    go = asyncio.Event()

    async def work(key: str) -> None:
        nonlocal looks, together, most
        together += 1
        most = max(most, together)
        looks += 1
        await go.wait()
        together -= 1

    async with running(work) as queue:
        queue.mark("a")
        await until(lambda: looks == 1)
        for _ in range(10):
            queue.mark("a")
        go.set()
        await until(lambda: looks == 2)
        await until(lambda: together == 0)
    assert (looks, most) == (2, 1)


async def test_keys_do_not_wait_for_each_other() -> None:
    started: set[str] = set()

    async def work(key: str) -> None:
        started.add(key)
        await asyncio.Event().wait()

    async with running(work, workers=2) as queue:
        queue.mark("slow")
        queue.mark("other")
        await until(lambda: started == {"slow", "other"})


async def test_looks_again_after_the_pause() -> None:
    looks: list[str] = []

    async def work(key: str) -> float | None:
        looks.append(key)
        return 0.01 if len(looks) < 3 else None

    async with running(work) as queue:
        queue.mark("a")
        await until(lambda: len(looks) == 3)
        assert queue.depth == 0


async def test_failure_is_tried_again_and_then_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    looks: list[str] = []

    async def work(key: str) -> float | None:
        looks.append(key)
        if len(looks) < 3:
            raise UnavailableError("read x", "no route")
        return None

    async with running(work) as queue:
        queue.mark("a")
        await until(lambda: len(looks) == 3)
    assert [record.getMessage() for record in caplog.records] == ["read x: no route"] * 2


async def test_mark_does_not_wait_for_the_back_off() -> None:
    looks: list[str] = []

    async def work(key: str) -> None:
        looks.append(key)
        raise UnavailableError("read x", "no route")

    async with running(work) as queue:
        queue.mark("a")
        await until(lambda: len(looks) == 4)
        began = asyncio.get_running_loop().time()
        queue.mark("a")
        await until(lambda: len(looks) == 5)
        assert asyncio.get_running_loop().time() - began < backoff_s(4)


async def test_unexpected_failure_does_not_end_the_worker(caplog: pytest.LogCaptureFixture) -> None:
    looks: list[str] = []

    async def work(key: str) -> None:
        looks.append(key)
        if key == "bad":
            raise KeyError("surprise")

    async with running(work, workers=1) as queue:
        queue.mark("bad")
        await until(lambda: looks == ["bad"])
        queue.mark("good")
        await until(lambda: "good" in looks)
    assert "unexpected failure" in caplog.text


def test_back_off_grows_to_its_cap() -> None:
    assert [backoff_s(failures) for failures in (1, 2, 3)] == [0.25, 0.5, 1.0]
    assert backoff_s(1000) == MAX_BACKOFF_S
