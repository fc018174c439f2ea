"""The mirror of the API's objects: what is followed, and own writes."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from tests.support.fake_cluster import FakeCluster

from dragoman_kube.client import KubeClient
from dragoman_kube.kinds import DEPLOYMENT, NODE, POD, REPLICA_SET, Kind
from dragoman_kube.mirror import Mirror
from dragoman_kube.objects import Key, owner_reference, uid_of


def make(kind: Kind = POD, name: str = "a", **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {"name": name, "namespace": "default", **metadata},
    }


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster(make())


@pytest.fixture
async def mirror(cluster: FakeCluster) -> AsyncIterator[Mirror]:
    made = Mirror(cast(KubeClient, cluster))
    yield made
    await made.aclose()


async def synced(mirror: Mirror) -> None:
    async with asyncio.timeout(30):
        await mirror.synced()


async def test_a_kind_that_was_removed_does_not_delay_the_others(
    cluster: FakeCluster, mirror: Mirror
) -> None:
    gone = Kind("example.org/v1", "Widget", "widgets")
    cluster.unserved.add(gone)
    mirror.follow(POD)
    mirror.follow(gone)
    await synced(mirror)
    assert mirror.list(gone) == []


async def test_a_kind_is_mirrored_until_its_last_follower_is_removed(mirror: Mirror) -> None:
    def listener(_before: object, _after: object) -> None:
        """One of two followers."""

    mirror.follow(POD)
    mirror.follow(POD, listener)
    await synced(mirror)
    mirror.unfollow(POD, listener)
    assert len(mirror.list(POD)) == 1
    mirror.follow(POD, listener)
    mirror.follow(NODE, listener)
    mirror.unfollow(NODE, listener)
    assert set(mirror._followed) == {POD}


async def test_own_writes_are_visible_at_once(cluster: FakeCluster, mirror: Mirror) -> None:
    mirror.follow(POD)
    await synced(mirror)
    cluster.stalled.add(POD)
    key = Key("default", "b")
    created = await mirror.create(POD, make(name="b", finalizers=["example.org/keep"]))
    assert mirror.get(POD, key) == created
    await mirror.delete(POD, created)
    deleting = mirror.get(POD, key) or {}
    assert deleting["metadata"]["deletionTimestamp"]
    cluster.remove(POD, key)
    await mirror.delete(POD, deleting)
    assert mirror.get(POD, key) is None


async def test_only_the_given_namespaces_are_mirrored(cluster: FakeCluster) -> None:
    cluster.put(make(name="b", namespace="second"))
    cluster.put(make(name="c", namespace="third"))
    mirror = Mirror(cast(KubeClient, cluster), ["default", "second"])
    mirror.follow(POD)
    await synced(mirror)
    assert [found["metadata"]["name"] for found in mirror.list(POD)] == ["a", "b"]
    assert [found["metadata"]["name"] for found in mirror.list(POD, "second")] == ["b"]
    await mirror.aclose()


async def test_owners_are_followed_from_a_deployment_to_its_pods(
    cluster: FakeCluster, mirror: Mirror
) -> None:
    deployment = cluster.put(make(DEPLOYMENT))
    for owner, name in ((deployment, "rs"), (make(DEPLOYMENT, uid="other"), "theirs")):
        replica_set = cluster.put(make(REPLICA_SET, name, ownerReferences=[owner_reference(owner)]))
        cluster.put(make(POD, f"{name}-pod", ownerReferences=[owner_reference(replica_set)]))
    for kind in (POD, REPLICA_SET, DEPLOYMENT):
        mirror.follow(kind)
    await synced(mirror)
    replica_sets = mirror.controlled(REPLICA_SET, "default", [uid_of(deployment)])
    pods = mirror.controlled(POD, "default", map(uid_of, replica_sets))
    assert [found["metadata"]["name"] for found in (*replica_sets, *pods)] == ["rs", "rs-pod"]


async def test_listener_that_fails_unexpectedly_ends_the_mirror(mirror: Mirror) -> None:
    def fails(_before: object, _after: object) -> None:
        raise RuntimeError("a defect")

    mirror.follow(POD, fails)
    async with asyncio.timeout(30):
        with pytest.raises(RuntimeError, match="a defect"):
            await mirror.run()
