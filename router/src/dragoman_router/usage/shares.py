"""What one router may let through of a rate that holds for all of them together.

Each refills at the rate, less what the others used lately, and never below its equal part. So a client that keeps one
connection, and with it one router, gets the whole rate; where all routers are asked, all come down to equal parts.
After: Raghavan et al., Cloud Control with Distributed Rate Limiting, SIGCOMM 2007, whose global token bucket has no
such floor, and lets the first router keep everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

WEIGHT = 0.5
"""Of the newest look in what the others use: they write in lumps, and one look may see none of theirs or two."""
SLOWEST = 0.001
"""Less than this a second is nothing."""


class Pace(NamedTuple):
    """How fast something is used: characters and requests a second."""

    characters: float = 0.0
    requests: float = 0.0


IDLE = Pace()


class Sighting(NamedTuple):
    """When a router was last seen to have written: its number, and monotonic seconds of our own."""

    number: int
    at_s: float


def refill(rate: float, others_per_s: float, live: int) -> float:
    """Tokens a second for one of the routers.

    Args:
        rate: Of all routers together.
        others_per_s: What the others used lately.
        live: Routers, at least 1.
    """
    return max(rate - others_per_s, rate / live)


def smoothed(before: Pace, now: Pace) -> Pace:
    """A pace, from the one before and what was seen since."""
    if before == now == IDLE:
        return IDLE
    paces = (old + WEIGHT * (new - old) for old, new in zip(before, now, strict=True))
    return Pace(*(pace if pace >= SLOWEST else 0.0 for pace in paces))


def sighted(before: Mapping[str, Sighting], routers: Mapping[str, int], now_s: float) -> dict[str, Sighting]:
    """Who is there, and since when each has been silent; one that was not known counts from now."""
    return {
        run: known
        if (known := before.get(run)) is not None and known.number == number
        else Sighting(number, now_s)
        for run, number in routers.items()
    }


def silent(sightings: Mapping[str, Sighting], run: str, now_s: float, for_s: float) -> frozenset[str]:
    """Runs of other routers that have written nothing for so long."""
    return frozenset(each for each, seen in sightings.items() if each != run and now_s - seen.at_s >= for_s)
