"""HTTP/1.1 client for replicas: kept connections, one exchange at a time on each, llhttp as the parser.

Not a general client, because none reports how far a failed exchange had progressed, which decides on retries.
"""

from __future__ import annotations

import asyncio
from collections import deque

import httptools

CONNECT_TIMEOUT_S = 2.0
"""Within a cluster a connection takes a millisecond; a lost node drops the attempt."""
IDLE_S = 30.0
"""Shorter than pods keep an idle connection (75 s), so that the router closes it."""
MAX_IDLE = 256

BUFFERED_BYTES = 64 * 1024
"""Responses of a known length up to this one are buffered completely, so that the request can be retried if the
replica dies while it writes one."""
HIGH_WATER_BYTES = 256 * 1024
"""Maximum that is read ahead of a response while its client does not read."""
HEAD_BYTES = 64 * 1024
"""Maximum size of the head of a response."""

Headers = list[tuple[bytes, bytes]]


class ExchangeError(Exception):
    """An exchange without a response.

    Args:
        connected: Whether the request may have reached the replica.
        timed_out: Whether its deadline passed.
    """

    def __init__(self, message: str, *, connected: bool, timed_out: bool = False) -> None:
        super().__init__(message)
        self.connected = connected
        self.timed_out = timed_out


class Reply:
    """The response to one request: its head, and its body either complete or streamed."""

    __slots__ = (
        "_chunks",
        "_connection",
        "_ended",
        "_error",
        "_size",
        "_waiter",
        "body",
        "headers",
        "status",
    )

    def __init__(self, connection: Connection) -> None:
        self.status = 0
        self.headers: Headers = []
        self.body: bytes | None = None
        self._connection = connection
        self._chunks: list[bytes] = []
        self._size = 0
        self._ended = False
        self._error: ExchangeError | None = None
        self._waiter: asyncio.Future[None] | None = None

    def feed(self, chunk: bytes) -> int:
        """Add a part of the body; the bytes that are buffered now."""
        self._chunks.append(chunk)
        self._size += len(chunk)
        self._wake()
        return self._size

    def end(self, error: ExchangeError | None = None) -> None:
        """The end; `error` where the response is incomplete."""
        self._ended, self._error = True, error
        self._wake()

    def content(self) -> bytes:
        """All that has arrived."""
        return b"".join(self._chunks)

    async def next_chunk(self, silence_s: float | None = None) -> bytes:
        """The next part of the body; empty at its end.

        Args:
            silence_s: Maximum time that the replica may take for it, instead of the deadline of the exchange; the time
                in which the caller does not wait for a part is not limited then.

        Raises:
            ExchangeError: The replica stopped in the middle.
        """
        if silence_s is not None:
            self._connection.deadline_s = asyncio.get_running_loop().time() + silence_s
        while not self._chunks:
            if self._error is not None:
                raise self._error
            if self._ended:
                return b""
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        chunk = b"".join(self._chunks)
        self._chunks.clear()
        self._size = 0
        if silence_s is not None:
            self._connection.deadline_s = float("inf")
        self._connection.resume()
        return chunk

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Connection(asyncio.Protocol):
    """One TCP connection to a replica."""

    __slots__ = (
        "_error", "_head", "_head_size", "_is_bodiless", "_keep", "_length", "_loop", "_parser", "_paused", "_reply",
        "_transport", "closed", "deadline_s", "idle_since_s", "sent_s",
    )  # fmt: skip

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._reply: Reply | None = None
        self._head: asyncio.Future[Reply] | None = None
        self._head_size = 0
        self._length = -1
        self._keep = False
        self._is_bodiless = False
        self._paused = False
        self.closed = False
        self.sent_s = 0.0
        self.deadline_s = 0.0
        self.idle_since_s = 0.0

    def send(self, head: bytes, body: bytes, deadline_s: float) -> asyncio.Future[Reply]:
        """Send a request; the future of its response, complete or started.

        Args:
            head: Request line and headers, with their empty line.
            body: Of the length in the head.
            deadline_s: When `expire` ends it, on the loop's clock.

        Raises:
            ExchangeError: The connection is closed; of the future: no response arrived.
        """
        transport = self._transport
        if transport is None or self.closed:
            raise ExchangeError("the connection is closed", connected=False)
        self.sent_s, self.deadline_s = self._loop.time(), deadline_s
        self._reply = Reply(self)
        self._head_size, self._length, self._keep = 0, -1, False
        self._is_bodiless = head.startswith(b"HEAD ")
        self._head = self._loop.create_future()
        if body:
            transport.writelines((head, body))
        else:
            transport.write(head)
        return self._head

    @property
    def reusable(self) -> bool:
        """Whether the exchange has ended so that another may follow."""
        return self._reply is None and self._keep and not self.closed

    @property
    def waiting(self) -> bool:
        """Whether a request was sent and no part of its response was passed on."""
        return self._head is not None and not self._head.done()

    def fail(self, message: str, *, timed_out: bool = False) -> None:
        """End the exchange with an error, and the connection."""
        reply, self._reply = self._reply, None
        error = ExchangeError(message, connected=True, timed_out=timed_out)
        if self._head is not None and not self._head.done():
            self._head.set_exception(error)
        elif reply is not None:
            reply.end(error)
        self.abort()

    def abort(self) -> None:
        """Reset the connection; the replica sees that its client disconnected."""
        self.closed = True
        if self._transport is not None:
            self._transport.abort()

    def resume(self) -> None:
        """Read on."""
        if self._paused and self._transport is not None and not self.closed:
            self._paused = False
            self._transport.resume_reading()

    # Called by the transport.
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected."""
        self._transport = transport  # type: ignore[assignment]

    def connection_lost(self, exc: Exception | None) -> None:
        """The replica or the router closed it."""
        self.closed = True
        if self._reply is None:
            return
        if self._length < 0 and self._ended_by_close():
            return
        self.fail(f"the replica closed the connection ({exc or 'end of stream'})")

    def _ended_by_close(self) -> bool:
        """Whether the end of the connection is the regular end of the response (RFC 9112 section 6.3, rule 8)."""
        reply, head = self._reply, self._head
        if reply is None or head is None or not reply.status or self._chunked(reply):
            return False
        self._finish()
        return True

    def data_received(self, data: bytes) -> None:
        """Bytes of the response."""
        if self._reply is None:
            self.abort()  # No request was sent, so nothing that follows can be trusted.
            return
        if not self._reply.status:
            self._head_size += len(data)
            if self._head_size > HEAD_BYTES + BUFFERED_BYTES:
                self.fail("the replica's head is too long")
                return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.fail(f"the replica does not speak HTTP: {error}")

    # Called by the parser.
    def on_message_begin(self) -> None:
        """A response begins, or an interim one."""
        if self._reply is None:
            self.abort()  # It is behind the response in the same segment: the next request must not receive it.

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        if self._reply is not None:
            name = name.lower()
            if name == b"content-length":
                self._length = int(value)
            self._reply.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The head is complete; a response that is not buffered completely is passed on now."""
        reply = self._reply
        if reply is None:
            return
        status = self._parser.get_status_code()
        if status < 200:
            return
        reply.status = status
        if self._is_bodiless:
            # The parser would wait for the body that the length in the head announces: the connection ends here.
            self._finish()
            return
        self._keep = self._parser.should_keep_alive()
        if not 0 <= self._length <= BUFFERED_BYTES and self._head is not None and not self._head.done():
            self._head.set_result(reply)

    def on_body(self, body: bytes) -> None:
        """Part of the body."""
        reply = self._reply
        if reply is not None and reply.feed(body) > HIGH_WATER_BYTES and not self._paused:
            self._paused = True
            if self._transport is not None:
                self._transport.pause_reading()

    def on_message_complete(self) -> None:
        """The end of the response, or of an interim one."""
        reply = self._reply
        if reply is None:
            return
        if not reply.status:
            reply.headers.clear()
            self._length = -1
            return
        self._finish()

    def _finish(self) -> None:
        reply, head = self._reply, self._head
        self._reply = None
        if reply is None or head is None:
            return
        if not head.done():
            reply.body = reply.content()
            head.set_result(reply)
        reply.end()

    def _chunked(self, reply: Reply) -> bool:
        return any(name == b"transfer-encoding" for name, _ in reply.headers)


