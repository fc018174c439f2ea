"""The ConfigMap of keys' usage, at an API server that says yes, no, and nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from kubernetes.aio import client

from dragoman_router.errors import ClusterError, ClusterRefusedError
from dragoman_router.sharing import config_map
from dragoman_router.sharing.config_map import ConfigMap


class ApiServer:
    """One ConfigMap."""

    def __init__(self) -> None:
        self.object: dict[str, Any] | None = None
        self.says = 200
        self.port = 0

    async def handle(self, request: web.Request) -> web.Response:
        if self.says == 0:
            await asyncio.Event().wait()
        if self.says != 200:
            return web.json_response({"kind": "Status"}, status=self.says)
        if request.method == "GET":
            return web.json_response(self.object, status=200 if self.object else 404)
        body = await request.json()
        if request.method == "POST":
            if self.object is not None:
                return web.json_response({}, status=409)
            body["metadata"]["resourceVersion"] = "1"
        else:
            if self.object is None:
                return web.json_response({}, status=404)
            if body["metadata"]["resourceVersion"] != self.object["metadata"]["resourceVersion"]:
                return web.json_response({}, status=409)
            body["metadata"]["resourceVersion"] += "1"
        self.object = body
        return web.json_response(body)


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    made = ApiServer()
    app = web.Application()
    app.router.add_route("*", "/api/v1/namespaces/here/configmaps", made.handle)
    app.router.add_route("*", "/api/v1/namespaces/here/configmaps/usage", made.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.port = runner.addresses[0][1]
    yield made
    await runner.cleanup()


@pytest.fixture
async def store(server: ApiServer) -> AsyncIterator[ConfigMap]:
    configuration = client.Configuration(host=f"http://127.0.0.1:{server.port}")
    async with client.ApiClient(configuration) as api:
        yield ConfigMap(api, "here/usage")


async def test_it_is_made_read_and_replaced(server: ApiServer, store: ConfigMap) -> None:
    assert await store.read() is None
    assert await store.write(None, {"a": "1"}) == "1"
    found = await store.read()
    assert found is not None
    assert (found.version, found.data) == ("1", {"a": "1"})
    assert server.object is not None
    server.object["metadata"]["labels"] = {"kept": "yes"}
    found = await store.read()
    assert await store.write("1", {"a": "2"}) == "11"
    assert await store.write("11", {"b": "2"}) == "111"
    assert (server.object["data"], server.object["metadata"]["labels"]) == ({"b": "2"}, {"kept": "yes"})


async def test_somebody_was_first(server: ApiServer, store: ConfigMap) -> None:
    assert await store.read() is None
    server.object = {"metadata": {"name": "usage", "resourceVersion": "7"}, "data": None}
    assert await store.write(None, {}) is None
    found = await store.read()
    assert found is not None
    assert (found.version, found.data) == ("7", {})
    server.object["metadata"]["resourceVersion"] = "8"
    assert await store.write("7", {}) is None
    server.object = None
    assert await store.write("7", {}) is None, "it was deleted meanwhile"


async def test_a_missing_permission_is_named(server: ApiServer, store: ConfigMap) -> None:
    server.says = 403
    with pytest.raises(
        ClusterRefusedError, match="read ConfigMap here/usage: 403 Forbidden; the router's Role"
    ):
        await store.read()
    with pytest.raises(ClusterRefusedError, match="create"):
        await store.write(None, {})


@pytest.mark.parametrize("says", [429, 500, 503, 0])
async def test_a_bad_day_is_no_refusal(
    server: ApiServer, store: ConfigMap, monkeypatch: pytest.MonkeyPatch, says: int
) -> None:
    monkeypatch.setattr(config_map, "REQUEST_TIMEOUT_S", 0.3)
    server.says = says
    for asking in (store.read(), store.write(None, {})):
        with pytest.raises(ClusterError) as failed:
            await asking
        assert not isinstance(failed.value, ClusterRefusedError)
