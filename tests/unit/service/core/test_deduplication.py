import asyncio

import pytest

from dragoman_service.core.concurrency import ENTRY_BYTES, Deduplication, key_of


class Making:
    def __init__(self, fails: bool = False) -> None:
        self.started = self.ended = 0
        self.release = asyncio.Event()
        self.fails = fails

    async def __call__(self) -> str:
        self.started += 1
        try:
            await self.release.wait()
        finally:
            self.ended += 1
        if self.fails:
            raise ValueError("no")
        return "made"


def sharing(cache_bytes: int = 0) -> Deduplication[str]:
    return Deduplication(cache_bytes, len)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_what_several_want_is_made_once() -> None:
    shared, making = sharing(), Making()
    tasks = [asyncio.create_task(shared.get(b"k", making)) for _ in range(3)]
    await settle()
    making.release.set()
    assert await asyncio.gather(*tasks) == [("made", "made"), ("made", "in_flight"), ("made", "in_flight")]
    assert making.started == 1
    await shared.get(b"k", making)
    assert making.started == 2


async def test_it_is_made_as_long_as_anybody_waits() -> None:
    shared, making = sharing(), Making()
    first, second = (asyncio.create_task(shared.get(b"k", making)) for _ in range(2))
    await settle()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert making.ended == 0
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    assert making.ended == 1
    third = asyncio.create_task(shared.get(b"k", making))
    await settle()
    assert making.started == 2
    making.release.set()
    assert (await third)[0] == "made"


async def test_a_failure_reaches_all_that_wait_and_none_after() -> None:
    shared, making = sharing(10_000), Making(fails=True)
    tasks = [asyncio.create_task(shared.get(b"k", making)) for _ in range(3)]
    await settle()
    making.release.set()
    assert [type(error) for error in await asyncio.gather(*tasks, return_exceptions=True)] == [ValueError] * 3
    assert making.started == 1
    with pytest.raises(ValueError, match="no"):
        await shared.get(b"k", making)
    assert making.started == 2


async def test_the_cache_keeps_the_last_used_within_its_bytes() -> None:
    entry = ENTRY_BYTES + 4
    shared, making = sharing(16 * entry), Making()
    making.release.set()
    for number in range(16):
        await shared.get(key_of(number), making)
    assert (await shared.get(key_of(0), making))[1] == "cache"
    await shared.get(key_of("new"), making)
    assert (await shared.get(key_of(0), making))[1] == "cache"
    assert (await shared.get(key_of(1), making))[1] == "made"


async def test_what_is_too_large_or_not_worth_keeping_is_not_kept() -> None:
    making = Making()
    making.release.set()
    for shared in (sharing(2 * ENTRY_BYTES), Deduplication[str](10**6, lambda _: None), sharing(0)):
        await shared.get(b"k", making)
        assert (await shared.get(b"k", making))[1] == "made"


def test_keys_distinguish_parts() -> None:
    assert key_of("ab", "c") != key_of("a", "bc")
    assert key_of("\ud800") == key_of("\ud800")
