"""Requests that are sent to a Service, a router or a pod, and counted."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import aiohttp


class Load:
    """Requests that are sent and must all be answered."""

    def __init__(self, url: str) -> None:
        self.url, self.answered = url, 0
        self.failed: list[str] = []
        self._numbers = itertools.count()

    async def send(self, http: aiohttp.ClientSession) -> None:
        # Equal texts in flight would be one to the engine.
        request = {
            "text": f"Good morning to all of you, number {next(self._numbers)}.",
            "source_lang": "en",
            "target_lang": "de",
        }
        try:
            async with http.post(f"{self.url}/translate", json=request) as answer:
                if answer.status != 200:
                    self.failed.append(f"{answer.status}: {await answer.text()}")
                    return
                await answer.read()
        except aiohttp.ClientError as error:
            self.failed.append(repr(error))
            return
        self.answered += 1

    async def more(self, answers: int) -> None:
        """Wait for so many more answers."""
        wanted = self.answered + answers
        async with asyncio.timeout(30):
            while True:
                if self.answered >= wanted:
                    return
                await asyncio.sleep(0.05)

    @asynccontextmanager
    async def kept_up(self, in_flight: int) -> AsyncIterator[None]:
        """So many at once; at the end those that are under way are waited for."""
        stop = asyncio.Event()

        async def one(http: aiohttp.ClientSession) -> None:
            while not stop.is_set():
                await self.send(http)

        async with self.connections() as http, asyncio.TaskGroup() as group:
            for _ in range(in_flight):
                group.create_task(one(http))
            try:
                yield
            finally:
                stop.set()

    def run(self, in_flight: int, is_stopped: Callable[[], bool]) -> None:
        """The same in a thread of its own, until it is stopped."""

        async def keep() -> None:
            async with self.kept_up(in_flight):
                while not is_stopped():  # noqa: ASYNC110 - another thread sets it
                    await asyncio.sleep(0.05)

        asyncio.run(keep())

    @staticmethod
    def connections() -> aiohttp.ClientSession:
        """A connection for each request, as a Service spreads connections."""
        return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, force_close=True))
