"""Which fault comes when: a pure function of seed and duration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

Parameters = dict[str, Any]

EVERY_S = (10.0, 30.0)
"""Bounds of the time from one fault to the next."""
CALM_S = 25.0
"""Time without a new fault at the end: those that last end in it."""


@dataclass(frozen=True)
class Fault:
    """One fault.

    Args:
        at_s: When it begins, in seconds from the first request.
        kind: One of `KINDS`.
        parameters: What is drawn for it: JSON values.
    """

    at_s: float
    kind: str
    parameters: Parameters = field(default_factory=dict)


@dataclass(frozen=True)
class FaultKind:
    """One kind of fault.

    Args:
        weight: How often it comes among the others. Kinds that replace processes are rarer, so that there are some
            that live long enough to see whether they grow.
        draw: Its parameters.
    """

    weight: float
    draw: Callable[[Random], Parameters]


def _seconds(chance: Random, least: float, most: float) -> float:
    return round(chance.uniform(least, most), 1)


def _router(chance: Random) -> Parameters:
    # Mostly the one, so that the other lives long.
    return {"router": int(chance.random() < 0.75), "down_s": _seconds(chance, 0.5, 5.0)}


KINDS: Mapping[str, FaultKind] = {
    "pod SIGKILL": FaultKind(3, lambda chance: {"pick": round(chance.random(), 3)}),
    "pod SIGSTOP": FaultKind(2, lambda chance: {"pick": round(chance.random(), 3), "seconds": 20.0}),
    "router SIGKILL": FaultKind(1, _router),
    "router SIGTERM": FaultKind(1, _router),
    "operator SIGKILL": FaultKind(1, lambda chance: {"down_s": _seconds(chance, 0.5, 10.0)}),
    "API gone": FaultKind(3, lambda chance: {"seconds": _seconds(chance, 1.0, 20.0)}),
    "Prometheus gone": FaultKind(2, lambda chance: {"seconds": _seconds(chance, 5.0, 40.0)}),
    "rolling edit": FaultKind(1, lambda chance: {"pick": round(chance.random(), 3)}),
    "burst": FaultKind(
        2,
        lambda chance: {
            "rate_ratio": _seconds(chance, 0.5, 1.5),
            "seconds": _seconds(chance, 15.0, 40.0),
        },
    ),
    "slow readers": FaultKind(
        3,
        lambda chance: {
            "count": chance.randint(1, 6),
            "stall_s": _seconds(chance, 5.0, 45.0),
            "stream": chance.random() < 0.5,
        },
    ),
    "clients leave": FaultKind(
        3, lambda chance: {"count": chance.randint(5, 60), "after_s": _seconds(chance, 0.0, 0.8)}
    ),
}


def schedule(seed: int, duration_s: float, every_s: tuple[float, float] = EVERY_S) -> list[Fault]:
    """The faults of one run: each kind once, in random order, then kinds by their weights.

    Args:
        seed: Equal seeds give equal schedules; a longer one begins like a shorter one.
        duration_s: How long the load lasts.
        every_s: Bounds of the time from one fault to the next.
    """
    chance = Random(seed)
    first = list(KINDS)
    chance.shuffle(first)
    weights = [kind.weight for kind in KINDS.values()]
    faults: list[Fault] = []
    at_s = chance.uniform(*every_s)
    while at_s <= duration_s - CALM_S:
        kind = first.pop() if first else chance.choices(list(KINDS), weights)[0]
        faults.append(Fault(round(at_s, 1), kind, KINDS[kind].draw(chance)))
        at_s += chance.uniform(*every_s)
    return faults
