"""Full garbage collections happen while no request waits."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from dragoman_http import event_loop
from dragoman_service.http.lifecycle import Lifecycle


class Collections:
    """Stands for the collector: counts what is collected, and returns how often the young objects were."""

    def __init__(self) -> None:
        self.young = self.all = 0

    def collect(self) -> None:
        self.all += 1
        self.young = 0

    def count(self) -> tuple[int, int, int]:
        return 0, 0, self.young


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Collections:
    found = Collections()
    monkeypatch.setattr(event_loop, "COLLECT_EVERY_S", 0)
    monkeypatch.setattr(gc, "collect", found.collect)
    monkeypatch.setattr(gc, "get_count", found.count)
    return found


@pytest.fixture
async def lifecycle(seen: Collections) -> AsyncIterator[Lifecycle]:
    usual = gc.get_threshold()
    lifecycle = Lifecycle()
    task = asyncio.create_task(event_loop.collect_between_requests(lifecycle))
    await turns()
    assert gc.get_threshold() == usual
    lifecycle.ready()
    await turns()
    assert gc.get_threshold() == (event_loop.YOUNG, usual[1], event_loop.NEVER)
    yield lifecycle
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert gc.get_threshold() == usual


async def test_all_objects_are_collected_between_requests(lifecycle: Lifecycle, seen: Collections) -> None:
    with lifecycle.admit():
        seen.young = 3
        await turns()
        assert seen.all == 0
    await turns()
    assert seen.all == 1


async def test_a_pod_without_a_pause_collects_all_the_same(
    lifecycle: Lifecycle, seen: Collections, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_loop, "MAX_INTERVAL_S", 0.0)
    with lifecycle.admit():
        seen.young = 3
        await turns()
        assert seen.all == 1


async def test_work_in_threads_runs_one_after_another() -> None:
    event_loop.use_one_worker_thread()
    running = most = 0

    def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        sum(range(200_000))
        running -= 1

    await asyncio.gather(*(asyncio.to_thread(work) for _ in range(20)))
    assert most == 1
