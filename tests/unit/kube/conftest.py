"""An API server with one collection, whose responses a test decides."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from kubernetes.aio import client
from tests.support.waiting import until

from dragoman_kube.client import KubeClient, connect
from dragoman_kube.kinds import Kind

THINGS = Kind("example.org/v1", "Thing", "things")


def make(name: str = "a", version: int = 1, uid: str = "") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "n", "uid": uid or name, "resourceVersion": str(version)}
    return {"metadata": metadata}


class ApiServer:
    """Lists `items` one per page; a watch sends what is put into `events`, and ends at None.

    All other requests are kept in `requests` and answered with the next of `responses`.
    """

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []
        self.version = 1
        self.lists, self.watched_from = 0, list[str]()
        self.events: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self.fails: list[int] = []
        self.requests: list[tuple[str, str, dict[str, str], Any]] = []
        self.headers: list[dict[str, str]] = []
        self.responses: list[tuple[int, str | bytes]] = []
        self.throttled: list[tuple[int, str]] = []
        """Status and Retry-After of the next responses."""
        self.silent = asyncio.Event()
        self.silent.set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        await self.silent.wait()
        if self.throttled:
            status, after = self.throttled.pop(0)
            return web.json_response(
                {"message": "too many requests"}, status=status, headers={"Retry-After": after}
            )
        if self.responses:
            status, body = self.responses.pop(0)
            self.requests.append(
                (
                    request.method,
                    request.path,
                    dict(request.query),
                    json.loads(await request.read() or b"null"),
                )
            )
            self.headers.append(dict(request.headers))
            return web.Response(status=status, body=body)
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
            # In two parts: a line may arrive in pieces.
            line = json.dumps(event).encode() + b"\n"
            await lines.write(line[:7])
            await lines.write(line[7:])
        return lines

    def send(self, kind: str, name: str = "", version: int = 0, uid: str = "", **more: Any) -> None:
        self.events.put_nowait({"type": kind, "object": {**make(name, version, uid), **more}})


@pytest.fixture
async def server() -> AsyncIterator[tuple[ApiServer, str]]:
    made = ApiServer()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", made.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield made, f"http://127.0.0.1:{runner.addresses[0][1]}"
    made.silent.set()
    made.events.put_nowait(None)
    await runner.cleanup()


@pytest.fixture
def api(server: tuple[ApiServer, str]) -> ApiServer:
    return server[0]


@pytest.fixture
async def kube(server: tuple[ApiServer, str]) -> AsyncIterator[KubeClient]:
    async with connect(client.Configuration(host=server[1]), timeout_s=20, field_manager="tests") as made:
        yield made


@pytest.fixture(name="until")
def _until() -> Callable[..., Awaitable[None]]:
    """Wait for a condition with a deadline."""
    return until
