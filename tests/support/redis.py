"""A Redis server on a free port of this machine, and a proxy before it that can be cut off, or lose answers."""

import asyncio
import contextlib
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

BINARY = shutil.which("redis-server") or shutil.which("valkey-server")
START_S = 30.0


class RedisServer:
    """One server, which keeps nothing on disk."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self.port = int(listening.getsockname()[1])
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.start()

    def start(self, *flags: str) -> None:
        """Start it, empty, and wait until it answers."""
        assert BINARY is not None
        command = [
            BINARY,
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
        ]
        with (self._directory / "redis.log").open("ab") as log:
            self.process = subprocess.Popen([*command, *flags], stdout=log, stderr=log, cwd=self._directory)
        end_s = time.monotonic() + START_S
        while True:
            try:
                if self.command("PING").startswith((b"+PONG", b"-NOAUTH")):
                    return
            except OSError:
                assert time.monotonic() < end_s, (self._directory / "redis.log").read_text()
            time.sleep(0.02)

    def command(self, line: str) -> bytes:
        """The first bytes of the answer to one command."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=START_S) as connection:
            connection.sendall(line.encode() + b"\r\n")
            return connection.recv(65536)

    def pause(self) -> None:
        """Accept connections and answer nothing."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Answer again."""
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait()


class TcpProxy:
    """Forwards connections to a server; drops answers while `dropping`."""

    def __init__(self, port: int) -> None:
        self._target = port
        self.port = 0
        self.dropping = False
        self.dropped = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """Of Redis behind it."""
        return f"redis://127.0.0.1:{self.port}/0"

    async def start(self) -> None:
        """Listen on a free port."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close all connections."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._target)
        back = asyncio.create_task(self._answers(there_reader, writer))
        try:
            while data := await reader.read(65536):
                there_writer.write(data)
                await there_writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            back.cancel()
            for each in (writer, there_writer):
                each.transport.abort()
            self._tasks.discard(task)

    async def _answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            while data := await reader.read(65536):
                if self.dropping:
                    self.dropped += 1
                    writer.transport.abort()
                    return
                writer.write(data)
                await writer.drain()


@pytest.fixture(scope="session")
def shared_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A server for all tests."""
    if BINARY is None:
        pytest.skip("no redis-server: apt-get install redis-server")
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    yield server
    server.kill()


@pytest.fixture
def redis_server(shared_redis: RedisServer) -> RedisServer:
    """The server of all tests, empty."""
    shared_redis.command("FLUSHALL")
    return shared_redis


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A server that a test may pause or kill."""
    if BINARY is None:
        pytest.skip("no redis-server: apt-get install redis-server")
    server = RedisServer(tmp_path)
    yield server
    server.resume()
    server.kill()


@pytest.fixture
async def tcp_proxy() -> AsyncIterator[Callable[[int], object]]:
    """Start proxies before a port."""
    started: list[TcpProxy] = []

    async def start(port: int) -> TcpProxy:
        started.append(TcpProxy(port))
        await started[-1].start()
        return started[-1]

    yield start
    for each in started:
        await each.stop()
