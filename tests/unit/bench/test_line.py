"""A line between a client and a server carries what either does, an abrupt end included."""

import asyncio
import socket
import struct
from contextlib import suppress

from faults.line import Line

AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER by which closing a socket resets its connection, as the death of a process with unread data does."""


async def test_a_reset_on_one_side_resets_the_other() -> None:
    async def answer_and_reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(4)
        writer.write(b"pong")
        await writer.drain()
        await reader.readexactly(4)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
        writer.transport.abort()

    async with await asyncio.start_server(answer_and_reset, "127.0.0.1", 0) as server:
        line = Line(*server.sockets[0].getsockname())
        async with line.laid() as port, asyncio.timeout(10):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"ping")
            assert await reader.readexactly(4) == b"pong"
            writer.write(b"ends")
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
            writer.transport.abort()
