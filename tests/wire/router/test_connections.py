"""The number of clients' connections is bounded, and a client beyond it learns why."""

import asyncio
import json
import logging
import resource
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from dragoman_http import protocol
from dragoman_router.http.server import raise_limit_of_open_files

BODY = json.dumps({"text": "Hello", "source_lang": "en", "target_lang": "de"}).encode()


def post(path: str = "/translate", body: bytes = BODY) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def ask(self, request: bytes) -> tuple[int, dict[str, str], Any]:
        """Status, headers and document of the answer."""
        self.writer.write(request)
        await self.writer.drain()
        async with asyncio.timeout(30):
            line, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().rstrip().split("\r\n")
            headers = dict(each.lower().split(": ", 1) for each in lines)
            body = await self.reader.readexactly(int(headers["content-length"]))
        return int(line.split()[1]), headers, json.loads(body)

    async def ended(self) -> bytes:
        """What comes until the end of the connection."""
        async with asyncio.timeout(30):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""


@asynccontextmanager
async def connected(router: Any) -> AsyncIterator[Connection]:
    reader, writer = await asyncio.open_connection("127.0.0.1", router.port)
    try:
        yield Connection(reader, writer)
    finally:
        writer.transport.abort()


@pytest.fixture
async def full(start_router: Any, start_upstream: Any, until: Any) -> AsyncIterator[Any]:
    """A router with the two connections that it may have."""
    router = await start_router(max_connections=2)
    router.serve("a", (await start_upstream()).replica())
    async with AsyncExitStack() as stack:
        router.first = [await stack.enter_async_context(connected(router)) for _ in range(2)]
        await until(lambda: len(router.state.connections) == 2)
        yield router


def metric(router: Any, name: str, **labels: str) -> float:
    found: float = router.state.metrics.registry.get_sample_value(f"dragoman_router_{name}", labels)
    return found


@pytest.mark.parametrize(
    ("path", "shape"), [("/translate", "error"), ("/v2/translate", "message"), ("/no/such/path", "error")]
)
async def test_a_request_beyond_the_maximum_is_refused_in_the_words_of_its_api(
    full: Any, path: str, shape: str
) -> None:
    async with connected(full) as third:
        status, headers, document = await third.ask(post(path))
        assert (status, headers["retry-after"], headers["connection"]) == (503, "1", "close")
        assert next(iter(document)) == shape
        assert "maximum of 2 connections" in str(document)
        assert await third.ended() == b""
    labels = {"deployment": "", "code": "too_many_connections", "status": "503"}
    assert metric(full, "errors_total", **labels) == 1


async def test_connections_within_the_maximum_are_served(full: Any, until: Any) -> None:
    async with connected(full) as third:
        await third.ask(post())
    for each in full.first:
        assert (await each.ask(post()))[0] == 200
    full.first[0].writer.transport.abort()
    await until(lambda: len(full.state.connections) == 1)
    async with connected(full) as another:
        assert (await another.ask(post()))[0] == 200
        assert metric(full, "connections") == 2


async def test_a_client_reads_its_refusal_though_it_sends_a_large_body(full: Any) -> None:
    async with connected(full) as third:
        assert (await third.ask(post(body=b"x" * 3_000_000)))[0] == 503


async def test_a_connection_far_beyond_the_maximum_is_closed(
    full: Any, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "MAX_CROWDED", 1)
    async with connected(full) as third:
        await until(lambda: len(full.state.connections) == 3)
        async with connected(full) as fourth:
            assert await fourth.ended() == b""
        assert (await third.ask(post()))[0] == 503


async def test_a_connection_beyond_the_maximum_that_sends_nothing_ends_soon(
    full: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "CROWDED_TIMEOUT_S", 0.0)
    async with connected(full) as third:
        assert await third.ended() == b""
    assert (await full.first[0].ask(post()))[0] == 200


def test_files_for_all_connections_may_be_open(caplog: pytest.LogCaptureFixture) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (500, hard))
        raise_limit_of_open_files(600)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (600, hard)
        raise_limit_of_open_files(300)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (600, hard)
        assert not caplog.records
        caplog.set_level(logging.WARNING)
        raise_limit_of_open_files(hard + 1)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
        assert f"at most {hard} files" in caplog.text
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
