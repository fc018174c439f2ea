"""An HTTP client that checks every byte, so that half an answer and one too many are noticed.

General clients drop what comes after an answer, and with it the sign that a request was answered twice.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from dataclasses import dataclass, field

import httptools

IDLE_S = 15.0
"""An idle connection is closed after so long, as clients do; else the most there ever were would stay open."""
STALLED_BYTES = 4096
"""Receive buffer of a client that stops to read: what it does not take has to fill the server's own buffers."""


class BrokenError(Exception):
    """The connection was refused, or broke before the first byte of an answer."""


class GarbledError(Exception):
    """What came is not one whole answer."""


@dataclass
class RawAnswer:
    """What came back."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class CheckingClient:
    """Sends requests to servers on loopback, and keeps connections."""

    def __init__(self) -> None:
        self._idle: dict[int, deque[_Connection]] = {}
        self._all: set[_Connection] = set()
        self.surplus = 0
        """Answers, or bytes of them, without a request."""

    async def post(self, port: int, path: str, body: bytes, *, stall_s: float = 0.0) -> RawAnswer:
        """Send JSON and wait for the answer; the connection closes where the caller is cancelled meanwhile.

        Args:
            port: Of the server.
            path: Request target.
            body: JSON.
            stall_s: Seconds in which nothing is read after the first bytes of the answer, on a new connection with a
                receive buffer of a few kilobytes.

        Raises:
            BrokenError: A retry elsewhere is safe: nothing has come back.
            GarbledError: The answer was cut off, or is not HTTP.
        """
        connection = await (self._connect(port, stall_s) if stall_s else self._connection(port))
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        try:
            answer = await connection.send(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        except asyncio.CancelledError:
            connection.transport.abort()
            raise
        if stall_s:
            connection.transport.abort()
        elif connection.reusable:
            self._keep(port, connection)
        return answer

    def _keep(self, port: int, connection: _Connection) -> None:
        """The one used last is used first; the others age out."""
        now_s = connection.idle_since_s = asyncio.get_running_loop().time()
        idle = self._idle[port]
        idle.append(connection)
        while idle[0].idle_since_s < now_s - IDLE_S:
            idle.popleft().transport.abort()

    def close(self) -> None:
        """Close all connections."""
        for connection in list(self._all):
            connection.transport.abort()

    async def _connection(self, port: int) -> _Connection:
        idle = self._idle.setdefault(port, deque())
        while idle:
            connection = idle.pop()
            if connection in self._all and not connection.transport.is_closing():
                return connection
        return await self._connect(port)

    async def _connect(self, port: int, stall_s: float = 0.0) -> _Connection:
        loop = asyncio.get_running_loop()
        way = socket.socket()
        try:
            way.setblocking(False)
            if stall_s:
                # Before the connection is made: the window that is offered then is never taken back.
                way.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, STALLED_BYTES)
            await loop.sock_connect(way, ("127.0.0.1", port))
            _, connection = await loop.create_connection(
                lambda: _Connection(self, self._all, stall_s), sock=way
            )
        except OSError as error:
            way.close()
            raise BrokenError(repr(error)) from error
        except BaseException:
            way.close()
            raise
        return connection


class _Connection(asyncio.Protocol):
    """One request at a time; httptools calls its `on_…` methods."""

    def __init__(self, client: CheckingClient, everyone: set[_Connection], stall_s: float = 0.0) -> None:
        self._client, self._everyone, self._stall_s = client, everyone, stall_s
        self._parser = httptools.HttpResponseParser(self)
        self._waiting: asyncio.Future[RawAnswer] | None = None
        self._answer = RawAnswer()
        self._begun = False
        self.reusable = False
        self.idle_since_s = 0.0
        self.transport: asyncio.Transport

    async def send(self, request: bytes) -> RawAnswer:
        self._answer, self._begun, self.reusable = RawAnswer(), False, False
        self._waiting = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await self._waiting

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        self._everyone.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._everyone.discard(self)
        self._fail(f"the connection ended: {error!r}")

    def data_received(self, data: bytes) -> None:
        if self._waiting is None:
            self._client.surplus += 1
            self.transport.abort()
            return
        if self._stall_s and not self._begun:
            self.transport.pause_reading()
            asyncio.get_running_loop().call_later(self._stall_s, self._go_on)
        self._begun = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            # After a whole answer it is what follows that is no HTTP.
            self._client.surplus += self._waiting is None
            self._fail(repr(error))
            self.transport.abort()

    def on_message_begin(self) -> None:
        self._client.surplus += self._waiting is None

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._waiting is not None:
            self._answer.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, data: bytes) -> None:
        if self._waiting is not None:
            self._answer.body += data

    def on_message_complete(self) -> None:
        if self._waiting is not None:
            self._answer.status = self._parser.get_status_code()
            self.reusable = self._parser.should_keep_alive()
            waiting, self._waiting = self._waiting, None
            if not waiting.done():
                waiting.set_result(self._answer)

    def _go_on(self) -> None:
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def _fail(self, why: str) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_exception(GarbledError(why) if self._begun else BrokenError(why))
