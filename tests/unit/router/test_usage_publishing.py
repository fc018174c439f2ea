"""Routers that share usage through an object in memory, whose API server has its days."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random

import pytest

from dragoman_router.access.limits import Account, Limits
from dragoman_router.errors import ClusterError, ClusterRefusedError, QuotaExceededError
from dragoman_router.fleet.fleet import Fleet
from dragoman_router.fleet.queue import QueueLimits
from dragoman_router.metrics import Metrics
from dragoman_router.sharing.publishing import Publisher, Terms


@dataclass
class Object:
    """What was read."""

    version: str
    data: Mapping[str, str]


@dataclass
class Store:
    """A ConfigMap in memory."""

    found: Object | None = None
    writes: int = 0
    fails: list[Exception] = field(default_factory=list)
    swallowed: int = 0
    """So many writes land, and their answer is lost."""

    async def read(self) -> Object | None:
        if self.fails:
            raise self.fails.pop(0)
        return self.found

    async def write(self, base: str | None, data: Mapping[str, str]) -> str | None:
        if base != (None if self.found is None else self.found.version):
            return None
        self.writes += 1
        self.found = Object(str(self.writes), data)
        if self.swallowed:
            self.swallowed -= 1
            raise ClusterError("timed out")
        return self.found.version


class Clock:
    """Seconds and a day, both set by the test."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.day = datetime(2026, 11, 20, tzinfo=UTC)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store() -> Store:
    return Store()


class Router:
    """What of a router counts."""

    def __init__(self, name: str, store: Store | None, clock: Clock, limits: Limits | None = None) -> None:
        self.account = Account(limits or Limits(), clock.now_s)
        fleet = Fleet(QueueLimits(1, 1, 1), Random(1))
        self.metrics = Metrics(fleet, dict)
        self.publisher = Publisher(
            {"alice": self.account},
            store,
            Terms(name, 2, 1),
            self.metrics,
            lambda: clock.now_s,
            lambda: clock.day,
        )
        self._clock = clock

    async def look(self) -> int:
        """Characters that it reports after another look."""
        self._clock.now_s += 1
        await self.publisher.look()
        return self.account.characters


async def test_all_routers_report_the_same_and_a_new_one_too(store: Store, clock: Clock) -> None:
    one, two = Router("one", store, clock), Router("two", store, clock)
    one.account.admit(10, 0)
    two.account.admit(7, 0)
    assert [await one.look(), await two.look(), await one.look()] == [10, 17, 17]
    assert await Router("one", store, clock).look() == 17, "a restart begins where it ended"


async def test_a_quota_holds_across_routers(store: Store, clock: Clock) -> None:
    limits = Limits(character_limit=100)
    one, two = Router("one", store, clock, limits), Router("two", store, clock, limits)
    one.account.admit(90, 0)
    await one.look()
    await two.look()
    with pytest.raises(QuotaExceededError, match="90 of 100"):
        two.account.admit(11, 0)
    two.account.admit(10, 0)


async def test_an_answer_that_was_lost_is_not_counted_twice(store: Store, clock: Clock) -> None:
    one = Router("one", store, clock)
    one.account.admit(10, 0)
    store.swallowed = 1
    with pytest.raises(ClusterError):
        await one.look()
    assert one.account.characters == 10
    one.account.admit(5, 0)
    assert await one.look() == 15
    assert await Router("two", store, clock).look() == 15


