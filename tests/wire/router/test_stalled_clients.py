"""A client that does not read its answer is disconnected: it holds no slot, no memory and no replica's connection."""

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from dragoman_contract.routing import replica_tag
from dragoman_router.fleet import background

SHORT_S = 0.5
CHUNK = b"x" * 4096
BODY = json.dumps({"text": "Hello", "source_lang": "en", "target_lang": "de"}).encode()
DOWNLOAD = (
    f"POST /v2/document/{replica_tag('one', '')}{'0' * 20}/result HTTP/1.1\r\nhost: x\r\n"
    "content-type: application/x-www-form-urlencoded\r\ncontent-length: 14\r\n\r\ndocument_key=k"
).encode()
REQUEST = b"POST /translate HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s" % (len(BODY), BODY)


@contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    """A client with a small receive buffer, which reads nothing by itself."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", port))
        client.setblocking(False)
        yield client


@pytest.fixture
async def small(start_router: Any) -> Any:
    """A router that soon gives such a client up, with a small send buffer."""
    return await start_router(write_timeout_s=SHORT_S, send_buffer_bytes=4096)


def stalled(router: Any) -> float:
    return float(router.state.metrics.registry.get_sample_value("dragoman_router_write_timeouts_total"))


def in_flight(router: Any) -> int:
    backend = router.state.fleet.backends["default/one"]
    return int(router.state.active + backend.in_flight + sum(e.in_flight for e in backend.endpoints.values()))


async def test_a_streamed_answer_that_is_not_read_is_given_up(
    small: Any, start_upstream: Any, until: Any
) -> None:
    upstream = await start_upstream()
    written = 0

    async def endless(exchange: Any) -> None:
        nonlocal written
        await exchange.write(b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n")
        while True:
            await exchange.write(b"%x\r\n%s\r\n" % (len(CHUNK), CHUNK))
            written += len(CHUNK)

    upstream.script = endless
    small.serve("one", upstream.replica())
    with connected(small.port) as client:
        client.send(REQUEST)
        await until(lambda: written)
        await until(lambda: stalled(small) == 1, 30)
        await until(upstream.gone.is_set, 30)
        await until(lambda: in_flight(small) == 0)
    # What the buffers of two connections hold; without backpressure it would be hundreds of megabytes.
    assert written < 64 * 1024 * 1024
    assert small.state.memory.used_bytes == 0


async def test_a_whole_answer_that_is_not_read_is_given_up(
    small: Any, start_upstream: Any, until: Any
) -> None:
    upstream = await start_upstream()

    async def whole(exchange: Any) -> None:
        await exchange.answer("y" * 4_000_000)

    upstream.script = whole
    small.serve("one", upstream.replica())
    with connected(small.port) as client:
        client.send(REQUEST)
        await until(lambda: stalled(small) == 1, 30)
        await until(lambda: in_flight(small) == 0)


async def test_requests_in_a_row_whose_answers_are_not_read_are_given_up(
    small: Any, start_upstream: Any, until: Any
) -> None:
    upstream = await start_upstream()

    async def whole(exchange: Any) -> None:
        await exchange.answer("y" * 60_000)

    upstream.script = whole
    small.serve("one", upstream.replica())
    with connected(small.port) as client:
        client.send(REQUEST * 10)
        await until(lambda: stalled(small) == 1, 30)
        await until(lambda: in_flight(small) == 0)
    assert len(upstream.translations) < 10


async def test_a_slow_reader_gets_all_of_it(small: Any, start_upstream: Any) -> None:
    upstream = await start_upstream()

    async def whole(exchange: Any) -> None:
        await exchange.answer("y" * 200_000)

    upstream.script = whole
    small.serve("one", upstream.replica())
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    with connected(small.port) as client:
        client.send(REQUEST)
        got = b""
        async with asyncio.timeout(60):
            while not got.endswith(b'y"'):
                got += await loop.sock_recv(client, 8192)
                await asyncio.sleep(0.05)
    assert loop.time() - began_s > SHORT_S
    assert stalled(small) == 0


@pytest.fixture
async def impatient(start_router: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A router with a short limit for requests."""
    monkeypatch.setattr(background, "SWEEP_S", 0.02)
    return await start_router(request_timeout_s=SHORT_S, send_buffer_bytes=65536)


async def test_a_download_may_take_longer_than_a_request(
    impatient: Any, start_upstream: Any, until: Any
) -> None:
    upstream = await start_upstream()
    size = 8_000_000
    sent = False

    async def whole(exchange: Any) -> None:
        nonlocal sent
        await exchange.write(b"HTTP/1.1 200 X\r\ncontent-length: %d\r\n\r\n" % size + bytes(size))
        sent = True

    upstream.script = whole
    impatient.serve("one", upstream.replica())
    loop = asyncio.get_running_loop()
    with connected(impatient.port) as client:
        began_s = loop.time()
        client.send(DOWNLOAD)
        await until(lambda: loop.time() > began_s + 2 * SHORT_S)
        assert not sent, "the router waits for its client"
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        received = 0
        async with asyncio.timeout(30):
            while received < size and (chunk := await loop.sock_recv(client, 1 << 20)):
                received += chunk.count(b"\0")
    assert received == size


async def test_a_download_whose_pod_sends_nothing_more_is_ended(
    impatient: Any, start_upstream: Any, until: Any
) -> None:
    upstream = await start_upstream()

    async def part(exchange: Any) -> None:
        await exchange.write(b"HTTP/1.1 200 X\r\ncontent-length: 200000\r\n\r\n" + b"y" * 100_000)

    upstream.script = part
    impatient.serve("one", upstream.replica())
    got = await impatient.raw(DOWNLOAD, deadline_s=30)
    assert got.endswith(b"y" * 100_000)
    await until(upstream.gone.is_set)
    assert in_flight(impatient) == 0
