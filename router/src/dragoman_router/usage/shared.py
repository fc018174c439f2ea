"""What routers share, and how it is written: one entry a period, and one with the routers themselves.

    2026-11-01: |-
      {"alice":[123456,789],
      "bob":[42,1]}
    routers: '{"router-0.9f3c2a11":17}'

A key's figures are its characters and its requests; a router's is how often it has written. Only names are there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, field

import msgspec

from dragoman_router.access.counts import Count, Counts, Figure, Periods, added, newest
from dragoman_router.errors import SharedUsageError

MOST_BYTES = 900_000
"""A ConfigMap may have 1 MiB (kubernetes/pkg/apis/core/validation); the rest is for figures that grow."""
ROUTERS = "routers"
LINE_BYTES = 48
"""A key's line without its name: two figures of 19 digits, and what is around them."""

_PERIOD = re.compile(r"\d{4}-\d\d-\d\d")
_COUNTS = msgspec.json.Decoder(dict[str, Count])
_NUMBERS = msgspec.json.Decoder(dict[str, Figure])
_ENCODER = msgspec.json.Encoder(order="sorted")


@dataclass(frozen=True, slots=True)
class Shared:
    """What all routers have published.

    Args:
        periods: What keys have used.
        routers: How often each run of a router has written.
    """

    periods: Periods = field(default_factory=dict)
    routers: Mapping[str, int] = field(default_factory=dict)


def parsed(data: Mapping[str, str]) -> Shared:
    """What the entries say.

    Raises:
        SharedUsageError: They cannot be understood.
    """
    try:
        entry, text = ROUTERS, data.get(ROUTERS, "{}")
        routers = _NUMBERS.decode(text)
        periods: dict[str, Counts] = {}
        for entry, text in data.items():
            if _PERIOD.fullmatch(entry):
                periods[entry] = _COUNTS.decode(text)
    except msgspec.MsgspecError as error:
        raise SharedUsageError(f"entry {entry} is not understood: {error}") from None
    return Shared(newest(periods), routers)


def rendered(shared: Shared) -> dict[str, str]:
    """The entries, a key a line."""
    # Inside a name the quotation mark would follow a backslash.
    entries = {
        period: _ENCODER.encode(counts).replace(b'],"', b'],\n"').decode()
        for period, counts in shared.periods.items()
    }
    return {**entries, ROUTERS: _ENCODER.encode(shared.routers).replace(b',"', b',\n"').decode()}


def size_bytes(data: Mapping[str, str]) -> int:
    """Of all entries, as the API server counts a ConfigMap."""
    return sum(len(entry) + len(text.encode()) for entry, text in data.items())


def joined(
    shared: Shared, more: Periods, routers: Mapping[str, int], most_bytes: int
) -> tuple[Shared, Periods]:
    """What is shared, with more added, so far as there is room.

    The period before goes first. Where that is not enough, keys that have no line yet get none.

    Args:
        shared: What is there.
        more: To add.
        routers: Who is there now.
        most_bytes: That it may have.

    Returns:
        The whole, and how much of `more` is in it.
    """
    whole = Shared(newest(added(shared.periods, more)), routers)
    if not whole.periods or size_bytes(rendered(whole)) <= most_bytes:
        return whole, more
    period = max(whole.periods)
    known = {period: shared.periods.get(period, {})}
    room = most_bytes - size_bytes(rendered(Shared(known, routers)))
    fitting: dict[str, Count] = {}
    for name, count in sorted(more.get(period, {}).items()):
        cost = 0 if name in known[period] else len(msgspec.json.encode(name)) + LINE_BYTES
        if cost <= room:
            room -= cost
            fitting[name] = count
    brought = {period: fitting} if fitting else {}
    return Shared(added(known, brought), routers), brought


def present(routers: Mapping[str, int], gone: Set[str]) -> dict[str, int]:
    """The routers without those that are gone."""
    return {run: number for run, number in routers.items() if run not in gone}
