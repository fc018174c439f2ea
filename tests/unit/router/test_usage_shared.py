"""How shared counts are written, and periods."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_router.access.counts import Count, period_of
from dragoman_router.errors import SharedUsageError
from dragoman_router.usage.shared import Shared, joined, parsed, rendered, size_bytes

FIGURES = st.integers(0, 2**62)
COUNTS = st.dictionaries(st.text(max_size=20), st.builds(Count, FIGURES, FIGURES), max_size=5)


@given(COUNTS, COUNTS, st.dictionaries(st.text(max_size=20), FIGURES, max_size=3))
def test_what_is_written_is_read(
    before: dict[str, Count], now: dict[str, Count], routers: dict[str, int]
) -> None:
    shared = Shared({"2026-10-01": before, "2026-11-01": now}, routers)
    assert parsed(rendered(shared)) == shared


def test_people_can_read_it() -> None:
    shared = Shared({"2026-11-01": {"bob": Count(42, 1), "alice": Count(123, 7)}}, {"router-0.1f": 17})
    assert rendered(shared) == {
        "2026-11-01": '{"alice":[123,7],\n"bob":[42,1]}',
        "routers": '{"router-0.1f":17}',
    }


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ("2026-11-01", "{"),
        ("2026-11-01", '{"alice": 5}'),
        ("2026-11-01", '{"alice": [5, -1]}'),
        ("routers", '["router-0"]'),
    ],
)
def test_what_no_router_wrote_is_refused_by_name(entry: str, text: str) -> None:
    with pytest.raises(SharedUsageError, match=entry):
        parsed({entry: text})


def test_an_empty_object_is_nothing_used() -> None:
    assert parsed({}) == Shared()


def test_the_period_before_makes_room_then_new_keys_get_none() -> None:
    old = {f"key-{at}": Count(10**9, 10**6) for at in range(100)}
    shared = Shared({"2026-10-01": old, "2026-11-01": {"alice": Count(1, 1)}}, {"r": 1})
    most = size_bytes(rendered(Shared({"2026-11-01": {"alice": Count(1, 1)}}, {"r": 1}))) + 1000
    more = {"2026-11-01": {"alice": Count(4, 1), **{f"new-{at:03}": Count(1, 1) for at in range(500)}}}
    whole, brought = joined(shared, more, {"r": 2}, most)
    assert size_bytes(rendered(whole)) <= most
    assert list(whole.periods) == ["2026-11-01"]
    assert whole.periods["2026-11-01"]["alice"] == Count(5, 2), "who has a line goes on"
    assert 5 < len(brought["2026-11-01"]) < 500
    assert whole.periods["2026-11-01"].keys() == brought["2026-11-01"].keys()


def test_ten_thousand_keys_of_two_months_fit() -> None:
    counts = {f"customer-{at:05}": Count(10**9 + at, 10**6 + at) for at in range(10_000)}
    shared = Shared({"2026-10-01": counts}, {})
    whole, brought = joined(shared, {"2026-11-01": counts}, {}, 900_000)
    assert brought == {"2026-11-01": counts}
    assert len(whole.periods) == 2


@pytest.mark.parametrize(
    ("today", "first_day", "period"),
    [
        (date(2026, 11, 1), 1, "2026-11-01"),
        (date(2026, 11, 30), 1, "2026-11-01"),
        (date(2026, 11, 14), 15, "2026-10-15"),
        (date(2026, 11, 15), 15, "2026-11-15"),
        (date(2027, 1, 3), 28, "2026-12-28"),
    ],
)
def test_periods_begin_on_a_day_of_the_month(today: date, first_day: int, period: str) -> None:
    assert period_of(today, first_day) == period
