"""The Service proxy: every Service listens on its own loopback address and leads to its ready pods."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from dragoman_kube.objects import Key

logger = logging.getLogger(__name__)

Address = tuple[str, int]

CONNECT_TIMEOUT_S = 5.0
CHUNK_BYTES = 64 * 1024


class PortForward:
    """One port of one Service."""

    def __init__(self, listen: Address) -> None:
        self.listen = listen
        self.backends: Sequence[Address] = ()
        self._turn: Iterator[int] = itertools.count()
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Start to listen.

        Raises:
            OSError: The address is taken or not of this machine.
        """
        self._server = await asyncio.start_server(self._accept, *self.listen)

    async def aclose(self) -> None:
        """Stop to listen and end what is connected."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)
        with suppress(asyncio.CancelledError):
            await self._serve(reader, writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            backend = await self._dial()
            if backend is None:
                # A reset refuses the connection at once, as a kube-proxy's REJECT does.
                writer.transport.abort()
                return
            there, back = backend
            try:
                await asyncio.gather(_pump(reader, back), _pump(there, writer))
            finally:
                back.close()
        finally:
            writer.close()

    async def _dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        backends = self.backends
        first = next(self._turn)
        for offset in range(len(backends)):
            host, port = backends[(first + offset) % len(backends)]
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    return await asyncio.open_connection(host, port)
        return None


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while chunk := await source.read(CHUNK_BYTES):
            sink.write(chunk)
            await sink.drain()
    with suppress(OSError, RuntimeError):
        sink.write_eof()


class ServiceProxy:
    """The listening ports of all Services."""

    def __init__(self) -> None:
        self._open: dict[Key, dict[Address, PortForward]] = {}

    async def update(self, key: Key, table: Mapping[Address, Sequence[Address]]) -> None:
        """Change where the ports of one Service lead; ports that are not in its table are closed."""
        forwards = self._open.setdefault(key, {})
        for listen in set(forwards) - set(table):
            await forwards.pop(listen).aclose()
        for listen, backends in table.items():
            if listen not in forwards:
                forward = PortForward(listen)
                try:
                    await forward.open()
                except OSError as error:
                    logger.error("Service address %s:%d: %s", *listen, error)
                    continue
                forwards[listen] = forward
            forwards[listen].backends = backends

    async def aclose(self) -> None:
        """Close all ports."""
        for key in self._open:
            await self.update(key, {})
