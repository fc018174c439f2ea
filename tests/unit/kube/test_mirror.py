"""The mirror of the API's objects: what is followed, and own writes."""

import asyncio

from dragoman_kube.client import Listing
from dragoman_kube.errors import NotFoundError
from dragoman_kube.kinds import NODE, POD, Kind
from dragoman_kube.mirror import Mirror
from dragoman_kube.objects import Key


def make(name="a", version=1):
    return {"metadata": {"name": name, "namespace": "default", "uid": name, "resourceVersion": str(version)}}


def mirror_of(client):
    return Mirror(client)


class Client:
    """An API with one object of each kind, which does not serve the kind `gone`."""

    def __init__(self, gone=None):
        self.gone = gone
        self.response = None

    async def list(self, kind, _namespace, *, labels="", fields=""):
        if kind == self.gone:
            raise NotFoundError("list", f"there are no {kind.plural}", 404)
        return Listing([make()], "1")

    async def watch(self, _kind, _namespace, _version, **_options):
        await asyncio.Event().wait()
        yield {}

    async def create(self, _kind, manifest):
        return manifest

    async def delete(self, _kind, _key, _uid, **_options):
        return self.response


async def test_a_kind_that_was_removed_does_not_delay_the_others():
    gone = Kind("example.org/v1", "Widget", "widgets")
    mirror = mirror_of(Client(gone))
    mirror.follow(POD)
    mirror.follow(gone)
    async with asyncio.timeout(30):
        await mirror.synced()
    assert mirror.list(gone) == []
    await mirror.aclose()


async def test_a_kind_is_mirrored_until_its_last_follower_is_removed():
    def listener(_before, _after):
        """One of two followers."""

    mirror = mirror_of(Client())
    mirror.follow(POD)
    mirror.follow(POD, listener)
    async with asyncio.timeout(10):
        await mirror.synced()
    mirror.unfollow(POD, listener)
    assert len(mirror.list(POD)) == 1
    mirror.follow(POD, listener)
    mirror.follow(NODE, listener)
    mirror.unfollow(NODE, listener)
    assert set(mirror._followed) == {POD}
    await mirror.aclose()


async def test_own_writes_are_visible_at_once():
    client = Client()
    mirror = mirror_of(client)
    mirror.follow(POD)
    async with asyncio.timeout(10):
        await mirror.synced()
    key = Key("default", "b")
    created = await mirror.create(POD, {**make("b", 2), "kind": "Pod"})
    assert mirror.get(POD, key) == created
    deleting = {"kind": "Pod", "metadata": {**make("b", 3)["metadata"], "deletionTimestamp": "now"}}
    client.response = deleting
    await mirror.delete(POD, created)
    assert mirror.get(POD, key) == deleting
    client.response = None
    await mirror.delete(POD, deleting)
    assert mirror.get(POD, key) is None
    await mirror.aclose()