class Pool:
    """Connections to one address; the one used last is reused first, so that the others age out."""

    __slots__ = ("_answered_s", "_busy", "_closed", "_idle", "_loop", "host", "port")

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        self._idle: deque[Connection] = deque()
        self._busy: set[Connection] = set()
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self._answered_s = float("-inf")

    async def send(
        self, head: bytes, body: bytes, deadline_s: float, *, fresh: bool = False
    ) -> tuple[Reply, Connection]:
        """Send one request.

        Args:
            head: Request line and headers, with their empty line.
            body: Of the length in the head.
            deadline_s: When `sweep` ends it, on the loop's clock.
            fresh: Whether to open a new connection.

        Returns:
            The response, complete or started, and the connection: `release` it once the response ended, `abort` it
            before.

        Raises:
            ExchangeError: No response arrived.
        """
        connection = None if fresh else self._kept()
        if connection is None:
            connection = await self._connect()
        self._busy.add(connection)
        try:
            reply = await connection.send(head, body, deadline_s)
        except BaseException:
            self._busy.discard(connection)
            connection.abort()
            raise
        self._answered_s = self._loop.time()
        return reply, connection

    def unresponsive_s(self) -> float:
        """Seconds without any response while a request waits for one; 0 where none waits."""
        sent_s = min((each.sent_s for each in self._busy if each.waiting), default=float("inf"))
        return max(0.0, self._loop.time() - max(sent_s, self._answered_s))

    def fail_waiting(self, message: str) -> int:
        """End all requests that wait for a response, with this error; their number."""
        waiting = [each for each in self._busy if each.waiting]
        for connection in waiting:
            connection.fail(message)
        return len(waiting)

    def release(self, connection: Connection) -> None:
        """Keep a connection whose response has ended; close one that cannot be reused."""
        self._busy.discard(connection)
        if connection.reusable and not self._closed and len(self._idle) < MAX_IDLE:
            connection.idle_since_s = self._loop.time()
            self._idle.append(connection)
        else:
            connection.abort()

    def sweep(self) -> None:
        """Close idle connections, and end exchanges past their deadline.

        A timer for each request would cost more than this check every second or two.
        """
        now_s = self._loop.time()
        for connection in [each for each in self._busy if each.deadline_s < now_s]:
            connection.fail("no response in time", timed_out=True)
        horizon_s = now_s - IDLE_S
        while self._idle and (self._idle[0].closed or self._idle[0].idle_since_s < horizon_s):
            self._idle.popleft().abort()

    def close(self) -> None:
        """Close all idle connections; those in use end with their exchange."""
        self._closed = True
        while self._idle:
            self._idle.pop().abort()

    def _kept(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.closed:
                return connection
        return None

    async def _connect(self) -> Connection:
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                _, connection = await self._loop.create_connection(
                    lambda: Connection(self._loop), self.host, self.port
                )
        except TimeoutError as error:
            raise ExchangeError("no connection in time", connected=False) from error
        except OSError as error:
            raise ExchangeError(f"no connection: {error.strerror or error}", connected=False) from error
        return connection
