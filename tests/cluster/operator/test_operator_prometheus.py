"""The same decisions from a real Prometheus as from the pods; without it replicas stay."""

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from faults.prometheus import PROMETHEUS, Prometheus

from dragoman_kube.kinds import DEPLOYMENT

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(240),
    pytest.mark.skipif(PROMETHEUS is None, reason="no prometheus on PATH (Debian: apt install prometheus)"),
]

TICK_S = 2
FOUND = "1 of 1 ready replicas report metrics"
SLOW = {"device": "cpu", "maxNumSeqs": 2, "extraArgs": {"first_token_s": 1.0}}


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[Prometheus]:
    made = Prometheus(tmp_path)
    made.start()
    yield made
    made.kill()


async def keep_scraping(world: Any, prometheus: Prometheus) -> None:
    """What the Prometheus operator does: name the pods as they come and go."""
    while True:
        with suppress(Exception):
            pods = [pod for name in ("direct", "measured") for pod in await world.pods(name)]
            addresses = {pod["metadata"]["name"]: pod.get("status", {}).get("podIP") for pod in pods}
            await asyncio.to_thread(prometheus.scrape, world.namespace, addresses)
        await asyncio.sleep(0.3)


async def keep_busy(urls: list[str], in_flight: int) -> None:
    """The same load on every service, until cancelled."""
    # Equal texts in flight would be one to the engine.
    numbers = itertools.count()

    async def one(http: aiohttp.ClientSession, url: str) -> None:
        while True:
            text = f"Good morning, number {next(numbers)}."
            request = {"text": text, "source_lang": "en", "target_lang": "de"}
            async with http.post(f"{url}/translate", json=request) as answer:
                await answer.read()

    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, force_close=True)) as http,
        asyncio.TaskGroup() as group,
    ):
        for url in urls:
            for _ in range(in_flight):
                group.create_task(one(http, url))


async def test_prometheus_and_pods_give_the_same_replicas_and_its_end_removes_none(world, prometheus):
    world.operator(**{"autoscaling-interval-s": TICK_S})
    scaling = {"minReplicas": 1, "maxReplicas": 2, "scaleDownStabilizationWindow": "5s"}
    await world.create("direct", engine=SLOW, autoscaling=scaling)
    await world.create("measured", engine=SLOW, autoscaling=scaling | {"prometheus": {"url": prometheus.url}})
    scraping = asyncio.create_task(keep_scraping(world, prometheus))
    try:
        for name in ("direct", "measured"):
            await world.until(
                lambda name=name: world.conditions(name),
                lambda found: found.get("MetricsAvailable", {}).get("message") == FOUND,
                timeout_s=60,
            )
        urls = [(await world.status(name))["url"] for name in ("direct", "measured")]
        busy = asyncio.create_task(keep_busy(urls, 12))
        grown = [
            await world.until(
                lambda name=name: world.status(name), lambda status: status.get("desiredReplicas") == 2
            )
            for name in ("direct", "measured")
        ]
        at = [datetime.fromisoformat(status["scaling"]["changes"][0]["time"]) for status in grown]
        apart_s = abs((at[0] - at[1]).total_seconds())
        print(f"grew {apart_s:.0f} s apart")
        assert apart_s <= TICK_S + 1  # times are whole seconds
        assert grown[1]["scaling"]["source"] == prometheus.url

        await asyncio.to_thread(prometheus.kill)
        message = (
            await world.until(
                lambda: world.conditions("measured"),
                lambda found: found["MetricsAvailable"]["status"] == "False",
                timeout_s=60,
            )
        )["MetricsAvailable"]["message"]
        assert message.startswith(f"{prometheus.url}: cannot be reached: Connection refused")
        await world.until(world.events, lambda found: ("Warning", "MetricsSourceUnavailable", 1) in found)
        busy.cancel()
        await asyncio.wait([busy])
        # The load is gone, and who asks the pods finds out.
        await world.until(
            lambda: world.status("direct"), lambda status: status["desiredReplicas"] == 1, timeout_s=60
        )
        assert (await world.get(DEPLOYMENT, "measured"))["spec"]["replicas"] == 2

        prometheus.start()
        await world.until(
            lambda: world.conditions("measured"),
            lambda found: found["MetricsAvailable"]["status"] == "True",
            timeout_s=60,
        )
        await world.until(
            lambda: world.status("measured"), lambda status: status["desiredReplicas"] == 1, timeout_s=60
        )
    finally:
        scraping.cancel()
