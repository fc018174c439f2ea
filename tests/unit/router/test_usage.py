"""Periods, accounts without shared state, and batches of usage."""

import asyncio
import gc
import logging
from datetime import UTC, date, datetime

import pytest

from dragoman_protocols.errors import QuotaError
from dragoman_router.access.accounts import Account, AccountLimits, Count
from dragoman_router.access.usage import AccountUsage, Calendar, period_of
from dragoman_router.errors import StateError, StateRefusedError
from dragoman_router.state.outbox import MAX_AGE_S, Items, Outbox

PERIOD = "2026-11-01"


@pytest.mark.parametrize(
    ("day", "first_day", "period"),
    [
        ("2026-11-01", 1, "2026-11-01"),
        ("2026-11-30", 1, "2026-11-01"),
        ("2026-11-14", 15, "2026-10-15"),
        ("2026-11-15", 15, "2026-11-15"),
        ("2026-01-14", 15, "2025-12-15"),
        ("2028-02-29", 28, "2028-02-28"),
    ],
)
def test_a_period_is_named_after_its_first_day(day: str, first_day: int, period: str) -> None:
    assert period_of(date.fromisoformat(day), first_day) == period


async def test_a_quota_begins_anew_with_a_period(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    now_s = [datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC).timestamp()]
    usage = AccountUsage(Calendar(1, lambda: now_s[0]), lambda: 0.0)
    account = Account("alice", AccountLimits(character_limit=10), 0)
    in_flight = await usage.reserve(account, 2)
    (await usage.reserve(account, 8)).settle(8)
    with pytest.raises(QuotaError, match="10 of 10"):
        await usage.reserve(account, 1)
    now_s[0] += 1
    assert await usage.used(account) == 0
    assert "usage of keys counts from 2026-12-01" in caplog.text
    in_flight.settle(2)
    assert await usage.used(account) == 0, "charged to the period in which it was admitted"


async def test_what_is_taken_back_never_leaves_less_than_nothing() -> None:
    usage = AccountUsage(Calendar(1), lambda: 0.0)
    account = Account("alice", AccountLimits(), 0)
    (await usage.reserve(account, 0)).settle(5)
    (await usage.reserve(account, 0)).settle(-9)
    assert await usage.used(account) == 0


class Shared:
    """Shared state that answers a reservation when `answering` is set, with `error` if there is one."""

    available = True

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.requested, self.answering, self.counted = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.counts: list[Count] = []

    async def reserve(self, account: Account, period: str, characters: int) -> int:
        self.requested.set()
        await self.answering.wait()
        if self.error is not None:
            raise self.error
        return characters

    async def used(self, account: Account, period: str) -> int:
        return account.characters

    def add(self, account: Account, period: str, count: Count) -> None:
        self.counts.append(count)
        self.counted.set()


async def disconnected(usage: AccountUsage, shared: Shared, account: Account) -> None:
    """A client that disconnects while the state has not answered."""
    request = asyncio.create_task(usage.reserve(account, 90))
    await shared.requested.wait()
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    shared.answering.set()


async def test_what_is_reserved_for_a_client_that_disconnected_is_given_back() -> None:
    shared = Shared()
    usage = AccountUsage(Calendar(1), lambda: 0.0, shared)
    account = Account("alice", AccountLimits(character_limit=100), 0)
    async with asyncio.timeout(10):
        await disconnected(usage, shared, account)
        assert not shared.counts
        await shared.counted.wait()
    assert shared.counts == [Count(-90, taken=-90)]
    assert account.characters == 0


async def test_nothing_is_given_back_to_a_client_that_disconnected_and_was_refused() -> None:
    shared = Shared(QuotaError("used up"))
    usage = AccountUsage(Calendar(1), lambda: 0.0, shared)
    unhandled: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
    async with asyncio.timeout(10):
        await disconnected(usage, shared, Account("alice", AccountLimits(character_limit=100), 0))
        await asyncio.gather(*usage._reserving, return_exceptions=True)
    gc.collect()
    assert (shared.counts, unhandled) == ([], [])


