"""The Service of a TranslationDeployment without a router: no request is lost in a rollout and a scale-down."""

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import aiohttp
import httpx
import pytest

from dragoman_kube.kinds import POD

pytestmark = pytest.mark.cluster

Post = Callable[[dict[str, Any]], Awaitable[tuple[int, str]]]

WORKERS = 3
"""Concurrent requests of each client."""
PAUSE_S = 1.0
"""Idle time of the connection that is kept and rarely used."""
LETTERS = str.maketrans("0123456789", "abcdefghij")


class Clients:
    """Ordinary HTTP clients under steady load; an error that a client raises counts as a lost request."""

    def __init__(self, url: str) -> None:
        self.url = f"{url}/translate"
        self.answered: Counter[str] = Counter()
        self.lost: list[str] = []
        self.reused = 0
        self.phase = "before"
        self._numbers = itertools.count()
        self._stop = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Load from all clients; at the end the requests in flight are awaited."""
        async with AsyncExitStack() as stack:
            kept = await stack.enter_async_context(self._aiohttp(force_close=False))
            rare = await stack.enter_async_context(self._aiohttp(force_close=False))
            single = await stack.enter_async_context(self._aiohttp(force_close=True))
            pooled = await stack.enter_async_context(httpx.AsyncClient(timeout=60))

            async def by_httpx(request: dict[str, Any]) -> tuple[int, str]:
                answer = await pooled.post(self.url, json=request)
                return answer.status_code, answer.text if answer.is_error else answer.json()["translation"]

            group = await stack.enter_async_context(asyncio.TaskGroup())
            for _ in range(WORKERS):
                group.create_task(self._work("aiohttp, kept connections", self._by(kept)))
                group.create_task(self._work("httpx, kept connections", by_httpx))
                group.create_task(self._work("a connection for each request", self._by(single)))
            group.create_task(self._work("a connection that is rarely used", self._by(rare), PAUSE_S))
            try:
                yield
            finally:
                self._stop.set()

    async def more(self, count: int) -> None:
        """Wait until each client has so many more answers."""
        before = Counter(self.answered)
        async with asyncio.timeout(60):
            while True:
                if len(self.answered) == 4 and all(
                    (self.answered - before)[n] >= count for n in self.answered
                ):
                    return
                await asyncio.sleep(0.05)

    def _aiohttp(self, force_close: bool) -> aiohttp.ClientSession:
        trace = aiohttp.TraceConfig()

        async def reused(*_: object) -> None:
            self.reused += 1

        trace.on_connection_reuseconn.append(reused)
        connector = aiohttp.TCPConnector(limit=0, force_close=force_close)
        return aiohttp.ClientSession(
            connector=connector, trace_configs=[trace], timeout=aiohttp.ClientTimeout(60)
        )

    def _by(self, session: aiohttp.ClientSession) -> Post:
        async def post(request: dict[str, Any]) -> tuple[int, str]:
            async with session.post(self.url, json=request) as answer:
                if answer.status != 200:
                    return answer.status, await answer.text()
                return 200, (await answer.json())["translation"]

        return post

    async def _work(self, name: str, post: Post, pause_s: float = 0.0) -> None:
        while not self._stop.is_set():
            # Each text once, without digits: they would be missed in the reverse, and the text translated again.
            number = str(next(self._numbers)).translate(LETTERS)
            text = f"request number {number} of many"
            try:
                found = await post({"text": text, "source_lang": "en", "target_lang": "de"})
            except (aiohttp.ClientError, httpx.HTTPError, TimeoutError, OSError) as error:
                found = (0, repr(error))
            if found == (200, text[::-1]):
                self.answered[name] += 1
            else:
                self.lost.append(f"{self.phase}: {name}: {found}")
            if pause_s:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stop.wait(), pause_s)


@pytest.mark.timeout(240)
async def test_neither_a_rollout_nor_a_scale_down_loses_a_request(world):
    world.operator()
    await world.create(
        replicas=3, engine={"device": "cpu", "maxNumSeqs": 4, "extraArgs": {"first_token_s": 0.2}}
    )
    await world.until_complete(timeout_s=80)

    async def uids() -> set[str]:
        """Of all pods, those that terminate included."""
        found = (await world.kube.list(POD, world.namespace, labels="dragoman.io/deployment=demo")).items
        return {pod["metadata"]["uid"] for pod in found}

    before = await uids()
    clients = Clients((await world.status())["url"])
    async with clients.running():
        await clients.more(5)
        clients.phase = "rollout"
        await world.edit(engine={"maxNumSeqs": 6})
        await world.until_complete(timeout_s=100)
        await world.until(uids, lambda found: len(found) == 3 and before.isdisjoint(found), timeout_s=80)
        await clients.more(5)
        clients.phase = "scale-down"
        await world.scale(1)
        await world.until(uids, lambda found: len(found) == 1, timeout_s=80)
        await clients.more(5)
    assert not clients.lost, f"{len(clients.lost)} of {clients.answered}: {clients.lost[:20]}"
    assert clients.reused, "no connection was kept"
