"""Reads that are shared, and never older than the question."""

import asyncio

import pytest

from dragoman_router.glossaries.fresh_reads import FreshReads


class Source:
    """Something that is read, and changes."""

    def __init__(self) -> None:
        self.state, self.reads = 0, 0
        self.go_on = asyncio.Event()
        self.fails = False

    async def read(self, key: str) -> tuple[str, int]:
        self.reads += 1
        seen = self.state
        await self.go_on.wait()
        if self.fails:
            raise LookupError(key)
        return key, seen


async def begun(source: Source, reads: int) -> None:
    async with asyncio.timeout(5):
        while source.reads < reads:  # noqa: ASYNC110 - what is waited for sets no event
            await asyncio.sleep(0)


async def test_who_comes_during_a_read_gets_the_next_one() -> None:
    source = Source()
    reads = FreshReads(source.read)
    first = asyncio.create_task(reads.get("a"))
    await begun(source, 1)
    source.state = 1
    later = [asyncio.create_task(reads.get("a")) for _ in range(100)]
    other = asyncio.create_task(reads.get("b"))
    await begun(source, 2)
    source.go_on.set()
    assert await first == ("a", 0)
    assert await asyncio.gather(*later) == [("a", 1)] * 100
    assert await other == ("b", 1)
    assert source.reads == 3
    assert await reads.get("a") == ("a", 1)
    assert source.reads == 4
    assert not reads._running
    assert not reads._next


async def test_who_comes_once_the_next_read_runs_gets_the_one_after() -> None:
    source = Source()
    reads = FreshReads(source.read)
    first, second = (asyncio.create_task(reads.get("a")) for _ in range(2))
    await begun(source, 1)
    source.go_on.set()
    await first
    source.go_on.clear()
    await begun(source, 2)
    source.state = 1
    third = asyncio.create_task(reads.get("a"))
    source.go_on.set()
    assert [await second, await third] == [("a", 0), ("a", 1)]


async def test_a_failed_read_fails_those_who_share_it_and_nobody_else() -> None:
    source = Source()
    source.fails = True
    reads = FreshReads(source.read)
    first = asyncio.create_task(reads.get("a"))
    await begun(source, 1)
    later = [asyncio.create_task(reads.get("a")) for _ in range(2)]
    source.go_on.set()
    for each in (first, *later):
        with pytest.raises(LookupError):
            await each
    source.fails = False
    assert await reads.get("a") == ("a", 0)


async def test_who_leaves_ends_it_for_nobody() -> None:
    source = Source()
    reads = FreshReads(source.read)
    gone, stays = (asyncio.create_task(reads.get("a")) for _ in range(2))
    await begun(source, 1)
    also_gone = asyncio.create_task(reads.get("a"))
    await asyncio.sleep(0)
    gone.cancel()
    also_gone.cancel()
    await asyncio.gather(gone, also_gone, return_exceptions=True)
    source.go_on.set()
    assert await stays == ("a", 0)
