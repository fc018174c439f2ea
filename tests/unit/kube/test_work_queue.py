"""The work queue: one reconciliation per key at a time, deduplication, delays and backoff."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman_kube.errors import ConflictError, UnavailableError, WriteForbiddenError
from dragoman_kube.work_queue import BACKOFF, Backoff, WorkQueue

Until = Callable[[Callable[[], object]], Awaitable[None]]


@asynccontextmanager
async def running(
    work: Callable[[str], Awaitable[float | None]], workers: int = 4, **options: Any
) -> AsyncIterator[WorkQueue[str]]:
    queue: WorkQueue[str] = WorkQueue(workers, **options)
    task = asyncio.create_task(queue.run(work))
    try:
        yield queue
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_a_key_that_is_added_often_is_reconciled_once(until: Until) -> None:
    seen: list[str] = []

    async def work(key: str) -> None:
        seen.append(key)

    async with running(work) as queue:
        for _ in range(100):
            queue.add("a")
        queue.add("b")
        await until(lambda: len(seen) >= 2)
    assert sorted(seen) == ["a", "b"]


async def test_a_key_that_is_added_during_its_reconciliation_is_reconciled_once_more(until: Until) -> None:
    seen, together, maximum = 0, 0, 0
    go = asyncio.Event()

    async def work(key: str) -> None:
        nonlocal seen, together, maximum
        together += 1
        maximum = max(maximum, together)
        seen += 1
        await go.wait()
        together -= 1

    async with running(work) as queue:
        queue.add("a")
        await until(lambda: seen == 1)
        for _ in range(10):
            queue.add("a")
        go.set()
        await until(lambda: seen == 2)
        await until(lambda: together == 0)
    assert (seen, maximum) == (2, 1)


async def test_keys_do_not_wait_for_each_other(until: Until) -> None:
    started: set[str] = set()

    async def work(key: str) -> None:
        started.add(key)
        await asyncio.Event().wait()

    async with running(work, workers=2) as queue:
        queue.add("slow")
        queue.add("other")
        await until(lambda: started == {"slow", "other"})


async def test_a_key_is_reconciled_again_after_the_delay_that_its_work_returns(until: Until) -> None:
    seen: list[str] = []

    async def work(key: str) -> float | None:
        seen.append(key)
        return 0.01 if len(seen) < 3 else None

    async with running(work) as queue:
        queue.add("a")
        await until(lambda: len(seen) == 3)
        assert queue.depth == 0


async def test_a_delayed_key_comes_later_and_a_sooner_one_is_kept(until: Until) -> None:
    seen: list[str] = []

    async def work(key: str) -> None:
        seen.append(key)

    async with running(work, workers=1, settle_s=0) as queue:
        for key in ("a", "a", "b"):
            queue.add(key)
        queue.add("last", 0.05)
        queue.add("a", 30)
        await until(lambda: "last" in seen)
    assert seen == ["a", "b", "last"]


async def test_a_failure_is_retried_and_then_forgotten(
    caplog: pytest.LogCaptureFixture, until: Until
) -> None:
    seen: list[str] = []

    async def work(key: str) -> float | None:
        seen.append(key)
        if len(seen) < 3:
            raise UnavailableError("read x", "no route")
        return None

    async with running(work) as queue:
        queue.add("a")
        await until(lambda: len(seen) == 3)
    assert [record.getMessage() for record in caplog.records] == [
        "a: read x: no route; retry in 0.25 s",
        "a: read x: no route; retry in 0.50 s",
    ]


async def test_delays_grow_from_failure_to_failure_and_later_delays_are_kept(until: Until) -> None:
    seen: list[float] = []

    async def work(key: str) -> float | None:
        seen.append(asyncio.get_running_loop().time())
        if len(seen) < 3:
            raise ConflictError("apply x", "another writer was first", 409)
        return 0.01 if len(seen) == 3 else None

    async with running(work, backoff=Backoff(0.1, 10)) as queue:
        queue.add("a")
        await until(lambda: len(seen) == 4)
    first, second, third, _ = seen
    assert second - first >= 0.09
    assert third - second >= 0.19


async def test_adding_a_key_ends_its_backoff(until: Until) -> None:
    seen: list[str] = []

    async def work(key: str) -> None:
        seen.append(key)
        raise UnavailableError("read x", "no route")

    async with running(work) as queue:
        queue.add("a")
        await until(lambda: len(seen) == 4)
        began = asyncio.get_running_loop().time()
        queue.add("a")
        await until(lambda: len(seen) == 5)
        assert asyncio.get_running_loop().time() - began < BACKOFF.delay_s(4)


async def test_a_defect_does_not_end_the_worker(caplog: pytest.LogCaptureFixture, until: Until) -> None:
    seen: list[str] = []

    async def work(key: str) -> None:
        seen.append(key)
        if key == "bad":
            raise KeyError("surprise")

    async with running(work, workers=1) as queue:
        queue.add("bad")
        await until(lambda: seen == ["bad"])
        queue.add("good")
        await until(lambda: "good" in seen)
        await until(lambda: seen.count("bad") == 2)
    assert "unexpected failure" in caplog.text
    assert "KeyError" in caplog.text


async def test_a_forbidden_write_ends_the_queue_and_nothing_is_retried() -> None:
    seen: list[str] = []

    async def work(key: str) -> float | None:
        seen.append(key)
        if key == "fenced":
            raise WriteForbiddenError("apply x", "not ours")
        return 0.0

    queue: WorkQueue[str] = WorkQueue(2)
    queue.add("fenced")
    queue.add("other", 0.01)
    with pytest.raises(WriteForbiddenError, match="apply x"):
        async with asyncio.timeout(30):
            await queue.run(work)
    assert seen.count("fenced") == 1


def test_backoff_grows_to_its_maximum() -> None:
    assert [BACKOFF.delay_s(failures) for failures in (1, 2, 3)] == [0.25, 0.5, 1.0]
    assert BACKOFF.delay_s(100_000) == BACKOFF.max_s
