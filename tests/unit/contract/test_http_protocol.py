"""What a request learns of its connection, over a real one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from dragoman_contract.http_protocol import EXTENSION, RequestLimits
from dragoman_contract.serving import Message, Send, bound_socket, make_server

DEADLINE_S = 30
LIMITS = RequestLimits(head_bytes=4096, headers=20, address_bytes=1024, arrival_timeout_s=DEADLINE_S)
REQUEST = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"

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
