"""Rates of several routers together."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman_router.access.counts import Count
from dragoman_router.access.limits import Account, Limits
from dragoman_router.errors import RateLimitedError
from dragoman_router.usage.shares import IDLE, Pace, Sighting, refill, sighted, silent, smoothed

LOOK_S = 2.0
RATE = 20.0
BURST_S = 5.0


class Simulated:
    """Routers with one account each, who tell each other what they let through every two seconds."""

    def __init__(self, routers: int) -> None:
        limits = Limits(requests_per_s=RATE, burst_s=BURST_S)
        self.accounts = [Account(limits, 0) for _ in range(routers)]
        self.admitted = [0] * routers
        self._drain_rates = [IDLE] * routers
        self._published = [0] * routers
        self._known = [0] * routers
        for account in self.accounts:
            account.share(IDLE, routers, 0)

    def run(self, seconds: float, asks: Callable[[int, float], int], from_s: float = 0) -> int:
        """Requests let through while each router is asked `asks(router, at_s)` times each tenth of a second."""
        before = sum(self.admitted)
        for step in range(int(seconds * 10)):
            now_s = from_s + step / 10
            for at, account in enumerate(self.accounts):
                for _ in range(asks(at, now_s)):
                    try:
                        account.admit(1, now_s)
                    except RateLimitedError:
                        break
                    self.admitted[at] += 1
                if step % 20 == (at * 7) % 20:
                    self._look(at, now_s)
        return sum(self.admitted) - before

    def _look(self, at: int, now_s: float) -> None:
        self._published[at] = self.admitted[at]
        others = sum(self._published) - self._published[at]
        pace = Pace(0, (others - self._known[at]) / LOOK_S)
        self._known[at] = others
        self._drain_rates[at] = smoothed(self._drain_rates[at], pace)
        self.accounts[at].share(self._drain_rates[at], len(self.accounts), now_s)


@pytest.mark.parametrize("routers", [1, 2, 3, 8])
def test_a_rate_holds_in_total_where_every_router_is_asked(routers: int) -> None:
    world = Simulated(routers)
    beginning = world.run(10, lambda at, now_s: 50)
    after = world.run(100, lambda at, now_s: 50, from_s=10)
    assert after == pytest.approx(RATE * 100, rel=0.05)
    assert beginning <= RATE * BURST_S + RATE * 10 + (routers - 1) * RATE * 2 * LOOK_S


@pytest.mark.parametrize("routers", [2, 8])
def test_a_client_of_one_router_gets_the_whole_rate(routers: int) -> None:
    world = Simulated(routers)
    assert world.run(100, lambda at, now_s: 50 if at == 0 else 0) >= 0.98 * RATE * 100


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 5),
    st.lists(st.lists(st.integers(0, 5), min_size=5, max_size=5), min_size=1, max_size=6),
)
def test_changes_of_who_asks_cost_two_looks_each(routers: int, phases: list[list[int]]) -> None:
    world = Simulated(routers)
    total = 0
    for number, asked in enumerate(phases):
        total += world.run(20, lambda at, now_s, asked=asked: asked[at], from_s=20.0 * number)
    excess = (routers - 1) * RATE * 2 * LOOK_S * len(phases)
    assert total <= RATE * BURST_S + RATE * 20 * len(phases) + excess


def test_nobody_is_starved() -> None:
    world = Simulated(2)
    world.run(20, lambda at, now_s: 50 if at == 0 else 0)
    before = world.admitted[1]
    world.run(20, lambda at, now_s: 50, from_s=20)
    assert world.admitted[1] - before >= 0.9 * RATE / 2 * 20


@given(st.floats(0.1, 1e6), st.floats(0, 1e6), st.integers(1, 50))
def test_a_part_is_between_equal_and_all(rate: float, others_per_s: float, live: int) -> None:
    assert rate / live <= refill(rate, others_per_s, live) <= rate


def test_who_is_silent_is_told_by_our_own_clock() -> None:
    seen = sighted({}, {"me": 1, "other": 7}, 100)
    seen = sighted(seen, {"me": 2, "other": 7, "new": 1}, 110)
    assert seen == {"me": Sighting(2, 110), "other": Sighting(7, 100), "new": Sighting(1, 110)}
    assert silent(seen, "me", 115, 15) == {"other"}
    assert silent(seen, "me", 1000, 15) == {"other", "new"}, "never oneself"
    assert sighted(seen, {"me": 3}, 120).keys() == {"me"}


def test_an_account_collects_and_is_told() -> None:
    account = Account(Limits(character_limit=100), 0)
    account.admit(10, 0)
    assert account.collect() == Count(10, 1)
    account.admit(5, 0)
    assert account.collect() == Count(5, 1)
    account.tell(Count(95, 20))
    assert (account.characters, account.requests) == (95, 20)
    assert account.collect() == Count()
    account.admit(5, 0)
    assert account.own == Count(20, 3)
