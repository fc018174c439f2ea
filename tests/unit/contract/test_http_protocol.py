"""How answers are written, over a real connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman_contract.http_protocol import EXTENSION, RequestLimits
from dragoman_contract.serving import Message, Send, bound_socket, make_server

DEADLINE_S = 30
LIMITS = RequestLimits(head_bytes=4096, headers=20, address_bytes=1024, arrival_timeout_s=DEADLINE_S)
REQUEST = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
HEAD: dict[str, Any] = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}

App = Callable[[Message, Send], Awaitable[None]]


@asynccontextmanager
async def connected(app: App) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to a server of this application."""

    async def asgi(scope: Message, _: object, send: Send) -> None:
        await app(scope, send)

    server = make_server(asgi, LIMITS, lambda: None, closing_s=1)
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


async def answer_to(app: App) -> bytes:
    """What comes back for one request, up to the end of the connection."""
    async with connected(app) as (reader, writer):
        writer.write(REQUEST.replace(b"host", b"connection: close\r\nhost"))
        return await reader.read()


async def test_head_and_body_of_a_whole_answer_are_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []

    async def app(scope: Message, send: Send) -> None:
        transport = scope["extensions"][EXTENSION].exchange.transport
        monkeypatch.setattr(
            scope["extensions"][EXTENSION].exchange, "transport", Recorded(transport, written)
        )
        await send(HEAD)
        await send({"type": "http.response.body", "body": b"ok"})

    found = await answer_to(app)
    assert written == [found]
    head, _, body = found.lower().partition(b"\r\n\r\n")
    assert body == b"ok"
    assert {b"content-length: 2", b"connection: close"} <= set(head.split(b"\r\n"))
    assert b"\r\ndate: " in head


class Recorded:
    """A transport whose writes are recorded."""

    def __init__(self, transport: Any, written: list[bytes]) -> None:
        self._transport, self._written = transport, written

    def write(self, data: bytes) -> None:
        self._written.append(data)
        self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


async def test_an_answer_in_parts_comes_whole() -> None:
    async def app(_: Message, send: Send) -> None:
        await send(HEAD)
        await send({"type": "http.response.body", "body": b"o", "more_body": True})
        await send({"type": "http.response.body", "body": b"k"})

    assert (await answer_to(app)).endswith(b"\r\n\r\nok")


async def test_an_application_that_ends_after_the_head_is_answered_for() -> None:
    async def app(_: Message, send: Send) -> None:
        await send(HEAD)

    assert (await answer_to(app)).startswith(b"HTTP/1.1 500 ")


async def test_a_line_end_in_a_header_is_not_sent() -> None:
    async def app(_: Message, send: Send) -> None:
        await send({**HEAD, "headers": [*HEAD["headers"], (b"x-name", b"a\r\nset-cookie: b")]})
        await send({"type": "http.response.body", "body": b"ok"})

    found = await answer_to(app)
    assert found.startswith(b"HTTP/1.1 500 ")
    assert b"set-cookie" not in found


async def test_a_disconnect_is_reported_to_the_request_that_is_answered() -> None:
    gone, started = asyncio.Event(), asyncio.Event()

    async def app(scope: Message, _: Send) -> None:
        exchange = scope["extensions"][EXTENSION].exchange
        exchange.on_disconnect = gone.set
        started.set()
        await gone.wait()
        assert exchange.disconnected

    async with connected(app) as (_, writer):
        writer.write(REQUEST)
        await started.wait()
        writer.close()
        await gone.wait()
