"""Rates of all routers together: the token bucket in Redis, and its twin in Python."""

import asyncio
from typing import Any

import pytest

from dragoman_protocols.errors import RateLimitedError
from dragoman_router.access.accounts import Account, AccountLimits, Charge
from dragoman_router.access.failures import BURST_S
from dragoman_router.state.redis import StateClient, StateMetrics
from dragoman_router.state.usage import RedisUsage

PERIOD = "2026-11-01"
SLOW = 1 / 1000
"""A rate at which nothing is refilled while a test runs."""


@pytest.fixture
async def two(redis_server: Any) -> Any:
    """Usage as two routers see it."""
    clients = [StateClient(redis_server.url, "test:", 10, StateMetrics()) for _ in range(2)]
    for client in clients:
        await client.connect()
    yield [RedisUsage(client, f"router-{at}") for at, client in enumerate(clients)]
    for client in clients:
        await client.aclose()


async def admitted(usages: Any, account: Account, characters: int, times: int) -> int:
    async def admit(at: int) -> bool:
        try:
            await usages[at % len(usages)].reserve(account, PERIOD, characters)
        except RateLimitedError:
            return False
        return True

    return sum(await asyncio.gather(*map(admit, range(times))))


async def test_a_burst_is_of_all_routers_together(two: Any) -> None:
    account = Account("alice", AccountLimits(requests_per_s=SLOW, burst_s=5000), 0)
    assert await admitted(two, account, 1, 20) == 5
    characters = Account("bob", AccountLimits(characters_per_s=SLOW, burst_s=10_000), 0)
    assert await admitted(two, characters, 3, 20) == 4, "the last one overdraws the bucket"


async def test_one_connection_gets_the_whole_rate(two: Any) -> None:
    account = Account("alice", AccountLimits(requests_per_s=SLOW, burst_s=5000), 0)
    assert await admitted(two[:1], account, 1, 20) == 5


async def test_a_bucket_refills_at_its_rate(two: Any) -> None:
    account = Account("alice", AccountLimits(requests_per_s=50, burst_s=0.02), 0)
    loop = asyncio.get_running_loop()
    began_s, count = loop.time(), 0
    while loop.time() - began_s < 1:
        count += await admitted(two, account, 1, 1)
    assert 1 < count <= 50 * (loop.time() - began_s) + 2


async def test_a_large_text_passes_once_and_is_made_up_for(two: Any, redis_server: Any) -> None:
    account = Account("alice", AccountLimits(characters_per_s=10, burst_s=1), 0)
    await two[0].reserve(account, PERIOD, 1000)
    with pytest.raises(RateLimitedError, match="too many characters") as refused:
        await two[1].reserve(account, PERIOD, 1)
    assert 90 <= refused.value.retry_after_s <= 100
    # Expires once it is full again: 1,000 characters at 10 a second, and a second.
    assert 95_000 < int(redis_server.command("PTTL test:rate:characters:alice")[1:]) <= 101_000


async def test_what_was_not_known_at_admission_is_made_up_for(two: Any) -> None:
    """A file's characters are counted by its pod; a text that was not translated is given back."""
    account = Account("alice", AccountLimits(characters_per_s=10, burst_s=1), 0)
    account.begin(PERIOD)
    reserved = await two[0].reserve(account, PERIOD, 0)
    assert reserved == 0
    Charge(account, 0, two[0], shared=True).settle(500)
    await two[0].outbox.drain(10)
    with pytest.raises(RateLimitedError) as refused:
        await two[1].reserve(account, PERIOD, 1)
    assert 40 <= refused.value.retry_after_s <= 50
    Charge(account, 500, two[1], shared=True).settle(0)
    await two[1].outbox.drain(10)
    await two[0].reserve(account, PERIOD, 1)


async def test_both_buckets_admit_the_same(two: Any) -> None:
    """The script and `Bucket`, without time for a refill: the same decisions."""
    limits = AccountLimits(requests_per_s=SLOW, characters_per_s=SLOW, burst_s=7000)
    shared, local = Account("alice", limits, 0), Account("bob", limits, 0)
    for characters in (1, 3, 0, 2, 5, 1, 1):
        outcomes = []
        for take in (
            lambda c=characters: two[0].reserve(shared, PERIOD, c),
            lambda c=characters: here(local, c),
        ):
            try:
                await take()
                outcomes.append("")
            except RateLimitedError as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]


async def here(account: Account, characters: int) -> None:
    account.take(characters, 0)


async def test_addresses_share_a_rate_and_no_usage(
    start_router: Any, start_upstream: Any, redis_server: Any
) -> None:
    one = await start_upstream()
    options = {"anonymous_requests_per_s": SLOW, "state_url": redis_server.url, "state_timeout_s": 10}
    routers = [await start_router(router_id=f"router-{at}", **options) for at in range(2)]
    for router in routers:
        router.serve("a", one.replica())
    assert [(await router.translate())[0] for router in routers] == [200, 429]
    assert b"rate:requests:address/127.0.0.1" in redis_server.command("KEYS *")
    assert b"usage" not in redis_server.command("KEYS *")


async def test_failed_attempts_are_those_of_all_routers_together(
    start_member: Any, redis_server: Any
) -> None:
    members = [await start_member(redis_server.url, auth_failures_per_s=2 / BURST_S) for _ in range(2)]
    wrong = {"Authorization": "DeepL-Auth-Key a-wrong-guess"}
    found = [await members[at % 2].translate(headers=wrong) for at in range(4)]
    assert found == [403, 403, 429, 429]
    assert b"rate:requests:failures/127.0.0.1" in redis_server.command("KEYS *")
    assert [await each.translate() for each in members] == [429, 429]
