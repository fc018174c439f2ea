"""Scraping engine pods."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from tests.support.loopback import NET, Handler, pod, served

from dragoman_contract.http import ENGINE_PORT
from dragoman_operator.scraping import pods as pods_module
from dragoman_operator.scraping.engine_metrics import LOAD_NAMES, TUNING_NAMES
from dragoman_operator.scraping.pods import PodMetrics

PAGE = (
    'vllm:num_requests_running{{model_name="demo"}} {0}\nvllm:num_requests_waiting{{model_name="demo"}} {1}\n'
)


def engine(address: str, handler: Handler) -> Any:
    return served(address, ENGINE_PORT, "/metrics", handler)


def answering(running: int, waiting: int) -> Handler:
    async def page(_: web.Request) -> web.Response:
        return web.Response(text=PAGE.format(running, waiting))

    return page


async def never(_: web.Request) -> web.Response:
    await asyncio.sleep(60)
    raise AssertionError("no test waits this long")


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
