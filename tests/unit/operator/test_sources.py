"""The sources against servers of their kind, on loopback addresses of their own as pods have them."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from dragoman_contract.http import ENGINE_PORT, ROUTER_ADMIN_PORT
from dragoman_kube.objects import Key
from dragoman_operator.api.scaling import Prometheus as PrometheusSource
from dragoman_operator.observed.snapshot import EnginePod
from dragoman_operator.scraping import pods as pods_module
from dragoman_operator.scraping import routers as routers_module
from dragoman_operator.scraping.engine_metrics import LOAD_NAMES, TUNING_NAMES
from dragoman_operator.scraping.pods import PodMetrics
from dragoman_operator.scraping.prometheus import PrometheusServers
from dragoman_operator.scraping.routers import Routers
from dragoman_operator.scraping.values import TotalLoad

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

NET = f"127.{64 + os.getpid() % 128}"
"""Pods and routers have fixed ports: each process of tests has addresses of its own."""

PAGE = (
    'vllm:num_requests_running{{model_name="demo"}} {0}\nvllm:num_requests_waiting{{model_name="demo"}} {1}\n'
)
DEMO = Key("default", "demo")


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        yield session


@asynccontextmanager
async def served(address: str, port: int, path: str, handler: Handler) -> AsyncIterator[None]:
    app = web.Application()
    app.router.add_route("*", path, handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, address, port).start()
        yield
    finally:
        await runner.cleanup()


def engine(address: str, handler: Handler) -> Any:
    return served(address, ENGINE_PORT, "/metrics", handler)


def answering(running: int, waiting: int) -> Handler:
    async def page(_: web.Request) -> web.Response:
        return web.Response(text=PAGE.format(running, waiting))

    return page


async def never(_: web.Request) -> web.Response:
    await asyncio.sleep(60)
    raise AssertionError("no test waits this long")


def pod(name: str, address: str, ready: bool = True) -> EnginePod:
    return EnginePod(f"uid-{name}", "default", name, address, ready, 0.0, 0.0, 0)


async def test_only_ready_pods_are_scraped(http: aiohttp.ClientSession) -> None:
    metrics = PodMetrics(http, 2.0)
    async with engine(f"{NET}.0.1", answering(3, 4)):
        result = await metrics.read(
            [pod("a", f"{NET}.0.1"), pod("b", f"{NET}.0.2", ready=False), pod("c", f"{NET}.0.3")]
        )
    sample = result.readings["uid-a"].now
    assert (sample.running, sample.waiting) == (3, 4)
    assert result.readings.keys() == {"uid-a"}
    assert result.problems == {"c": "cannot be reached: Connection refused"}


async def test_unresponsive_pod_keeps_its_last_sample_with_its_time(http: aiohttp.ClientSession) -> None:
    now = [100.0]
    metrics = PodMetrics(http, 2.0, lambda: now[0])
    async with engine(f"{NET}.0.1", answering(3, 4)):
        await metrics.read([pod("a", f"{NET}.0.1")])
    now[0] = 105.0
    result = await metrics.read([pod("a", f"{NET}.0.1")])
    assert result.readings["uid-a"].now.at == 100.0
    assert result.problems.keys() == {"a"}
    metrics.keep(set())
    assert (await metrics.read([pod("a", f"{NET}.0.1")])).readings == {}


async def test_only_scrapes_of_the_same_metrics_are_compared(http: aiohttp.ClientSession) -> None:
    """Counters that were not read before would count as increases."""
    metrics, pods = PodMetrics(http, 2.0), [pod("a", f"{NET}.0.1")]
    async with engine(f"{NET}.0.1", answering(3, 4)):
        results = [
            await metrics.read(pods, names) for names in (LOAD_NAMES, LOAD_NAMES, TUNING_NAMES, TUNING_NAMES)
        ]
    results.append(await metrics.read(pods, TUNING_NAMES))
    assert [len(result.pairs) for result in results] == [0, 1, 0, 1, 0]
    assert results[-1].readings == results[-2].readings


@pytest.mark.parametrize(
    ("status", "text", "problem"),
    [
        (500, "", "/metrics answers 500"),
        (302, "", "/metrics answers 302"),
        (200, "<html>", "is this a vLLM?"),
        (200, "x" * (9 << 20), "more than 8 MiB"),
    ],
    ids=["error", "redirect", "page", "endless"],
)
async def test_bad_responses_are_problems(
    http: aiohttp.ClientSession, status: int, text: str, problem: str
) -> None:
    async def bad(_: web.Request) -> web.Response:
        return web.Response(status=status, text=text)

    async with engine(f"{NET}.0.1", bad):
        result = await PodMetrics(http, 5.0).read([pod("a", f"{NET}.0.1")])
    assert problem in result.problems["a"]
    assert result.readings == {}


async def test_slow_pods_do_not_delay_others(
    http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred that failed and now hold on, more than are read at once, and one that answers meanwhile."""
    monkeypatch.setattr(pods_module, "MAX_CONCURRENT", 32)
    failed: set[str] = set()
    answered = asyncio.Event()

    async def fails_then_waits(request: web.Request) -> web.StreamResponse:
        if request.host not in failed:
            failed.add(request.host)
            return web.Response(status=500)
        await answered.wait()
        return await answering(2, 0)(request)

    metrics = PodMetrics(http, 10.0)
    slow = [pod(f"slow-{number}", f"{NET}.1.{number}") for number in range(1, 101)]
    async with AsyncExitStack() as stack:
        for each in slow:
            await stack.enter_async_context(engine(each.address, fails_then_waits))
        await stack.enter_async_context(engine(f"{NET}.0.1", answering(1, 1)))
        assert (await metrics.read(slow)).problems.keys() == {each.name for each in slow}
        reading = asyncio.create_task(metrics.read(slow))
        await asyncio.sleep(0)
        result = await metrics.read([pod("a", f"{NET}.0.1")])
        assert result.readings["uid-a"].now.running == 1
        assert not reading.done()
        answered.set()
        assert (await reading).readings.keys() == {f"uid-{each.name}" for each in slow}


