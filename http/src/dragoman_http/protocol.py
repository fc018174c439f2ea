"""HTTP/1.1 of pods and routers: uvicorn's protocol with limits on requests.

uvicorn limits neither the size of a head nor the time that a request takes to arrive, and reports a disconnected
client only through `receive()`, which costs a task for every request. It writes head and body of a response
separately, which costs two system calls here and two reads at the client, and starts a timer after each response.

Subclasses uvicorn's protocol and its request cycle, whose internals may change with any release: pyproject.toml
allows one minor version.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from dragoman_http.limits import (
    CROWDED_TIMEOUT_S,
    FIRST_BYTE_TIMEOUT_S,
    MAX_CROWDED,
    MAX_PIPELINED,
    MAX_SHORT_CHUNKS,
    MIN_CHUNK_BYTES,
    RequestLimits,
)

EXTENSION = "dragoman.connection"
"""Key of the connection in the extensions of an ASGI scope."""

NEVER_S = float("inf")
IPV4_MAPPED = "::ffff:"
"""How a socket for both families writes the address of a client of IPv4."""
INVALID = "Invalid HTTP request received."
ASGI = {"version": "3.0", "spec_version": "2.3"}


class NoEvent:
    """In place of an `asyncio.Event` until a request waits for its body, as few do."""

    def set(self) -> None:
        """Nothing waits."""


NO_EVENT: Any = NoEvent()


class Cycle(RequestResponseCycle):
    """One request and its response: uvicorn's, with a short path for those that are complete, as nearly all are.

    Attributes:
        closes: Whether each response ends its connection, as the server terminates.
        on_disconnect: Called if the client disconnects while the request is answered.
    """

    closes: Callable[[], bool]
    on_disconnect: Callable[[], object] | None = None
    waits = False
    """Whether `receive` has waited: only then an arrival is signalled to it."""
    _received = False

    async def receive(self) -> Any:
        """ASGI's; a complete body without waiting."""
        if (
            self.more_body
            or self._received
            or self.waiting_for_100_continue
            or self.disconnected
            or self.response_complete
        ):
            if not self.waits:
                self.waits, self.message_event = True, asyncio.Event()
            if self.body or self.disconnected or not (self.more_body or self._received):
                self.message_event.set()
            message: Any = await super().receive()
            self._received = not message.get("more_body", False)
            return message
        self._received = True
        return {"type": "http.request", "body": bytes(self.body)}

    async def send(self, message: Any) -> None:
        """ASGI's."""
        if not self.response_started and self.closes():
            self.keep_alive = False
        await super().send(message)

    async def answer(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        """Send a complete response in one write.

        Args:
            status: HTTP status.
            headers: Free of line ends, with the body's length among them and without `connection`.
            body: The body.
        """
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        lines = [name + b": " + value for name, value in self.default_headers + headers]
        if self.waiting_for_100_continue or self.closes():
            # The client need not send the body now: the next bytes may be the body or a request.
            self.keep_alive = False
        if not self.keep_alive:
            lines.append(b"connection: close")
        lines += (b"", b"" if self.scope["method"] == "HEAD" else body)
        self.response_started = self.response_complete = True
        if self.waits:
            self.message_event.set()
        self.transport.write(STATUS_LINE[status] + b"\r\n".join(lines))
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


class BoundedProtocol(HttpToolsProtocol):
    """One client's connection; `make_server` sets the class attributes."""

    limits: RequestLimits
    on_write_timeout: Callable[[], object]
    cycle: Cycle
    cycle_type: type[Cycle]
    max_connections: int
    crowded = False
    """Whether there were as many connections as may be when this one came: the application refuses its request."""
    current: Cycle
    """The one that is being answered; an application takes it as it starts."""
    task: asyncio.Task[None] | None = None
    """Answers it."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.url = b""
        self._complete = True
        self._in_head = True
        self._head_bytes = 0
        self._too_large = self._offers_upgrade = False
        self._chunks = self._body_bytes = self._after_head_bytes = 0
        self._due_s = NEVER_S
        self._extensions = {EXTENSION: self}
        self._max_headers = self.limits.headers

    @property
    def awaits_request(self) -> bool:
        """Whether no request has arrived yet, or one is not answered."""
        return self.cycle is None or not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client connected."""
        super().connection_made(transport)
        if self.client is not None and self.client[0].startswith(IPV4_MAPPED):
            self.client = (self.client[0].removeprefix(IPV4_MAPPED), self.client[1])
        self._due_s = self.loop.time() + FIRST_BYTE_TIMEOUT_S
        excess = len(self.connections) - self.max_connections
        if excess > 0:
            self.crowded = True
            self._due_s = self.loop.time() + CROWDED_TIMEOUT_S
            if excess > MAX_CROWDED:
                transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client disconnected, or read nothing for too long."""
        if isinstance(exc, TimeoutError):  # ETIMEDOUT, by TCP_USER_TIMEOUT.
            self.on_write_timeout()
        super().connection_lost(exc)
        if self.task is None:
            return
        if self.current.on_disconnect is not None:
            self.current.on_disconnect()
        self.task.add_done_callback(self.tasks.discard)

    def data_received(self, data: bytes) -> None:
        """Bytes of a request, most often all of it."""
        if self._in_head:
            self._head_bytes += len(data)
        else:
            self._after_head_bytes += len(data)
        try:
            self._parse(data)
        except httptools.HttpParserError:
            self.logger.warning(INVALID)
            self.send_400_response(INVALID)
        if self._in_head:
            # A header without an end is with the parser until it ends.
            if self._head_bytes > self.limits.head_bytes:
                self._end(self._rejection())
        elif self._after_head_bytes - self._body_bytes > self.limits.head_bytes + self._body_bytes:
            # Sizes of chunks, their extensions, and headers after the last.
            self._end(self._rejection())

    def on_message_begin(self) -> None:
        """A request begins."""
        self.url = b""
        self.expect_100_continue = False
        self.headers = []
        self._complete, self._in_head = False, True
        self._chunks = self._body_bytes = self._after_head_bytes = 0
        self._due_s = self.loop.time() + self.limits.arrival_timeout_s

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header of it."""
        name, headers = name.lower(), self.headers
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        headers.append((name, value))
        if len(headers) > self._max_headers:
            self._reject("the head has too many headers")

    def on_headers_complete(self) -> None:
        """Its head is complete; one that came together with what follows is measured now."""
        self._offers_upgrade = self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"
        if self._offers_upgrade:
            return
        if len(self.url) > self.limits.address_bytes:
            self._reject("the address is too long")
        if self._head_bytes > self.limits.head_bytes:
            size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
            if size > self.limits.head_bytes:
                self._reject("the head is too long")
        if len(self.pipeline) >= MAX_PIPELINED:
            self._reject("too many requests wait for the one before them")
        self._in_head = False
        self._head_bytes = 0
        before, self.cycle = self.cycle, self._made_cycle()
        if before is None or before.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def on_body(self, body: bytes) -> None:
        """A chunk of its body."""
        self._chunks += 1
        self._body_bytes += len(body)
        if self._chunks > MAX_SHORT_CHUNKS + self._body_bytes // MIN_CHUNK_BYTES:
            self._reject("the body has too many chunks")
        cycle = self.cycle
        if cycle is None or cycle.response_complete:
            return
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        if cycle.waits:
            cycle.message_event.set()

    def send_400_response(self, msg: str) -> None:
        """Answer a request that cannot be parsed, and close the connection."""
        if self._too_large:
            self._end(self._rejection())
        elif not self.transport.is_closing():
            super().send_400_response(msg)

    def on_message_complete(self) -> None:
        """Its body is complete."""
        if self._offers_upgrade:
            return
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.more_body = False
            if cycle.waits:
                cycle.message_event.set()
        self._complete = self._in_head = True
        self._wait_for_next()

    def on_response_complete(self) -> None:
        """The response is sent; another request may follow."""
        self.server_state.total_requests += 1
        if self.task is not None:
            self.tasks.discard(self.task)
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self._complete:
            self._wait_for_next()

    def abort(self) -> None:
        """Reset the connection, so that the client does not take part of a response for all of it."""
        if self.transport is not None:
            self.transport.abort()

    def sweep(self, now_s: float) -> None:
        """Close the connection after its deadline.

        A timer for each request would cost more than checking every connection once a second.
        """
        if now_s > self._due_s:
            self._end(b"" if self._complete else TOO_SLOW)

    def _parse(self, data: bytes) -> None:
        """Parse, without the offers of another protocol: a server may ignore them (RFC 9110 section 7.8).

        httptools takes a request with an offer to end with its head, and its body for the next request.
        """
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as ended:
            if not self._offers_upgrade:
                return
            data = self._head_without_offer() + data[ended.args[0] :]
            # After `Connection: close` the one before parses nothing more.
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            # At most MAX_PIPELINED times.
            self._parse(data)

    def _head_without_offer(self) -> bytes:
        parser = self.parser
        lines = [b"%b %b HTTP/%b" % (parser.get_method(), self.url, parser.get_http_version().encode())]
        lines += [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        return b"\r\n".join((*lines, b"", b""))

    def _made_cycle(self) -> Cycle:
        parser = self.parser
        version = parser.get_http_version()
        url = httptools.parse_url(self.url)
        path = url.path.decode("ascii")
        scope: Any = {
            "type": "http",
            "asgi": ASGI,
            "http_version": version,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": "",
            "method": parser.get_method().decode("ascii"),
            "path": unquote(path) if "%" in path else path,
            "raw_path": url.path,
            "query_string": url.query or b"",
            "headers": self.headers,
            "extensions": self._extensions,
        }
        return self.cycle_type(
            scope,
            self.transport,
            self.flow,
            self.logger,
            self.access_logger,
            False,
            self.server_state.default_headers,
            NO_EVENT,
            self.expect_100_continue,
            version != "1.0" and parser.should_keep_alive(),
            self.on_response_complete,
        )

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self.current = cycle
        self.task = self.loop.create_task(cycle.run_asgi(app))
        self.tasks.add(self.task)

    def _wait_for_next(self) -> None:
        """Nothing arrives: the client waits for a response, which may take long, or sends another request."""
        answered = self.current.response_complete
        self._due_s = self.loop.time() + self.timeout_keep_alive if answered else NEVER_S

    def _reject(self, reason: str) -> None:
        """End the parser, which then calls `send_400_response`."""
        self._too_large = True
        raise ValueError(reason)

    def _rejection(self) -> bytes:
        limits = self.limits
        if len(self.url) > limits.address_bytes:
            message = f"the address has more than {limits.address_bytes} bytes; send the text in a body"
            return _last_response(b"414 URI Too Long", "uri_too_long", message)
        return _last_response(
            b"431 Request Header Fields Too Large",
            "head_too_large",
            f"the head has more than {limits.head_bytes} bytes or {limits.headers} headers, "
            "or the body too many chunks",
        )

    def _end(self, response: bytes) -> None:
        self._due_s = NEVER_S
        if self.transport is None or self.transport.is_closing():
            return
        # Anything else would be taken for the response to the request before it.
        answered = self.cycle is None or (self.current.response_complete and self._in_head)
        if answered or self._unanswered_in_body():
            self.transport.write(response)
        self.transport.close()

    def _unanswered_in_body(self) -> bool:
        """Whether the body of the request that is being answered arrives, and no response was started."""
        return self.current is self.cycle and not self._in_head and not self.current.response_started


def _last_response(status: bytes, code: str, message: str) -> bytes:
    """A response after which the connection is closed."""
    body = f'{{"error": {{"code": "{code}", "message": "{message}"}}}}'.encode()
    head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
    return head % (status, len(body)) + body


TOO_SLOW = _last_response(b"408 Request Timeout", "request_timeout", "the request did not arrive in time")
