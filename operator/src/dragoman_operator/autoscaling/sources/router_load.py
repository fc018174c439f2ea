"""What all routers together say of one TranslationDeployment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dragoman_contract.load import RouterLoad


@dataclass(frozen=True, slots=True)
class TotalLoad:
    """Sums over the routers.

    Attributes:
        held: Requests that wait in the routers that were heard of.
        oldest_held_s: For how long the first of them has waited.
        in_flight: Requests passed on and not answered.
        routers: Routers that were heard of.
        silent: Routers that were not: what they hold is not known.
    """

    held: int = 0
    oldest_held_s: float = 0.0
    in_flight: int = 0
    routers: int = 0
    silent: int = 0


def total_load(loads: Iterable[RouterLoad | None], name: str) -> TotalLoad:
    """Add up what the routers say.

    Args:
        loads: One for each router; None for one that is silent.
        name: The deployment as `namespace/name`.
    """
    held = in_flight = routers = silent = 0
    oldest_s = 0.0
    for load in loads:
        if load is None:
            silent += 1
            continue
        routers += 1
        if own := load.deployments.get(name):
            held, in_flight = held + own.held, in_flight + own.in_flight
            oldest_s = max(oldest_s, own.oldest_held_s)
    return TotalLoad(held, oldest_s, in_flight, routers, silent)