async def test_more_unresponsive_pods_than_slots_are_reported_separately(
    http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pods_module, "MAX_CONCURRENT", 4)
    metrics = PodMetrics(http, 0.3)
    slow = [pod(f"slow-{number}", f"{NET}.1.{number}") for number in range(1, 21)]
    async with AsyncExitStack() as stack:
        for each in slow:
            await stack.enter_async_context(engine(each.address, never))
        result = await metrics.read(slow)
    assert result.problems.keys() == {each.name for each in slow}
    assert set(result.problems.values()) == {
        "no answer within 0.3 s",
        "not scraped: too many other pods do not respond",
    }


def matrix(*series: tuple[str, str, float, float]) -> dict[str, Any]:
    result = [
        {"metric": {"__name__": name, "namespace": "default", "pod": pod}, "values": [[at, str(value)]]}
        for name, pod, at, value in series
    ]
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}


PROMETHEUS = f"http://user:secret@{NET}.2.1:9090/prom/"
RESPONSE = matrix(("vllm:num_requests_running", "a", 50.0, 2), ("vllm:num_requests_waiting", "a", 50.0, 9))


OWN = PrometheusSource()
"""The operator's own Prometheus."""


def servers(
    http: aiohttp.ClientSession, url: str = PROMETHEUS, token: str | None = None
) -> PrometheusServers:
    return PrometheusServers(None, http, url, lambda: token, 2.0)  # type: ignore[arg-type]


def prometheus(handler: Handler) -> Any:
    return served(f"{NET}.2.1", 9090, "/prom/api/v1/query", handler)


async def test_prometheus_is_queried_once_for_all(http: aiohttp.ClientSession) -> None:
    queries = []

    async def answer(request: web.Request) -> web.Response:
        queries.append((str((await request.post())["query"]), request.headers.get("Authorization")))
        return web.json_response(RESPONSE)

    source = servers(http, PROMETHEUS.replace("user:secret@", ""), "token")
    async with prometheus(answer):
        source.begin([("default", OWN), ("other", OWN)])
        pods = [pod("a", f"{NET}.0.1"), pod("b", f"{NET}.0.2")]
        first, _ = await asyncio.gather(source.read("default", OWN, pods), source.read("other", OWN, pods))
    ((query, authorization),) = queries
    assert 'namespace=~"default|other"' in query
    assert authorization == "Bearer token"
    sample = first.readings["uid-a"].now
    assert (sample.at, sample.running, sample.waiting) == (50.0, 2, 9)
    assert 'namespace="default", pod="b"' in first.problems["b"]
    assert first.failure is None


async def test_a_prometheus_learns_of_no_namespaces_but_of_those_that_name_it(
    http: aiohttp.ClientSession,
) -> None:
    queries: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        queries.append(str((await request.post())["query"]))
        return web.json_response(RESPONSE)

    source = servers(http, f"http://{NET}.2.1:9090/prom")
    of_tenant = PrometheusSource(url=f"http://{NET}.2.1:9090/prom/")
    async with prometheus(answer):
        source.begin([("default", OWN), ("other", OWN), ("tenant", of_tenant)])
        for namespace, chosen in (("default", OWN), ("tenant", of_tenant)):
            assert (await source.read(namespace, chosen, [])).failure is None
    assert ['namespace=~"default|other"' in query for query in queries] == [True, False]
    assert ['namespace=~"tenant"' in query for query in queries] == [False, True]


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [
        (200, "<html>a secret page</html>", "answers 200 and is not a Prometheus"),
        (401, "Unauthorized", "answers 401 and is not a Prometheus"),
        (400, json.dumps({"status": "error", "error": "bad query"}), "answers 400: bad query"),
        (200, json.dumps({"status": "success", "data": {"resultType": "vector"}}), "instead of a matrix"),
        (302, "", "answers 302"),
    ],
    ids=["page", "refused", "query", "vector", "redirect"],
)
async def test_wrong_prometheus_is_named_and_its_page_not_repeated(
    http: aiohttp.ClientSession, status: int, body: str, problem: str
) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, text=body)

    async with prometheus(answer):
        result = await servers(http).read("default", OWN, [pod("a", f"{NET}.0.1")])
    assert result.failure is not None
    assert result.failure.startswith(f"http://{NET}.2.1:9090/prom: ")
    assert problem in result.failure
    assert "secret" not in result.failure


async def test_unreachable_prometheus_keeps_the_last_samples(http: aiohttp.ClientSession) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response(RESPONSE)

    source, pods = servers(http), [pod("a", f"{NET}.0.1")]
    async with prometheus(answer):
        source.begin([("default", OWN)])
        await source.read("default", OWN, pods)
    source.begin([("default", OWN)])
    result = await source.read("default", OWN, pods)
    assert result.failure == f"http://{NET}.2.1:9090/prom: cannot be reached: Connection refused"
    assert result.readings["uid-a"].now.at == 50.0


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


async def until(holds: Callable[[], bool], timeout_s: float = 5.0) -> None:
    async with asyncio.timeout(timeout_s):
        while True:
            if holds():
                return
            await asyncio.sleep(0.01)


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
