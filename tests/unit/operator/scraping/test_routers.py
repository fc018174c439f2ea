"""The streams of load reports from routers."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from tests.support.loopback import NET, Handler, served
from tests.support.waiting import until

from dragoman_contract.http import ROUTER_ADMIN_PORT
from dragoman_kube.objects import Key
from dragoman_operator.scraping import routers as routers_module
from dragoman_operator.scraping.routers import Routers
from dragoman_operator.scraping.values import TotalLoad

DEMO = Key("default", "demo")


class Router:
    """A router that sends the given reports, line by line, with heartbeats between them."""

    def __init__(self) -> None:
        self.watchers: set[asyncio.Queue[bytes]] = set()
        self.line = b'{"deployments": {}}\n'
        self.not_reporting = False
        self.connections = 0

    def report(self, **loads: dict[str, float]) -> None:
        named = {f"default/{name}": load for name, load in loads.items()}
        self.line = json.dumps({"deployments": named, "draining": False, "later": 1}).encode() + b"\n"
        for watcher in self.watchers:
            watcher.put_nowait(self.line)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        assert request.query["watch"] == "1"
        response = web.StreamResponse()
        await response.prepare(request)
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        queue.put_nowait(self.line)
        self.watchers.add(queue)
        self.connections += 1
        try:
            while True:
                try:
                    async with asyncio.timeout(0.05):
                        line = await queue.get()
                except TimeoutError:
                    line = self.line
                if not self.not_reporting:
                    await response.write(line)
        finally:
            self.watchers.discard(queue)


def router_pod(uid: str, address: str) -> dict[str, Any]:
    return {"metadata": {"uid": uid}, "status": {"phase": "Running", "podIP": address}}


def router(address: str, handler: Handler) -> Any:
    return served(address, ROUTER_ADMIN_PORT, "/load", handler)


@pytest.fixture
async def followed(
    http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Routers, list[Key]]]:
    monkeypatch.setattr(routers_module, "REPORT_TIMEOUT_S", 0.5)
    queued: list[Key] = []
    routers = Routers(http, queued.append)
    yield routers, queued
    await routers.aclose()


async def test_loads_of_all_routers_are_added_up(followed: tuple[Routers, list[Key]]) -> None:
    routers, queued = followed
    first, second = Router(), Router()
    async with router(f"{NET}.3.1", first.serve), router(f"{NET}.3.2", second.serve):
        routers.follow([router_pod("1", f"{NET}.3.1"), router_pod("2", f"{NET}.3.2")])
        await until(lambda: routers.load(DEMO) == TotalLoad())
        assert queued == []
        first.report(demo={"queued": 2, "oldest_queued_s": 1.5, "in_flight": 4})
        second.report(demo={"queued": 1, "oldest_queued_s": 3.5, "in_flight": 1}, other={"in_flight": 9})
        await until(lambda: routers.load(DEMO) == TotalLoad(3, 5))
        assert set(queued) == {DEMO}
        routers.follow([router_pod("1", f"{NET}.3.1")])
        assert routers.load(DEMO) == TotalLoad(2, 4)


async def test_router_that_changes_its_address_is_followed_there(
    followed: tuple[Routers, list[Key]],
) -> None:
    routers, _ = followed
    one, two = Router(), Router()
    one.report(demo={"queued": 2})
    two.report(demo={"queued": 3})
    async with router(f"{NET}.3.1", one.serve), router(f"{NET}.3.2", two.serve):
        routers.follow([router_pod("1", f"{NET}.3.1")])
        await until(lambda: routers.load(DEMO).queued == 2)
        routers.follow([router_pod("1", f"{NET}.3.2")])
        await until(lambda: routers.load(DEMO).queued == 3)
        assert routers.load(DEMO) == TotalLoad(3)


async def test_router_without_reports_does_not_count_as_idle(followed: tuple[Routers, list[Key]]) -> None:
    routers, _ = followed
    standin = Router()
    async with router(f"{NET}.3.1", standin.serve):
        routers.follow([router_pod("1", f"{NET}.3.1")])
        assert routers.load(DEMO) == TotalLoad(not_reporting=1)
        standin.report(demo={"queued": 2})
        await until(lambda: routers.load(DEMO).queued == 2)
        standin.not_reporting = True
        await until(lambda: routers.load(DEMO) == TotalLoad(not_reporting=1))
        standin.not_reporting = False
        await until(lambda: routers.load(DEMO).queued == 2)


async def test_router_that_comes_back_is_followed_again(followed: tuple[Routers, list[Key]]) -> None:
    routers, _ = followed
    routers.follow([router_pod("1", f"{NET}.3.1")])
    for held in (1, 2):
        standin = Router()
        standin.report(demo={"queued": held})
        async with router(f"{NET}.3.1", standin.serve):
            await until(lambda held=held: routers.load(DEMO).queued == held, 10.0)  # type: ignore[misc]


@pytest.mark.parametrize(
    "line", [b"<html>\n", b'{"deployments": {"default/demo": {"queued": -1}}}\n', b"x" * (5 << 20)]
)
async def test_router_with_malformed_reports_does_not_report(
    followed: tuple[Routers, list[Key]], line: bytes
) -> None:
    routers, queued = followed
    standin = Router()
    standin.line = line
    async with router(f"{NET}.3.1", standin.serve):
        routers.follow([router_pod("1", f"{NET}.3.1")])
        await until(lambda: standin.connections >= 3)
        assert routers.load(DEMO) == TotalLoad(not_reporting=1)
    assert queued == []
