"""What routers share stays right whatever becomes of their writes: nothing twice, nothing lost, nothing back."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dragoman_router.access.counts import Count
from dragoman_router.usage.shared import Shared
from dragoman_router.usage.standing import (
    FORGOTTEN_S,
    Standing,
    accepted,
    counted,
    heard,
    left,
    proposed,
)

PERIOD = "2026-11-01"
KEYS = ("alice", "bob")


def used(shared: Shared, period: str = PERIOD) -> Count:
    total = Count()
    for count in shared.periods.get(period, {}).values():
        total = total.plus(count)
    return total


@dataclass
class Api:
    """One object, replaced where its version is as it was read."""

    version: int = 0
    shared: Shared | None = None
    on_the_way: list[tuple[str | None, Shared]] = field(default_factory=list)
    """Writes whose client no longer waits; they may land, or not."""

    @property
    def at(self) -> str | None:
        return None if self.shared is None else str(self.version)

    def write(self, base: str | None, shared: Shared) -> str | None:
        if base != self.at:
            return None
        self.version, self.shared = self.version + 1, shared
        return self.at


class Routers(RuleBasedStateMachine):
    """Two to four routers that count, write, lose answers, are killed and forgotten."""

    @initialize(count=st.integers(2, 3))
    def start(self, count: int) -> None:
        self.api, self.now_s, self.runs = Api(), 0.0, 0
        self.routers = [self.fresh() for _ in range(count)]
        self.truth, self.killed, self.given_up = Count(), Count(), Count()
        """All that was counted; and of that, what may rightly be missing."""
        self.reported: dict[str, Count] = {}

    def fresh(self) -> Standing:
        self.runs += 1
        return Standing(f"run-{self.runs}")

    def news(self, at: int) -> Count:
        return used(Shared(self.routers[at].news))

    @rule(at=st.integers(0, 1), key=st.sampled_from(KEYS), characters=st.integers(1, 99))
    def count(self, at: int, key: str, characters: int) -> None:
        at %= len(self.routers)
        self.routers[at] = counted(self.routers[at], PERIOD, {key: Count(characters, 1)})
        self.truth = self.truth.plus(Count(characters, 1))

    @rule(at=st.integers(0, 1), answer=st.sampled_from(["told", "lost", "later", "never"]))
    def look(self, at: int, answer: str) -> None:
        at %= len(self.routers)
        self.now_s += 2
        standing = proposed(heard(self.routers[at], self.api.at, self.api.shared, self.now_s), self.now_s)
        attempt = standing.attempt
        assert attempt is not None
        if answer in ("told", "lost"):
            version = self.api.write(attempt.base, attempt.shared)
            assert version is not None, "nobody was between"
            if answer == "told":
                standing = accepted(standing, version)
        elif answer == "later":
            self.api.on_the_way.append((attempt.base, attempt.shared))
        self.routers[at] = standing

    @precondition(lambda self: self.api.on_the_way)
    @rule(which=st.integers(0, 9))
    def land(self, which: int) -> None:
        self.api.write(*self.api.on_the_way.pop(which % len(self.api.on_the_way)))

    @rule(at=st.integers(0, 1))
    def kill(self, at: int) -> None:
        at %= len(self.routers)
        self.killed = self.killed.plus(self.news(at))
        self.reported.pop(self.routers[at].run, None)
        self.routers[at] = self.fresh()

    @precondition(lambda self: self.api.shared is not None)
    @rule(at=st.integers(0, 1))
    def forget(self, at: int) -> None:
        """A router that was cut off for long loses its entry, to another; killed ones lose theirs too."""
        at %= len(self.routers)
        self.now_s += FORGOTTEN_S
        assert self.api.shared is not None
        for each, standing in enumerate(self.routers):
            if standing.attempt is not None and (each == at or standing.run not in self.api.shared.routers):
                # What it tried last may have landed and be forgotten: it is given up rather than counted twice.
                self.given_up = self.given_up.plus(self.news(each))
        live = {each.run for each in self.routers} - {self.routers[at].run}
        gone = frozenset(self.api.shared.routers.keys() - live)
        other = heard(self.fresh(), self.api.at, self.api.shared, self.now_s)
        attempt = proposed(other, self.now_s, gone).attempt
        assert attempt is not None
        self.api.write(attempt.base, attempt.shared)

    @invariant()
    def nothing_is_counted_twice(self) -> None:
        if self.api.shared is not None:
            assert used(self.api.shared).characters <= self.truth.characters
            assert used(self.api.shared).requests <= self.truth.requests

    @invariant()
    def no_router_reports_less_than_before(self) -> None:
        for standing in self.routers:
            now = used(Shared({PERIOD: standing.totals(PERIOD)}))
            before = self.reported.get(standing.run, Count())
            assert now.characters >= before.characters - self.given_up.characters
            assert now.characters <= self.truth.characters
            self.reported[standing.run] = now

    def teardown(self) -> None:
        """The API server is well again: all say the same, and only what may be missing is."""
        for _ in range(3):
            for at in range(len(self.routers)):
                self.look(at, "told")
        for at in range(len(self.routers)):
            self.look(at, "told")
            self.nothing_is_counted_twice()
        assert self.api.shared is not None
        total = used(self.api.shared)
        least = self.truth.less(self.killed).less(self.given_up)
        assert total.characters >= least.characters
        assert total.requests >= least.requests
        for at in range(len(self.routers)):
            standing = heard(self.routers[at], self.api.at, self.api.shared, self.now_s)
            assert standing.totals(PERIOD) == self.api.shared.periods.get(PERIOD, {})


TestRouters = Routers.TestCase
TestRouters.settings = settings(
    max_examples=100,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
)


def wrote(standing: Standing, api: Api) -> Standing:
    """One look at which everything goes well."""
    standing = proposed(heard(standing, api.at, api.shared, 3), 3)
    assert standing.attempt is not None
    version = api.write(standing.attempt.base, standing.attempt.shared)
    assert version is not None
    return accepted(standing, version)


def tried(standing: Standing, api: Api, now_s: float) -> Standing:
    """One look whose write is on its way."""
    standing = proposed(heard(standing, api.at, api.shared, now_s), now_s)
    assert standing.attempt is not None
    api.on_the_way.append((standing.attempt.base, standing.attempt.shared))
    return standing


def test_a_write_that_may_yet_land_is_sent_again_as_it_was() -> None:
    api = Api()
    one = tried(counted(Standing("one"), PERIOD, {"alice": Count(5, 1)}), api, 0)
    one = tried(counted(one, PERIOD, {"alice": Count(2, 1)}), api, 2)
    assert api.on_the_way[0] == api.on_the_way[1]
    api.write(*api.on_the_way[0])
    one = wrote(one, api)
    assert one.totals(PERIOD) == {"alice": Count(7, 2)}
    assert api.write(*api.on_the_way[1]) is None
    assert api.shared is not None
    assert used(api.shared) == Count(7, 2)


@pytest.mark.parametrize("landed", [True, False])
def test_a_write_whose_trace_others_took_away_is_rather_lost_than_counted_twice(landed: bool) -> None:
    api = Api()
    one = wrote(counted(Standing("one"), PERIOD, {"alice": Count(5, 1)}), api)
    one = tried(counted(one, PERIOD, {"alice": Count(2, 1)}), api, 10)
    if landed:
        api.write(*api.on_the_way[0])
    other = proposed(heard(Standing("other"), api.at, api.shared, 700), 700, frozenset({"one"})).attempt
    assert other is not None
    api.write(other.base, other.shared)
    one = counted(one, PERIOD, {"alice": Count(1, 1)})
    one = proposed(heard(one, api.at, api.shared, 700), 700)
    assert one.attempt is not None
    assert used(one.attempt.shared) == (Count(8, 3) if landed else Count(6, 2))


def test_a_write_that_somebody_forestalled_is_made_anew() -> None:
    api = Api()
    one = tried(counted(Standing("one"), PERIOD, {"alice": Count(5, 1)}), api, 0)
    wrote(counted(Standing("two"), PERIOD, {"alice": Count(7, 1)}), api)
    assert api.write(*api.on_the_way[0]) is None
    one = wrote(one, api)
    assert one.totals(PERIOD) == {"alice": Count(12, 2)}


def test_the_same_is_heard_twice_and_changes_nothing() -> None:
    api = Api()
    one = wrote(counted(Standing("one"), PERIOD, {"alice": Count(5, 1)}), api)
    once = heard(one, api.at, api.shared, 1)
    assert heard(once, api.at, api.shared, 2) == once
    assert once.totals(PERIOD) == {"alice": Count(5, 1)}
    assert once.news == {}


def test_the_order_of_routers_does_not_matter() -> None:
    ends = []
    for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2)):
        api = Api()
        routers = [
            counted(Standing(f"run-{at}"), PERIOD, {"alice": Count(10**at, 1), f"only-{at}": Count(1, 1)})
            for at in range(3)
        ]
        for at in order:
            routers[at] = wrote(routers[at], api)
        ends.append(api.shared)
    assert ends[0] == ends[1] == ends[2]
    assert ends[0] is not None
    assert ends[0].periods[PERIOD]["alice"] == Count(111, 3)


def test_an_object_that_was_deleted_is_written_anew_from_what_is_known() -> None:
    api = Api()
    one = wrote(counted(Standing("one"), PERIOD, {"alice": Count(5, 1)}), api)
    two = wrote(counted(Standing("two"), PERIOD, {"alice": Count(7, 1)}), api)
    one = heard(one, api.at, api.shared, 1)
    api.shared = None
    one, two = wrote(one, api), wrote(two, api)
    assert api.shared is not None
    assert used(api.shared) == Count(12, 2)


def test_a_figure_that_somebody_lowers_is_believed() -> None:
    api = Api()
    one = wrote(counted(Standing("one"), PERIOD, {"alice": Count(500, 9)}), api)
    api.version, api.shared = api.version + 1, Shared({PERIOD: {"alice": Count(0, 0)}}, {})
    one = counted(one, PERIOD, {"alice": Count(3, 1)})
    one = wrote(one, api)
    assert one.totals(PERIOD) == {"alice": Count(3, 1)}


def test_counts_of_the_period_before_arrive_after_its_end() -> None:
    api = Api()
    late = counted(Standing("late"), "2026-11-01", {"alice": Count(5, 1)})
    early = wrote(counted(Standing("early"), "2026-12-01", {"alice": Count(2, 1)}), api)
    wrote(late, api)
    early = heard(early, api.at, api.shared, 1)
    assert early.totals("2026-12-01") == {"alice": Count(2, 1)}
    assert early.totals("2026-11-01") == {"alice": Count(5, 1)}
    wrote(counted(early, "2027-01-01", {"alice": Count(1, 1)}), api)
    assert api.shared is not None
    assert list(api.shared.periods) == ["2026-12-01", "2027-01-01"], "two periods are kept"


def test_who_leaves_takes_its_entry_and_leaves_its_counts() -> None:
    api = Api()
    one = wrote(counted(Standing("one"), PERIOD, {"alice": Count(5, 1)}), api)
    assert left(one) == Shared({PERIOD: {"alice": Count(5, 1)}}, {})
