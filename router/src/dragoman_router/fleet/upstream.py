"""HTTP/1.1 to replicas: connections that are kept, one exchange at a time, llhttp as the parser.

Small on purpose: plain TCP to pods of ours. What it adds over a general client is what a router must know: how far
a failed exchange had come.
"""

from __future__ import annotations

import asyncio

import httptools

WHOLE_BYTES = 64 * 1024
"""Answers of a known length up to this one are handed on whole, so that a replica that dies while it writes one
has not answered yet, and another can be asked."""
HIGH_WATER_BYTES = 256 * 1024
"""Of an answer that its client does not take, so much is read ahead."""
HEAD_BYTES = 64 * 1024
"""Longest head of an answer."""

Headers = list[tuple[bytes, bytes]]


class ExchangeError(Exception):
    """An exchange that gave no answer.

    Args:
        message: Why.
        connected: Whether the request may have reached the replica.
        timed_out: Whether the router gave it up.
    """

    def __init__(self, message: str, *, connected: bool, timed_out: bool = False) -> None:
        super().__init__(message)
        self.connected = connected
        self.timed_out = timed_out


class Reply:
    """The answer to one request: its head, and its body either whole or by and by.

    Args:
        connection: Where the rest of it comes from.
    """

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
        """Take in a part of the body; the bytes that wait now."""
        self._chunks.append(chunk)
        self._size += len(chunk)
        self._wake()
        return self._size

    def end(self, error: ExchangeError | None = None) -> None:
        """No more will come; `error` where more should have."""
        self._ended, self._error = True, error
        self._wake()

    def whole(self) -> bytes:
        """All that has come."""
        return b"".join(self._chunks)

    async def next_chunk(self) -> bytes:
        """The next part of the body; empty at its end.

        Raises:
            ExchangeError: The replica stopped in the middle.
        """
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
        self._connection.resume()
        return chunk

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Connection(asyncio.Protocol):
    """One TCP connection to a replica.

    Args:
        loop: The running loop.
    """

    __slots__ = (
        "_bodyless", "_error", "_head", "_head_size", "_keep", "_length", "_loop", "_parser", "_paused", "_reply",
        "_transport", "asked_s", "closed", "deadline_s", "idle_since_s",
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
        self._bodyless = False
        self._paused = False
        self.closed = False
        self.asked_s = 0.0
        self.deadline_s = 0.0
        self.idle_since_s = 0.0

    async def ask(self, head: bytes, body: bytes, deadline_s: float) -> Reply:
        """Send a request; its answer, whole or begun.

        Args:
            head: Request line and headers, with their empty line.
            body: As long as the head says.
            deadline_s: When `expire` ends it, on the loop's clock.

        Raises:
            ExchangeError: No answer came.
        """
        if self._transport is None or self.closed:
            raise ExchangeError("the connection is closed", connected=False)
        self.asked_s, self.deadline_s = self._loop.time(), deadline_s
        self._reply = Reply(self)
        self._head_size, self._length, self._keep = 0, -1, False
        self._bodyless = head.startswith(b"HEAD ")
        self._head = self._loop.create_future()
        if body:
            self._transport.writelines((head, body))
        else:
            self._transport.write(head)
        return await self._head

    @property
    def reusable(self) -> bool:
        """Whether the exchange has ended so that another may follow."""
        return self._reply is None and self._keep and not self.closed

    @property
    def waiting(self) -> bool:
        """Whether a request was sent and no part of its answer was handed on."""
        return self._head is not None and not self._head.done()

    def expire(self) -> None:
        """Give up what is under way: its deadline has passed."""
        self._fail("no answer in time", timed_out=True)

    def fail(self, message: str) -> None:
        """Give up what is under way: the replica does not respond."""
        self._fail(message)

    def abort(self) -> None:
        """Close at once; a replica notices that its client has gone."""
        self.closed = True
        if self._transport is not None:
            self._transport.abort()

    def resume(self) -> None:
        """Read on."""
        if self._paused and self._transport is not None and not self.closed:
            self._paused = False
            self._transport.resume_reading()

    # What the transport calls.
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected."""
        self._transport = transport  # type: ignore[assignment]

    def connection_lost(self, exc: Exception | None) -> None:
        """The replica, or we, closed it."""
        self.closed = True
        if self._reply is None:
            return
        if self._length < 0 and self._ended_by_close():
            return
        self._fail(f"the replica closed the connection ({exc or 'end of stream'})")

    def _ended_by_close(self) -> bool:
        """Whether the end of the connection is the regular end of the answer (RFC 9112 section 6.3, rule 8)."""
        reply, head = self._reply, self._head
        if reply is None or head is None or not reply.status or self._chunked(reply):
            return False
        self._finish()
        return True

    def data_received(self, data: bytes) -> None:
        """Bytes of the answer."""
        if self._reply is None:
            self.abort()  # Bytes that nobody asked for: nothing that follows could be trusted.
            return
        if not self._reply.status:
            self._head_size += len(data)
            if self._head_size > HEAD_BYTES + WHOLE_BYTES:
                self._fail("the replica's head is too long")
                return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(f"the replica does not speak HTTP: {error}")

    # What the parser calls.
    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        if self._reply is not None:
            name = name.lower()
            if name == b"content-length":
                self._length = int(value)
            self._reply.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The head is there; what is not sent whole is handed on now."""
        reply = self._reply
        if reply is None:
            return
        status = self._parser.get_status_code()
        if status < 200:
            return
        reply.status = status
        if self._bodyless:
            # httptools cannot be told that no body follows the length; so nothing else goes over this connection.
            self._finish()
            return
        self._keep = self._parser.should_keep_alive()
        if not 0 <= self._length <= WHOLE_BYTES:
            self._answer(reply)

    def on_body(self, body: bytes) -> None:
        """Part of the body."""
        reply = self._reply
        if reply is not None and reply.feed(body) > HIGH_WATER_BYTES and not self._paused:
            self._paused = True
            if self._transport is not None:
                self._transport.pause_reading()

    def on_message_complete(self) -> None:
        """The end of the answer, or of an interim one."""
        reply = self._reply
        if reply is None:
            return
        if not reply.status:
            reply.headers.clear()
            self._length = -1
            return
        self._finish()

    def _finish(self) -> None:
        reply, self._reply = self._reply, None
        if reply is None:
            return
        if self._head is not None and not self._head.done():
            reply.body = reply.whole()
            self._answer(reply)
        reply.end()

    def _answer(self, reply: Reply) -> None:
        if self._head is not None and not self._head.done():
            self._head.set_result(reply)

    def _fail(self, message: str, *, timed_out: bool = False) -> None:
        reply, self._reply = self._reply, None
        error = ExchangeError(message, connected=True, timed_out=timed_out)
        if self._head is not None and not self._head.done():
            self._head.set_exception(error)
        elif reply is not None:
            reply.end(error)
        self.abort()

    def _chunked(self, reply: Reply) -> bool:
        return any(name == b"transfer-encoding" for name, _ in reply.headers)
