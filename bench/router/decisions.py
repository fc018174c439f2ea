"""How long a routing decision takes with 10,000 replicas in 500 deployments, and how soon a change is in effect.

python bench/router/decisions.py
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from random import Random
from typing import Any

from dragoman_contract.languages import Languages
from dragoman_router.fleet.cluster import Replicas
from dragoman_router.fleet.fleet import Fleet
from dragoman_router.fleet.queue import QueueLimits
from dragoman_router.routing.deployments import Deployment

DEPLOYMENTS, REPLICAS = 500, 20
TAGS = ("en", "de", "fr", "es", "it", "pt", "nl", "pl", "cs", "ne")


def slice_of(at: int, leaving: str = "") -> dict[str, Any]:
    """The EndpointSlice of one deployment, as the API server sends it."""
    return {
        "metadata": {"namespace": "n", "name": f"d{at}-x", "labels": {"dragoman.io/deployment": f"d{at}"}},
        "ports": [{"name": "http", "port": 8000}],
        "endpoints": [
            {
                "addresses": [f"10.{at // 256}.{at % 256}.{each}"],
                "conditions": {"ready": str(each) != leaving, "terminating": str(each) == leaving},
                "targetRef": {"kind": "Pod", "name": f"d{at}-{each}", "uid": f"u{at}-{each}"},
            }
            for each in range(REPLICAS)
        ],
    }


def times_us(action: Callable[[int], object], count: int) -> list[float]:
    """Microseconds of CPU of each call."""
    found = []
    for at in range(count):
        began_ns = time.process_time_ns()
        action(at)
        found.append((time.process_time_ns() - began_ns) / 1000)
    return found


def report(name: str, times: list[float]) -> None:
    """One line of figures."""
    ordered = sorted(times)
    print(
        f"{name:46} median {statistics.median(ordered):8.1f} µs   p99 {ordered[len(ordered) * 99 // 100]:8.1f} µs   "
        f"max {ordered[-1]:8.1f} µs"
    )


async def main() -> None:
    """Build the fleet, decide, change."""
    chance = Random(1)
    fleet = Fleet(QueueLimits(), chance)
    sink = Replicas(fleet)
    for at in range(DEPLOYMENTS):
        languages = tuple(
            Languages(
                source=source, targets=tuple(f"{target}-x{at % 50}" for target in TAGS if target != source)
            )
            for source in TAGS
        )
        fleet.put(Deployment(f"n/d{at}", languages))
    sink.replace([slice_of(at) for at in range(DEPLOYMENTS)], "1")
    print(
        f"{sum(len(backend.endpoints) for backend in fleet.backends.values())} replicas, {DEPLOYMENTS} deployments"
    )
    picked: list[Any] = []

    def decide(at: int) -> None:
        match = fleet.catalogue.find("en", (f"de-x{at % 50}",))
        backend = fleet.backends[match.keys[at % len(match.keys)]]
        picked.append((backend, backend.pick()))

    def decide_anew(at: int) -> None:
        fleet.catalogue.find(f"fr-r{at}", (f"de-x{at % 50}",))

    def change(at: int) -> None:
        sink.put(slice_of(at % DEPLOYMENTS, leaving="3"))

    report("decision, pair seen before", times_us(decide, 20_000))
    for backend, endpoint in picked:
        backend.release(endpoint)
    report("finding a pair never seen before", times_us(decide_anew, 3_000))
    report("an EndpointSlice's change, until it decides", times_us(change, 2_000))
    assert all(backend.open_count == REPLICAS - 1 for backend in fleet.backends.values())


if __name__ == "__main__":
    asyncio.run(main())
