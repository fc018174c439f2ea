"""Counts by key and period, and their sums and differences."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, NamedTuple

from msgspec import Meta

Figure = Annotated[int, Meta(ge=0)]
"""Not negative where it is read; differences may be."""

KEPT_PERIODS = 2
"""The one that runs and the one before it, for bills and for routers whose clocks are behind."""


class Count(NamedTuple):
    """What was used.

    Args:
        characters: Of texts, times their targets.
        requests: That were let through.
    """

    characters: Figure = 0
    requests: Figure = 0

    def plus(self, other: Count) -> Count:
        """Both together."""
        return Count(self.characters + other.characters, self.requests + other.requests)

    def less(self, other: Count) -> Count:
        """What this one has more."""
        return Count(self.characters - other.characters, self.requests - other.requests)


NOTHING = Count()
Counts = Mapping[str, Count]
"""By the name of the key."""
Periods = Mapping[str, Counts]
"""By the day on which the period began, such as `2026-11-01`."""


def period_of(today: date, first_day: int) -> str:
    """The period of a day: the date of its own first day.

    Args:
        today: In UTC.
        first_day: Of the month on which periods begin, 1 to 28.
    """
    if today.day >= first_day:
        return today.replace(day=first_day).isoformat()
    year, month = (today.year, today.month - 1) if today.month > 1 else (today.year - 1, 12)
    return date(year, month, first_day).isoformat()


def added(one: Periods, other: Periods) -> Periods:
    """Both together."""
    found = dict(one)
    for period, counts in other.items():
        into = dict(found.get(period, {}))
        for name, count in counts.items():
            into[name] = into.get(name, NOTHING).plus(count)
        found[period] = into
    return found


def beyond(whole: Periods, part: Periods) -> Periods:
    """What the whole has that the part has not; keys without difference are left out."""
    found: dict[str, Counts] = {}
    for period, counts in whole.items():
        known = part.get(period, {})
        more = {
            name: count.less(known.get(name, NOTHING))
            for name, count in counts.items()
            if count != known.get(name, NOTHING)
        }
        if more:
            found[period] = more
    return found


def newest(periods: Periods, kept: int = KEPT_PERIODS) -> Periods:
    """The periods that began last."""
    return {period: periods[period] for period in sorted(periods)[-kept:]}
