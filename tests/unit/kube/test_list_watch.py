"""A list-watch with its cache, against an API server that fails in the ways in which real ones do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman_kube import client as client_module
from dragoman_kube import list_watch
from dragoman_kube.client import KubeClient
from dragoman_kube.collection import Collection
from dragoman_kube.kinds import Kind
from dragoman_kube.list_watch import ListWatch
from dragoman_kube.objects import Key
from dragoman_kube.work_queue import Backoff

THINGS = Kind("example.org/v1", "Thing", "things")


def make(name: str = "a", version: int = 1, uid: str = "") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "n", "uid": uid or name, "resourceVersion": str(version)}
    return {"metadata": metadata}


class Known(Collection):
    """Counts lists and failures."""

    def __init__(self) -> None:
        super().__init__()
        self.replaced = self.broken = 0

    @property
    def names(self) -> set[str]:
        return {key.name for key in self.items}

    def replace(self, manifests: Any, version: str, namespace: str = "") -> None:
        self.replaced += 1
        super().replace(manifests, version, namespace)

    def count(self) -> None:
        self.broken += 1


@asynccontextmanager
async def watched(kube: KubeClient, **options: Any) -> AsyncIterator[tuple[Known, ListWatch]]:
    cache = Known()
    watch = ListWatch(kube, THINGS, cache, broken=cache.count, backoff=Backoff(0.05, 0.2), **options)
    running = asyncio.create_task(watch.run())
    try:
        yield cache, watch
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@pytest.fixture
async def known(kube: KubeClient) -> AsyncIterator[Known]:
    async with watched(kube) as (cache, _):
        yield cache


async def test_pages_events_and_bookmarks(api: Any, known: Known, until: Any) -> None:
    api.items = [make("a"), make("b"), make("c")]
    await until(lambda: known.names == {"a", "b", "c"})
    assert (api.lists, known.replaced) == (3, 1), "pages are one list"
    assert known.items[Key("n", "a")]["kind"] == "Thing", "items of a list have no kind of their own"
    api.send("ADDED", "d", 2)
    api.send("DELETED", "a", 3)
    await until(lambda: known.names == {"b", "c", "d"})
    api.send("BOOKMARK", version=9)
    api.events.put_nowait(None)
    await until(lambda: api.watched_from == ["1", "9"])
    assert known.replaced == 1, "a watch goes on where the one before ended"


@pytest.mark.parametrize("how", ["status", "event"])
async def test_an_expired_version_is_listed_again(api: Any, known: Known, until: Any, how: str) -> None:
    await until(lambda: api.watched_from)
    api.items, api.version = [make("new", 7)], 7
    if how == "event":
        api.send("ERROR", code=410)
    else:
        api.fails = [410]
        api.events.put_nowait(None)
    await until(lambda: known.names == {"new"})
    await until(lambda: api.watched_from[-1] == "7")


async def test_an_expired_page_is_read_without_pages(api: Any, kube: KubeClient) -> None:
    api.items = [make("a"), make("b")]
    api.responses = [
        (200, '{"metadata": {"resourceVersion": "1", "continue": "1"}, "items": [{"metadata": {}}]}'),
        (410, "{}"),
        (200, '{"metadata": {"resourceVersion": "5"}, "items": []}'),
    ]
    assert await kube.list(THINGS, "n") == ([], "5")
    assert [query for _, _, query, _ in api.requests] == [
        {"limit": "500"},
        {"limit": "500", "continue": "1"},
        {},
    ]


async def test_an_object_that_was_deleted_during_an_outage_is_removed_by_the_next_list(
    api: Any, known: Known, until: Any
) -> None:
    api.items = [make("a"), make("b")]
    await until(lambda: known.names == {"a", "b"})
    await until(lambda: api.watched_from)
    api.items, api.version = [make("b")], 9
    api.send("ERROR", code=410)
    await until(lambda: known.names == {"b"})


async def test_an_outage_keeps_what_is_known(api: Any, known: Known, until: Any) -> None:
    api.items = [make("a")]
    await until(lambda: known.names == {"a"})
    await until(lambda: api.watched_from)
    api.fails = [500, 503, 429]
    api.events.put_nowait(None)
    await until(lambda: not api.fails)
    assert known.names == {"a"}
    api.send("ADDED", "b", 2)
    await until(lambda: known.names == {"a", "b"})
    assert (known.broken, known.replaced) == (3, 1)


async def test_an_event_of_an_older_version_changes_nothing(api: Any, known: Known, until: Any) -> None:
    api.items, api.version = [make("a", 5)], 5
    await until(lambda: known.names == {"a"})
    known.put(make("a", 8))
    api.send("MODIFIED", "a", 6)
    api.send("DELETED", "a", 7, uid="predecessor")
    api.send("ADDED", "last", 9)
    await until(lambda: known.names == {"a", "last"})
    assert known.items[Key("n", "a")] == make("a", 8)


async def test_a_silent_connection_is_noticed(
    api: Any, kube: KubeClient, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_watch, "MAX_WATCH_S", 0.0)
    monkeypatch.setattr(client_module, "SILENCE_S", -0.5)
    async with watched(kube) as (cache, _):
        await until(lambda: len(api.watched_from) >= 3)
        assert cache.broken >= 2
        assert cache.replaced == 1


@pytest.mark.slow
async def test_everything_is_listed_again_after_the_resync_time(
    api: Any, kube: KubeClient, until: Any
) -> None:
    async with watched(kube, resync_s=0.01) as (cache, _):
        await until(lambda: cache.replaced == 1)
        api.items, api.version = [make("missed", 2)], 2
        await until(lambda: api.watched_from)
        api.events.put_nowait(None)
        await until(lambda: cache.names == {"missed"})


@pytest.mark.parametrize("optional", [True, False])
async def test_a_kind_that_is_not_served_counts_as_listed_only_if_it_is_optional(
    api: Any, kube: KubeClient, until: Any, optional: bool
) -> None:
    api.fails = [404] * 100
    async with watched(kube, optional=optional) as (cache, watch):
        await until(lambda: cache.broken >= 2)
        assert watch.listed.is_set() is optional
        api.fails, api.items = [], [make("a")]
        await until(lambda: cache.names == {"a"})


async def test_a_kind_that_another_client_watches_is_only_listed(
    api: Any, kube: KubeClient, until: Any
) -> None:
    api.items = [make("a")]
    async with watched(kube, watched=False, resync_s=0.05) as (cache, watch):
        assert not cache.names
        await until(lambda: cache.replaced >= 2)
        assert watch.listed.is_set()
        assert (cache.names, api.watched_from) == ({"a"}, [])


async def test_a_list_that_is_requested_comes_early(
    api: Any, kube: KubeClient, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_watch, "SETTLE_S", 0.01)
    async with watched(kube, watched=False) as (cache, watch):
        await until(watch.listed.is_set)
        watch.relist()
        watch.relist()
        await until(lambda: cache.replaced)


async def test_a_refusal_is_known_until_the_kind_may_be_read_again(
    api: Any, kube: KubeClient, until: Any
) -> None:
    api.items = [make("a")]
    async with watched(kube) as (cache, watch):
        await until(lambda: api.watched_from)
        api.fails = [403] * 3
        api.events.put_nowait(None)
        await until(lambda: watch.refused)
        assert cache.names == {"a"}
        await until(lambda: not watch.refused)
        assert cache.replaced == 2
