"""Which pods may go is written, and seen, before some are taken away."""

import asyncio
from typing import Any

import pytest
from tests.support.deployments import running_pod

from dragoman_kube.objects import Key
from dragoman_operator.autoscaling.writes import DELETION_COST, MAX_COST, DeletionCosts

SEEN_S = 0.1


class Kube:
    """An API server that others see late."""

    def __init__(self) -> None:
        self.costs: dict[str, str] = {}
        self.seen: dict[str, str] = {}

    async def merge(self, _kind: object, key: Key, patch: dict[str, Any]) -> None:
        self.costs[key.name] = patch["metadata"]["annotations"][DELETION_COST]
        asyncio.get_running_loop().call_later(SEEN_S / 2, self.seen.update, dict(self.costs))


def pod(name: str, annotations: dict[str, str]) -> dict[str, Any]:
    """A pod that starts: it is not scraped."""
    return running_pod(name, False, metadata={"annotations": annotations}, phase="Pending")


@pytest.fixture
def costs() -> tuple[Kube, DeletionCosts]:
    kube = Kube()
    return kube, DeletionCosts(kube, None, 1.0, SEEN_S)  # type: ignore[arg-type]


async def test_costs_are_observed_before_the_scale_down(costs: tuple[Kube, DeletionCosts]) -> None:
    kube, set_costs = costs
    await set_costs([pod("a", {}), pod("b", {})])
    assert kube.seen == {"a": str(MAX_COST), "b": str(MAX_COST)}


async def test_what_is_written_already_is_not_waited_for(costs: tuple[Kube, DeletionCosts]) -> None:
    kube, set_costs = costs
    async with asyncio.timeout(SEEN_S / 2):
        await set_costs([pod("a", {DELETION_COST: str(MAX_COST)})])
    assert kube.costs == {}
