"""The demo on a cluster that is not the local one: its Service is reached through the API server's proxy."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from dragoman.cluster import Cluster, RefusedForLoad, connect

SERVICE = "/api/v1/namespaces/default/services/demo"
TEXT = {"text": "One.", "source_lang": "en", "target_lang": "de"}


class ApiServer:
    """An API server with one Service that has no local address, and an engine behind its proxy."""

    def __init__(self) -> None:
        self.status, self.reply = 200, {"translation": "Eins."}
        self.received: list[tuple[str, str | None, Any]] = []

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get(SERVICE, self.service)
        app.router.add_post(SERVICE + ":http/proxy/translate", self.translate)
        return app

    async def service(self, request: web.Request) -> web.Response:
        return web.json_response({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "demo"}})

    async def translate(self, request: web.Request) -> web.Response:
        self.received.append(
            (request.content_type, request.headers.get("Authorization"), await request.json())
        )
        return web.json_response(self.reply, status=self.status)


@pytest.fixture
def server() -> ApiServer:
    return ApiServer()


@pytest.fixture
async def cluster(server: ApiServer, tmp_path: Path) -> AsyncIterator[Cluster]:
    runner = web.AppRunner(server.app())
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port = runner.addresses[0][1]
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(kubeconfig_of(f"http://127.0.0.1:{port}")))
        async with connect(kubeconfig, "demo", "default") as connected:
            yield connected
    finally:
        await runner.cleanup()


def kubeconfig_of(url: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "theirs",
        "clusters": [{"name": "theirs", "cluster": {"server": url}}],
        "users": [{"name": "me", "user": {"token": "secret"}}],
        "contexts": [{"name": "theirs", "context": {"cluster": "theirs", "user": "me"}}],
    }


async def test_translates_through_the_api_servers_proxy(server: ApiServer, cluster: Cluster) -> None:
    assert await cluster.translate(TEXT) == "Eins."
    assert server.received == [("application/json", "Bearer secret", TEXT)]


async def test_a_full_engine_behind_the_proxy_is_distinguished_from_an_error(
    server: ApiServer, cluster: Cluster
) -> None:
    server.status, server.reply = 429, {}
    with pytest.raises(RefusedForLoad):
        await cluster.translate(TEXT)
    server.status = 500
    with pytest.raises(RuntimeError, match="500"):
        await cluster.translate(TEXT)
