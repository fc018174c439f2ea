"""Usage and quotas of all routers together, in Redis."""

import asyncio
from typing import Any

import pytest

from dragoman_router.access.accounts import Account, AccountLimits
from dragoman_router.errors import StateError
from dragoman_router.state.redis import StateClient, StateMetrics
from dragoman_router.state.usage import RedisUsage

PERIOD = "2026-11-01"


async def test_all_routers_report_the_same(start_member: Any, redis_server: Any) -> None:
    one, two = [await start_member(redis_server.url) for _ in range(2)]
    for characters, member in ((10, one), (7, two), (5, one)):
        assert await member.translate(characters) == 200
    await one.until_used(22)
    await two.until_used(22)
    assert await (await start_member(redis_server.url)).used() == 22, "a start begins where others are"


@pytest.mark.parametrize("limit", [100, 20])
async def test_a_quota_is_exact_for_requests_at_the_same_time(
    start_member: Any, redis_server: Any, limit: int
) -> None:
    members = [await start_member(redis_server.url, {"characterLimit": limit}) for _ in range(2)]
    statuses = await asyncio.gather(*(members[at % 2].translate(6) for at in range(40)))
    assert statuses.count(200) == limit // 6
    assert statuses.count(429) == 40 - limit // 6
    assert [await each.used() for each in members] == [limit // 6 * 6] * 2


async def test_what_was_refused_is_given_back(start_member: Any, redis_server: Any) -> None:
    member = await start_member(redis_server.url, {"characterLimit": 10})
    assert await member.translate(10, target="nl") == 422
    member.router.state.fleet.remove("default/a")
    assert await member.translate(10) == 422
    assert await member.used() == 0


async def test_a_lowered_count_is_believed(start_member: Any, redis_server: Any) -> None:
    member = await start_member(redis_server.url, {"characterLimit": 10})
    assert await member.translate(10) == 200
    assert await member.translate(1) == 429
    period = member.router.state.gate._usage._calendar.period
    redis_server.command(f"HSET dragoman:usage:{period} characters:alice 3")
    assert await member.translate(7) == 200
    assert await member.used() == 10


async def test_an_answer_that_is_lost_is_counted_once(
    start_member: Any, redis_server: Any, tcp_proxy: Any, until: Any
) -> None:
    proxy = await tcp_proxy(redis_server.port)
    member = await start_member(proxy.url)
    proxy.dropping = True
    assert await member.translate(10) == 200
    await until(lambda: proxy.dropped)
    assert await member.translate(5) == 200
    proxy.dropping = False
    other = await start_member(redis_server.url)
    async with asyncio.timeout(30):
        while await other.used() != 15:  # noqa: ASYNC110 - another router sends it
            await asyncio.sleep(0.05)
    assert await member.used() == 15


async def test_a_reservation_whose_answer_is_lost_counts_as_made(
    start_member: Any, redis_server: Any, tcp_proxy: Any, until: Any
) -> None:
    proxy = await tcp_proxy(redis_server.port)
    member = await start_member(proxy.url, {"characterLimit": 100})
    proxy.dropping = True
    assert await member.translate(10) == 200
    assert proxy.dropped == 1
    proxy.dropping = False
    other = await start_member(redis_server.url, {"characterLimit": 100})
    await until(lambda: member.metric("dragoman_router_state_up"))
    assert await member.translate(1) == 200
    assert [await member.used(), await other.used()] == [11, 11]


async def test_a_client_that_disconnects_before_redis_answers_is_not_charged(
    start_member: Any, own_redis: Any, until: Any
) -> None:
    member = await start_member(own_redis.url, {"characterLimit": 100})
    assert await member.translate(1) == 200
    router = member.router
    reserving = router.state.gate._usage._reserving
    own_redis.pause()
    request = asyncio.create_task(member.translate(90))
    await until(lambda: reserving)
    request.cancel()
    await until(lambda: not router.state.active)
    own_redis.resume()
    await until(lambda: not reserving)
    await member.until_used(1)
    assert await member.translate(99) == 200


@pytest.fixture
async def client(redis_server: Any) -> Any:
    client = StateClient(redis_server.url, "test/here:", 10, StateMetrics())
    await client.connect()
    yield client
    await client.aclose()


async def test_counts_are_kept_by_name_under_the_prefix_and_expire(client: Any) -> None:
    usage = RedisUsage(client, "one")
    account = Account("alice", AccountLimits(character_limit=100, requests_per_s=10), 0)
    assert await usage.reserve(account, PERIOD, 5) == 5
    assert await client.redis.hgetall(f"test/here:usage:{PERIOD}") == {
        b"characters:alice": b"5",
        b"requests:alice": b"1",
    }
    assert {key.decode() for key in await client.redis.keys("*")} == {
        f"test/here:usage:{PERIOD}",
        "test/here:rate:requests:alice",
    }
    first_day_s = 1_793_491_200
    assert await client.redis.expiretime(f"test/here:usage:{PERIOD}") == first_day_s + 100 * 86_400


async def test_usage_is_never_negative(client: Any) -> None:
    usage = RedisUsage(client, "one")
    account = Account("alice", AccountLimits(), 0)
    account.begin(PERIOD)
    account.reserve(5, 0, usage).settle(-5)
    await usage.outbox.drain(10)
    assert await usage.used(account, PERIOD) == 0
    account.reserve(5, 0, usage).settle(5)
    await usage.outbox.drain(10)
    assert (await usage.used(account, PERIOD), account.characters) == (5, 5)


async def test_many_keys_are_sent_in_several_batches(client: Any) -> None:
    usage = RedisUsage(client, "one")
    accounts = [Account(f"key {number}", AccountLimits(), 0) for number in range(2500)]
    for account in accounts:
        account.begin(PERIOD)
        account.reserve(3, 0, usage).settle(3)
    await usage.outbox.drain(30)
    assert {await usage.used(account, PERIOD) for account in accounts[::100]} == {3}
    assert await client.redis.hlen(f"test/here:usage:{PERIOD}") == 2 * len(accounts)


async def test_a_server_that_is_out_of_memory_keeps_no_request_away(
    start_member: Any, redis_server: Any, caplog: pytest.LogCaptureFixture
) -> None:
    member = await start_member(redis_server.url, {"characterLimit": 100})
    redis_server.command("CONFIG SET maxmemory 1")
    try:
        assert [await member.translate(10) for _ in range(3)] == [200] * 3
    finally:
        redis_server.command("CONFIG SET maxmemory 0")
    assert caplog.text.count("reserve was refused") == 1
    assert member.metric("dragoman_router_state_errors_total", operation="reserve") == 3
    await (await start_member(redis_server.url, {"characterLimit": 100})).until_used(30)


async def test_a_policy_that_evicts_is_logged(redis_server: Any, caplog: pytest.LogCaptureFixture) -> None:
    redis_server.command("CONFIG SET maxmemory-policy allkeys-lru")
    client = StateClient(redis_server.url, "test:", 10, StateMetrics())
    try:
        await client.connect()
    finally:
        redis_server.command("CONFIG SET maxmemory-policy noeviction")
        await client.aclose()
    assert "maxmemory-policy is allkeys-lru" in caplog.text


async def test_an_unreachable_server_is_reported_without_its_password() -> None:
    client = StateClient("redis://user:secret@127.0.0.1:1/3", "test:", 0.1, StateMetrics())
    with pytest.raises(StateError, match=r"^redis://127.0.0.1:1/3 does not answer$"):
        await client.call("ping", client.redis.ping)
    await client.aclose()
