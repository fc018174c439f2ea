"""TranslationDeployments and EndpointSlices of a cluster become the fleet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from random import Random
from typing import Any, cast

import pytest
from tests.support.fake_cluster import FakeCluster

from dragoman_contract.kubernetes import LABEL_DEPLOYMENT
from dragoman_kube.client import KubeClient
from dragoman_kube.kinds import ENDPOINT_SLICE
from dragoman_kube.mirror import Mirror
from dragoman_kube.objects import Key
from dragoman_router.fleet.cluster import TRANSLATION_DEPLOYMENT, Deployments, Replicas
from dragoman_router.fleet.fleet import Fleet
from dragoman_router.fleet.queue import QueueLimits
from dragoman_router.routing.deployments import Replica


def deployment(name: str = "demo", **spec: Any) -> dict[str, Any]:
    return {"kind": "TranslationDeployment", "metadata": {"namespace": "n", "name": name}, "spec": spec}


def endpoints(name: str, *addresses: str, owner: str = "demo") -> dict[str, Any]:
    """A slice with these addresses."""
    return {
        "kind": "EndpointSlice",
        "metadata": {"namespace": "n", "name": name, "labels": {LABEL_DEPLOYMENT: owner}},
        "endpoints": [{"addresses": [address], "targetRef": {"uid": address}} for address in addresses],
    }


class Followed:
    """A fleet that follows a cluster."""

    def __init__(self) -> None:
        self.cluster = FakeCluster(deployment(), endpoints("a", "10.0.0.1", "10.0.0.2"))
        self.fleet = Fleet(QueueLimits(10, 10, 10), Random(1))
        self.mirror = Mirror(cast(KubeClient, self.cluster), resync_s=0.01)
        self.mirror.follow(TRANSLATION_DEPLOYMENT, Deployments(self.fleet).changed)
        self.mirror.follow(ENDPOINT_SLICE, Replicas(self.fleet).changed, labels=LABEL_DEPLOYMENT)

    def hosts(self) -> list[str]:
        """The hosts of the replicas that requests may be sent to."""
        return sorted(each.replica.host for each in self.fleet.backends["n/demo"].by_tag.values())


@pytest.fixture
async def followed() -> AsyncIterator[Followed]:
    made = Followed()
    async with asyncio.timeout(30):
        await made.mirror.synced()
    yield made
    await made.mirror.aclose()


async def test_events_change_the_fleet(followed: Followed) -> None:
    assert followed.hosts() == ["10.0.0.1", "10.0.0.2"]
    followed.cluster.put(deployment("late"))
    followed.cluster.put(endpoints("b", "10.0.0.3"))
    followed.cluster.remove(ENDPOINT_SLICE, Key("n", "a"))
    await followed.cluster.settle()
    assert set(followed.fleet.backends) == {"n/demo", "n/late"}
    assert followed.hosts() == ["10.0.0.3"]
    followed.cluster.remove(TRANSLATION_DEPLOYMENT, Key("n", "demo"))
    await followed.cluster.settle()
    assert set(followed.fleet.backends) == {"n/late"}


async def test_deployment_that_cannot_be_read_keeps_what_was_known(followed: Followed) -> None:
    known = followed.fleet.backends["n/demo"].deployment
    followed.cluster.put(deployment(languages=[{"source": "??"}]))
    await followed.cluster.settle()
    assert followed.fleet.backends["n/demo"].deployment == known


async def test_replicas_that_another_slice_lists_after_an_outage_are_not_removed_in_between(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replica that is removed loses its connections and what is known of its health."""
    seen: list[int] = []
    put = followed.fleet.set_replicas

    def counted(key: str, replicas: list[Replica]) -> None:
        seen.append(len(replicas))
        put(key, replicas)

    monkeypatch.setattr(followed.fleet, "set_replicas", counted)
    followed.cluster.put(endpoints("b", "10.0.0.1", "10.0.0.2"), reported=False)
    followed.cluster.remove(ENDPOINT_SLICE, Key("n", "a"), reported=False)
    async with asyncio.timeout(30):
        while len(seen) < 2:
            followed.cluster.end_watches()  # What the watches miss is listed after `resync_s`.
            await asyncio.sleep(0.005)
    assert followed.hosts() == ["10.0.0.1", "10.0.0.2"]
    assert min(seen) == 2
