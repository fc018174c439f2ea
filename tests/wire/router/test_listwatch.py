"""Lists and watches against an API server that does what real ones do on a bad day."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from kubernetes.aio import client

from dragoman_router.fleet.listwatch import ListWatch


def item(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"namespace": "n", "name": name, "resourceVersion": str(version)}}


class ApiServer:
    """One collection; a watch sends what is put into `events`, and ends at None."""

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []
        self.version = 1
        self.lists, self.watched_from = 0, list[str]()
        self.events: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self.fails: list[int] = []
        self.port = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if self.fails:
            return web.json_response({}, status=self.fails.pop(0))
        if "watch" in request.query:
            return await self._watch(request)
        self.lists += 1
        at = int(request.query.get("continue", "0"))
        metadata = {"resourceVersion": str(self.version)}
        if at + 1 < len(self.items):
            metadata["continue"] = str(at + 1)
        return web.json_response({"metadata": metadata, "items": self.items[at : at + 1]})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        assert request.query["allowWatchBookmarks"] == "true"
        self.watched_from.append(request.query["resourceVersion"])
        lines = web.StreamResponse()
        await lines.prepare(request)
        while (event := await self.events.get()) is not None:
            # In two parts: a line need not come at once.
            line = json.dumps(event).encode() + b"\n"
            await lines.write(line[:7])
            await lines.write(line[7:])
        return lines

    def tell(self, kind: str, name: str = "", version: int = 0, **more: Any) -> None:
        self.events.put_nowait({"type": kind, "object": {**item(name, version), **more}})


class Known:
    """A sink that keeps names."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.replaced = 0

    def replace(self, items: list[dict[str, Any]]) -> None:
        self.replaced += 1
        self.names = {each["metadata"]["name"] for each in items}

    def put(self, item: dict[str, Any]) -> None:
        self.names.add(item["metadata"]["name"])

    def remove(self, item: dict[str, Any]) -> None:
        self.names.discard(item["metadata"]["name"])


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    made = ApiServer()
    app = web.Application()
    app.router.add_get("/things", made.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.port = runner.addresses[0][1]
    yield made
    made.events.put_nowait(None)
    await runner.cleanup()


@pytest.fixture
async def known(server: ApiServer) -> AsyncIterator[Known]:
    sink = Known()
    configuration = client.Configuration(host=f"http://127.0.0.1:{server.port}")
    broken: list[None] = []
    async with client.ApiClient(configuration) as api:
        watch = ListWatch(api, "/things", "", sink, 300, lambda: broken.append(None))
        running = asyncio.create_task(watch.run())
        yield sink
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_pages_events_and_bookmarks(server: ApiServer, known: Known, until: Any) -> None:
    server.items = [item("a", 1), item("b", 1), item("c", 1)]
    await until(lambda: known.names == {"a", "b", "c"})
    assert (server.lists, known.replaced) == (3, 1), "pages are one list"
    server.tell("ADDED", "d", 2)
    server.tell("DELETED", "a", 3)
    await until(lambda: known.names == {"b", "c", "d"})
    server.tell("BOOKMARK", version=9)
    server.events.put_nowait(None)
    await until(lambda: server.watched_from == ["1", "9"])
    assert known.replaced == 1, "a watch goes on where it ended"


@pytest.mark.parametrize("how", ["status", "event"])
async def test_a_version_that_expired_is_listed_anew(
    server: ApiServer, known: Known, until: Any, how: str
) -> None:
    await until(lambda: server.watched_from)
    server.items, server.version = [item("new", 7)], 7
    if how == "event":
        server.tell("ERROR", code=410)
    else:
        server.fails = [410]
        server.events.put_nowait(None)
    await until(lambda: known.names == {"new"})
    await until(lambda: server.watched_from[-1] == "7")


async def test_an_outage_keeps_what_is_known(server: ApiServer, known: Known, until: Any) -> None:
    server.items = [item("a", 1)]
    await until(lambda: known.names == {"a"})
    await until(lambda: server.watched_from)
    server.fails = [500, 503, 429]
    server.events.put_nowait(None)
    await until(lambda: not server.fails)
    assert known.names == {"a"}
    server.tell("ADDED", "b", 2)
    await until(lambda: known.names == {"a", "b"})
