"""What a request learns of its connection, over a real one."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman_http.bodies import Message, Receive, Send
from dragoman_http.limits import MAX_PIPELINED, RequestLimits
from dragoman_http.protocol import EXTENSION, BoundedProtocol
from dragoman_http.server import make_server
from dragoman_system.listening import bound_socket

DEADLINE_S = 30
LIMITS = RequestLimits(head_bytes=4096, headers=20, address_bytes=1024, arrival_timeout_s=DEADLINE_S)
REQUEST = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"

INNER = b"GET /inner HTTP/1.1\r\nhost: x\r\n\r\n"
"""A body that is a request."""
OFFERS = b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAEAAEAAAAIAAAAB\r\n"

App = Callable[[Message, Send], Awaitable[None]]


@asynccontextmanager
async def connected(app: App) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to a server of this application."""

    async def asgi(scope: Message, _: object, send: Send) -> None:
        await app(scope, send)

    async with served(asgi) as streams:
        yield streams


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to a server of this ASGI application."""
    server = make_server(app, LIMITS, lambda: None, closing_s=1)
    with bound_socket("127.0.0.1", 0) as listening:
        listening.listen()
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        try:
            async with asyncio.timeout(DEADLINE_S):
                yield reader, writer
        finally:
            writer.close()
            server.should_exit = True
            await serving


async def test_a_disconnect_is_reported_to_the_request_that_is_answered() -> None:
    gone, started = asyncio.Event(), asyncio.Event()

    async def app(scope: Message, _: Send) -> None:
        exchange = scope["extensions"][EXTENSION].current
        exchange.on_disconnect = gone.set
        started.set()
        await gone.wait()
        assert exchange.disconnected

    async with connected(app) as (_, writer):
        writer.write(REQUEST)
        await started.wait()
        writer.close()
        await gone.wait()


class Requests:
    """An application that keeps its requests and answers each with its own body."""

    def __init__(self) -> None:
        self.received: list[tuple[str, bytes]] = []
        self.started = asyncio.Event()

    async def __call__(self, scope: Message, receive: Receive, _: Send) -> None:
        exchange = scope["extensions"][EXTENSION].current
        self.started.set()
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message.get("more_body", False)
        self.received.append((f"{scope['method']} {scope['path']}", body))
        await exchange.answer(200, [(b"content-length", b"%d" % len(body))], body)


WriteSegment = Callable[[asyncio.StreamWriter, bytes], Awaitable[None]]


@pytest.fixture
def write_segment(monkeypatch: pytest.MonkeyPatch) -> WriteSegment:
    """Write to a server and wait until it has read."""
    read: asyncio.Queue[bytes] = asyncio.Queue()
    parse = BoundedProtocol.data_received

    def data_received(connection: BoundedProtocol, data: bytes) -> None:
        parse(connection, data)
        read.put_nowait(data)

    monkeypatch.setattr(BoundedProtocol, "data_received", data_received)

    async def write(writer: asyncio.StreamWriter, data: bytes) -> None:
        writer.write(data)
        assert await read.get() == data

    return write


def offering(body: bytes, headers: bytes = OFFERS) -> bytes:
    """The head of a request with this body that offers another protocol."""
    return b"POST /outer HTTP/1.1\r\nhost: x\r\n%bcontent-length: %d\r\n\r\n" % (headers, len(body))


LAST = b"GET /last HTTP/1.1\r\nconnection: close\r\n\r\n"
CHUNKED = b"POST /outer HTTP/1.1\r\n%btransfer-encoding: chunked\r\n\r\n" % OFFERS
CHUNKS = b"%x\r\n%b\r\n" % (len(INNER), INNER) * 2 + b"0\r\n\r\n"
WITH_OFFERS = {
    "one segment": ((offering(INNER) + INNER,), [INNER]),
    "body in a later one": ((offering(INNER), INNER), [INNER]),
    "body in two": ((offering(INNER) + INNER[:9], INNER[9:]), [INNER]),
    "head in three": ((*(offering(INNER)[at : at + 60] for at in range(0, 180, 60)), INNER), [INNER]),
    "chunks": ((CHUNKED + CHUNKS,), [2 * INNER]),
    "chunks in later ones": ((CHUNKED, CHUNKS[:20], CHUNKS[20:]), [2 * INNER]),
    "several in one": (((offering(INNER) + INNER) * 3,), [INNER] * 3),
    "no body": ((offering(b""),), [b""]),
    "websocket": ((offering(INNER, b"connection: upgrade\r\nupgrade: websocket\r\n"), INNER), [INNER]),
}


@pytest.mark.parametrize("case", WITH_OFFERS)
async def test_an_offer_of_another_protocol_is_ignored_and_the_body_is_no_request(
    write_segment: WriteSegment, case: str
) -> None:
    segments, bodies = WITH_OFFERS[case]
    app = Requests()
    async with served(app) as (reader, writer):
        for segment in segments[:-1]:
            await write_segment(writer, segment)
        writer.write(segments[-1] + LAST)
        got = await reader.read()
    assert app.received == [*(("POST /outer", body) for body in bodies), ("GET /last", b"")]
    assert got.count(b"HTTP/1.1 200") == len(app.received)


async def test_an_offer_before_the_end_of_a_connection_is_ignored(write_segment: WriteSegment) -> None:
    app = Requests()
    async with served(app) as (reader, writer):
        await write_segment(writer, offering(INNER, b"connection: close, upgrade\r\nupgrade: h2c\r\n"))
        await app.started.wait()
        assert not app.received
        writer.write(INNER + INNER)
        got = await reader.read()
    assert app.received == [("POST /outer", INNER)]
    assert got.endswith(INNER)


async def test_requests_with_offers_are_limited_as_others() -> None:
    app = Requests()
    async with served(app) as (reader, writer):
        writer.write(offering(b"") * (MAX_PIPELINED + 4))
        got = await reader.read()
    assert len(app.received) <= MAX_PIPELINED + 1
    assert got.count(b"HTTP/1.1") <= MAX_PIPELINED + 1


@pytest.mark.parametrize(
    "head", [b"GET / HTTP/1.1\r\n%b\r\n" % (b"x: y\r\n" * 21), b"CONNECT x:443 HTTP/1.1\r\n\r\n"]
)
async def test_what_is_refused_without_an_offer_is_refused_with_one(head: bytes) -> None:
    app = Requests()
    line, _, rest = head.partition(b"\r\n")
    answers = []
    for headers in (b"", OFFERS):
        async with served(app) as (reader, writer):
            writer.write(line + b"\r\n" + headers + rest + INNER)
            answers.append(await reader.read())
    assert answers[0].startswith(b"HTTP/1.1 4")
    assert answers[1].splitlines()[0] == answers[0].splitlines()[0]
    assert not app.received
