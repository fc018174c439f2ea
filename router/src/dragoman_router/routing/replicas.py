"""Chooses a replica of a deployment, and one of several deployments.

Randomness is passed in as numbers in [0, 1), so that the same input gives the same result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

FEW = 16
"""Up to this number all replicas are compared; of more, two random ones (power of two choices), which is nearly as
even at a constant cost. Mitzenmacher 2001, https://doi.org/10.1109/71.963420"""

RAMP_S = 10.0
"""A replica that became ready reaches its full share in this time."""
RAMP_FROM = 0.2
WORST_WEIGHT = 0.05


class Choosable(Protocol):
    """The fields that a choice compares."""

    in_flight: int
    limit: float
    weight: float


def pressure(replica: Choosable) -> float:
    """Requests in flight per weight with one more."""
    return (replica.in_flight + 1) / replica.weight


def choose(replicas: Sequence[Choosable], max_in_flight: int, first: float, second: float) -> int | None:
    """The replica that gets the next request.

    Args:
        replicas: Those that may get one.
        max_in_flight: Requests that a replica may have in flight.
        first: Random number in [0, 1): where the comparison begins, so that equals take turns; or the first of two.
        second: Random number in [0, 1): the second of two.

    Returns:
        Its index; None where there is none, or all are full.
    """
    count = len(replicas)
    if not count:
        return None
    start = int(first * count)
    if count > FEW:
        other = (start + 1 + int(second * (count - 1))) % count
        better = min(start, other, key=lambda at: pressure(replicas[at]))
        if replicas[better].in_flight < min(max_in_flight, replicas[better].limit):
            return better
    best, lowest = None, float("inf")
    for at in (*range(start, count), *range(start)):
        replica = replicas[at]
        in_flight = replica.in_flight
        if in_flight < max_in_flight and in_flight < replica.limit:
            found = (in_flight + 1) / replica.weight
            if found < lowest:
                best, lowest = at, found
    return best


def weight(ready_for_s: float, error_ratio: float) -> float:
    """A replica's share against a healthy one that has been ready for long: 1 at most."""
    ramp = min(1.0, RAMP_FROM + (1 - RAMP_FROM) * max(0.0, ready_for_s) / RAMP_S)
    return max(WORST_WEIGHT, ramp * (1 - error_ratio) ** 2)


def split(weights: Sequence[int], open_: Sequence[bool], chance: float) -> int | None:
    """Which of several deployments of the same pair gets a request.

    Args:
        weights: Their shares; 0 gets nothing.
        open_: Whether each has an available replica; one without gives its share to the others while any of them has.
        chance: Random number in [0, 1).

    Returns:
        The index; None where all weights are 0.
    """
    shares = [share if able else 0 for share, able in zip(weights, open_, strict=True)]
    if not any(shares):
        shares = list(weights)
    total = sum(shares)
    if total <= 0:
        return None
    point = chance * total
    for at, share in enumerate(shares):
        point -= share
        if point < 0:
            return at
    return max(at for at, share in enumerate(shares) if share)
