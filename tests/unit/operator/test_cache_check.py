"""What a list without an event finds, and what it must leave alone."""

from __future__ import annotations

from typing import Any

from dragoman_kube.client import Listing
from dragoman_kube.errors import RefusedError, UnavailableError
from dragoman_kube.kinds import POD, SERVICE, Kind
from dragoman_kube.objects import Key
from dragoman_operator.controller.cache import Cache, CacheCheck

DEMO = Key("ns", "demo")


def body(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"namespace": "ns", "name": name, "uid": name, "resourceVersion": str(version)}}


class Api:
    """Lists what is in `items`, as of `version`."""

    def __init__(self) -> None:
        self.items: dict[Kind, list[dict[str, Any]]] = {}
        self.version = 100
        self.error: Exception | None = None

    async def list(self, kind: Kind, namespace: str, *, labels: str, metadata_only: bool) -> Listing:
        assert metadata_only
        if self.error:
            raise self.error
        return Listing(self.items.get(kind, []), str(self.version))


class World:
    def __init__(self, *namespaces: str) -> None:
        self.api, self.cache = Api(), Cache()
        self.enqueued: list[Key] = []
        self.check = CacheCheck(self.api, self.cache, self.enqueued.append, namespaces, 300.0)  # type: ignore[arg-type]


async def test_what_was_deleted_without_an_event_is_ignored() -> None:
    world = World()
    world.cache.bind({"pods": {DEMO: [body("stays", 7), body("gone", 8)]}})
    world.cache.bind({"services": {DEMO: [body("demo", 9)]}})
    world.api.items = {POD: [body("stays", 7)]}
    await world.check.check()
    assert [pod["metadata"]["name"] for pod in world.cache.pods(DEMO)] == ["stays"]
    assert world.cache.get(SERVICE, DEMO) is None
    assert world.enqueued == [DEMO, DEMO]
    await world.check.check()
    assert len(world.enqueued) == 2, "once"


async def test_object_that_is_newer_than_the_list_stays() -> None:
    world = World()
    world.cache.bind({"pods": {DEMO: [body("new", 101)]}})
    await world.check.check()
    assert world.cache.pods(DEMO)
    assert world.enqueued == []


async def test_refused_namespace_is_unknown_until_it_can_be_listed() -> None:
    world = World("ns")
    world.cache.bind({"pods": {DEMO: [body("a", 7)]}})
    world.api.error = RefusedError("list pods", "forbidden")
    await world.check.check()
    assert world.cache.readable_pods(DEMO) is None
    assert world.cache.pods(DEMO)
    world.api.error, world.api.items = None, {POD: [body("a", 7)]}
    await world.check.check()
    assert world.cache.readable_pods(DEMO) == [body("a", 7)]


async def test_refusal_for_the_whole_cluster_makes_every_namespace_unknown() -> None:
    world = World()
    world.api.error = RefusedError("list pods", "forbidden")
    await world.check.check()
    assert world.cache.readable_pods(DEMO) is None


async def test_outage_changes_nothing() -> None:
    world = World()
    world.cache.bind({"pods": {DEMO: [body("a", 7)]}})
    world.api.error = UnavailableError("list pods", "no route")
    await world.check.check()
    assert world.cache.readable_pods(DEMO) == [body("a", 7)]
    assert world.enqueued == []
