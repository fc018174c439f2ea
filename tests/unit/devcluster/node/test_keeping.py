"""An API server that ends is started again, but not for ever."""

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from dragoman_devcluster.errors import StartFailedError
from dragoman_devcluster.options import Backoff
from dragoman_devcluster.servers import server as api_server

AT_ONCE = Backoff(0.0, 0.0)


class Server(api_server.ApiServer):
    """Ends when a test ends it; its first `failures` starts fail."""

    def __init__(self, failures: int = 0) -> None:
        self.ended, self.started = asyncio.Event(), asyncio.Event()
        self.failures, self.starts = failures, 0

    async def start(self) -> Path:
        self.starts += 1
        if self.failures:
            self.failures -= 1
            raise StartFailedError(f"start {self.starts} failed")
        self.ended.clear()
        self.started.set()
        return Path("kubeconfig")

    async def wait(self) -> None:
        await self.ended.wait()

    async def stop(self) -> None:
        self.ended.set()


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(api_server, "RETRY_S", 0.0)


async def kept(server: Server, ends: int) -> None:
    """End a server so many times, each time after it was started."""
    keeper = asyncio.create_task(api_server.keep(server, AT_ONCE))
    for _ in range(ends):
        server.ended.set()
        async with asyncio.timeout(5):
            started = asyncio.create_task(server.started.wait())
            await asyncio.wait({keeper, started}, return_when=asyncio.FIRST_COMPLETED)
            started.cancel()
        if keeper.done():
            break
        server.started.clear()
    keeper.cancel()
    with suppress(asyncio.CancelledError):
        await keeper


async def test_each_end_is_followed_by_a_start():
    server = Server()
    await kept(server, ends=3)
    assert server.starts == 3


async def test_a_start_may_fail_now_and_then():
    server = Server(failures=api_server.STARTS - 1)
    await kept(server, ends=1)
    assert server.starts == api_server.STARTS


async def test_what_does_not_start_any_more_is_given_up():
    server = Server(failures=api_server.STARTS)
    with pytest.raises(StartFailedError, match=f"start {api_server.STARTS} failed"):
        await kept(server, ends=1)


async def test_one_that_keeps_ending_waits_longer_each_time(monkeypatch):
    slept: list[float] = []
    real = asyncio.sleep

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await real(0)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    server = Server()
    keeper = asyncio.create_task(api_server.keep(server, Backoff(1.0, 4.0)))
    for _ in range(5):
        server.started.clear()
        server.ended.set()
        async with asyncio.timeout(5):
            await server.started.wait()
    keeper.cancel()
    await asyncio.gather(keeper, return_exceptions=True)
    assert slept == [0.0, 1.0, 2.0, 4.0, 4.0]