async def test_counting_goes_on_without_the_api_server(
    store: Store, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    one = Router("one", store, clock)
    await one.publisher.begin()
    store.fails = [ClusterError("connection refused")] * 3
    for _ in range(3):
        one.account.admit(10, 0)
        await one.publisher._tried()
    assert one.account.characters == 30
    assert len([each for each in caplog.records if "connection refused" in each.message]) == 1
    assert await Router("two", store, clock).look() == 0
    await one.publisher._tried()
    assert await Router("two", store, clock).look() == 30


async def test_a_start_goes_on_where_it_is_refused(store: Store, clock: Clock) -> None:
    store.fails = [ClusterError("try again"), ClusterRefusedError("403 Forbidden"), ClusterError("not asked")]
    await Router("one", store, clock).publisher.begin()
    assert len(store.fails) == 1


async def test_what_nobody_understands_is_left_alone(
    store: Store, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    store.found = Object("7", {"2026-11-01": "{oops"})
    one = Router("one", store, clock)
    one.account.admit(10, 0)
    await one.publisher.begin()
    assert store.found == Object("7", {"2026-11-01": "{oops"})
    assert "2026-11-01 is not understood" in caplog.text
    assert one.account.characters == 10


async def test_nothing_is_written_where_nothing_changed_but_a_beat(store: Store, clock: Clock) -> None:
    one = Router("one", store, clock)
    for _ in range(60):
        await one.look()
    assert store.writes == 10, "every third look of two seconds"


async def test_a_month_begins_at_nothing_and_the_last_one_is_kept(
    store: Store, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    one, two = Router("one", store, clock), Router("two", store, clock)
    one.account.admit(10, 0)
    await one.look()
    one.account.admit(5, 0)
    clock.day = datetime(2026, 12, 1, tzinfo=UTC)
    assert [await one.look(), await two.look()] == [0, 0]
    one.account.admit(1, 0)
    assert [await one.look(), await two.look()] == [1, 1]
    assert store.found is not None
    assert store.found.data["2026-11-01"] == '{"alice":[15,2]}'
    assert one.account.own.characters == 16
    assert "counts from 2026-12-01" in caplog.text


async def test_without_a_store_a_router_counts_for_itself(clock: Clock) -> None:
    one = Router("one", None, clock)
    one.account.admit(10, 0)
    assert await one.look() == 10
    clock.day = datetime(2026, 12, 1, tzinfo=UTC)
    assert await one.look() == 0
    await one.publisher.leave()


async def test_who_leaves_publishes_all_and_is_gone(store: Store, clock: Clock) -> None:
    one, two = Router("one", store, clock), Router("two", store, clock)
    await one.look()
    await two.look()
    await one.look()
    assert (one.publisher.live, two.publisher.live) == (2, 2)
    two.account.admit(4, 0)
    await two.publisher.leave()
    assert await one.look() == 4
    assert one.publisher.live == 1


async def test_a_killed_router_counts_for_a_while_and_is_forgotten(store: Store, clock: Clock) -> None:
    one, killed = Router("one", store, clock), Router("killed", store, clock)
    killed.account.admit(9, 0)
    await killed.look()
    await one.look()
    assert one.publisher.live == 2
    clock.now_s += 25
    await one.look()
    assert one.publisher.live == 1
    assert store.found is not None
    assert "killed." in store.found.data["routers"]
    clock.now_s += 600
    assert await one.look() == 9
    assert "killed." not in store.found.data["routers"]


async def test_rates_are_shared(store: Store, clock: Clock) -> None:
    limits = Limits(requests_per_s=10, burst_s=10)
    one, two = Router("one", store, clock, limits), Router("two", store, clock, limits)
    for _ in range(20):
        for router in (one, two):
            await router.look()
            for _ in range(20):
                if router.account._requests is not None and not router.account._requests.wait_s(clock.now_s):
                    router.account.admit(1, clock.now_s)
    admitted = one.account.own.requests + two.account.own.requests
    # Forty seconds, one second's worth at once, and two looks of two seconds at the beginning.
    assert 10 * 40 * 0.9 <= admitted <= 10 * 40 + 100 + 10 * 4


async def test_a_large_object_is_looked_at_less_often(store: Store, clock: Clock) -> None:
    names = ", ".join(f'"customer-{at:05}": [1, 1]' for at in range(10_000))
    store.found = Object("0", {"2026-11-01": f"{{{names}}}"})
    one = Router("one", store, clock)
    assert one.publisher.pause_s == 2
    await one.look()
    assert 2 * 3 < one.publisher.pause_s < 2 * 6
