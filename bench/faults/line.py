"""A way over TCP that can be cut, as an outage of an API server does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Line:
    """The way to a server, which can be cut."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._ends: set[asyncio.StreamWriter] = set()
        self.whole = True

    @asynccontextmanager
    async def laid(self) -> AsyncIterator[int]:
        """The port that leads there."""
        server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            self.cut()
            server.close()

    def cut(self) -> None:
        """Break all connections; new ones are refused until `whole` is set."""
        self.whole = False
        for end in self._ends:
            end.transport.abort()
        self._ends.clear()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.whole:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
        except (OSError, asyncio.CancelledError):
            # The server is gone, and so are connections to it; or the run has ended.
            writer.transport.abort()
            return
        self._ends |= {writer, far_writer}
        try:
            with suppress(asyncio.CancelledError):
                await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))
        except OSError:
            # Reset on one side, as by a server that is killed: the other has to hear of it.
            writer.transport.abort()
            far_writer.transport.abort()
        finally:
            self._ends -= {writer, far_writer}


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()