async def test_usage_whose_reservation_the_state_refused_is_counted_later() -> None:
    shared = Shared(StateRefusedError("out of memory"))
    shared.answering.set()
    usage = AccountUsage(Calendar(1), lambda: 0.0, shared)
    account = Account("alice", AccountLimits(character_limit=100), 0)
    (await usage.reserve(account, 90)).settle(80)
    assert shared.counts == [Count(requests=1), Count(80)]
    with pytest.raises(QuotaError, match="80 of 100"):
        await usage.reserve(account, 21)


async def test_usage_whose_reservation_was_not_answered_counts_as_made() -> None:
    shared = Shared(StateError("no answer"))
    shared.answering.set()
    usage = AccountUsage(Calendar(1), lambda: 0.0, shared)
    account = Account("alice", AccountLimits(character_limit=100), 0)
    (await usage.reserve(account, 90)).settle(80)
    assert shared.counts == [Count(-10, taken=-10)]
    assert account.characters == 80


class Server:
    """Applies batches as the script does, and may lose answers."""

    def __init__(self) -> None:
        self.number = 0
        self.total = Count()
        self.batches: list[int] = []
        self.lost = 0
        """So many batches are applied without an answer."""
        self.now_s = 0.0
        self.answering = asyncio.Event()
        self.answering.set()
        self.outbox = Outbox(self._send, self.answering, lambda: self.now_s)

    async def _send(self, number: int, items: Items) -> None:
        self.batches.append(number)
        if number > self.number:
            self.number = number
            for count in items.values():
                self.total = Count(*map(sum, zip(self.total, count, strict=True)))
        if self.lost:
            self.lost -= 1
            raise StateError("no answer")


@pytest.fixture
async def server() -> Server:
    return Server()


@pytest.fixture
def account() -> Account:
    return Account("alice", AccountLimits(), 0)


async def test_usage_is_added_up_and_sent_in_batches(server: Server, account: Account) -> None:
    for _ in range(5):
        server.outbox.add(account, PERIOD, Count(3, 1))
    server.outbox.add(account, PERIOD, Count())
    assert server.outbox.unsent(account, PERIOD) == 15
    await server.outbox.drain(10)
    assert (server.total, server.batches) == (Count(15, 5), [1])
    assert server.outbox.unsent(account, PERIOD) == 0


async def test_a_batch_whose_answer_is_lost_is_sent_again_and_counted_once(
    server: Server, account: Account
) -> None:
    server.lost = 2
    server.outbox.add(account, PERIOD, Count(10, 1))
    assert not await server.outbox._try()
    server.outbox.add(account, PERIOD, Count(5, 1))
    server.now_s = 7
    assert server.outbox.age_s == 7
    await server.outbox.drain(10)
    assert server.total == Count(15, 2)
    assert server.batches == [1, 1, 1, 2]
    assert server.outbox.age_s == 0


async def test_a_batch_that_may_have_been_applied_long_ago_is_dropped(
    server: Server, account: Account, caplog: pytest.LogCaptureFixture
) -> None:
    server.lost = 1
    server.outbox.add(account, PERIOD, Count(10, 1))
    assert not await server.outbox._try()
    server.outbox.add(account, PERIOD, Count(5, 1))
    server.now_s = MAX_AGE_S + 1
    await server.outbox.drain(10)
    assert (server.total, server.batches) == (Count(15, 2), [1, 2])
    assert "may have been counted before" in caplog.text


async def test_an_end_gives_up_after_a_time(
    server: Server, account: Account, caplog: pytest.LogCaptureFixture
) -> None:
    server.answering.clear()
    server.outbox.add(account, PERIOD, Count(10, 1))
    await server.outbox.drain(0.01)
    assert "usage of 1 keys is lost" in caplog.text


async def test_a_flush_waits_for_earlier_usage_only(server: Server, account: Account) -> None:
    other = Account("bob", AccountLimits(), 0)
    async with asyncio.timeout(10):
        await server.outbox.flush(account, PERIOD)
        server.outbox.add(account, PERIOD, Count(1, 1))
        waiting = asyncio.create_task(server.outbox.flush(account, PERIOD))
        await asyncio.sleep(0)
        assert await server.outbox._try()
        server.outbox.add(other, PERIOD, Count(1, 1))
        await waiting
