"""uvicorn's HTTP protocol, with bounds on what a client may send before it is a request, and a short way for answers.

uvicorn itself bounds neither the length of a head nor the time that it takes, and tells an application of a client's
leaving only through `receive()`, which costs a task for every request. It writes head and body of an answer apart,
which costs two system calls here and two reads at the client, and starts a timer after each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

EXTENSION = "dragoman.connection"

HEAD_BYTES = 32 * 1024
"""Longest head: request line and headers together."""
MOST_HEADERS = 256
"""Each costs a step; ten thousand short ones in one head would hold up others for milliseconds."""
MOST_PIPELINED = 16
"""Requests that wait for the answer to one before them; one read of 256 KB could bring 14,000, parsed in one go."""
MOST_CHUNKS = 1024
"""Pieces of a body that may be short; of any more, each `BYTES_A_CHUNK` long on average."""
BYTES_A_CHUNK = 64
FIRST_BYTE_TIMEOUT_S = 30.0
"""Longest time from a connection to its first byte."""
NEVER_S = float("inf")

_CLOSE = b"content-type: application/json\r\nconnection: close\r\n"


def _last_words(status: bytes, code: str, message: str) -> bytes:
    body = f'{{"error": {{"code": "{code}", "message": "{message}"}}}}'.encode()
    return b"HTTP/1.1 %s\r\n%scontent-length: %d\r\n\r\n%s" % (status, _CLOSE, len(body), body)


TOO_LONG = _last_words(
    b"431 Request Header Fields Too Large",
    "head_too_large",
    f"the head has more than {HEAD_BYTES} bytes or {MOST_HEADERS} headers, or the body too many chunks",
)
TOO_SLOW = _last_words(b"408 Request Timeout", "request_timeout", "the request did not arrive in time")


class Exchange(RequestResponseCycle):
    """One request and its answer: uvicorn's, with a short way for what is whole, as nearly all of both are."""

    async def receive(self) -> Any:
        """ASGI's; without waiting where all is there."""
        if self.more_body or self.waiting_for_100_continue or self.disconnected or self.response_complete:
            return await super().receive()
        return {"type": "http.request", "body": bytes(self.body)}

    async def answer(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        """A whole answer in one write.

        Args:
            status: HTTP status.
            headers: Free of line ends, with the body's length among them and without `connection`.
            body: The body.
        """
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        lines = [name + b": " + value for name, value in headers]
        if self.waiting_for_100_continue:
            # The client need not send the body now, and what comes next could be either.
            self.keep_alive = False
        if not self.keep_alive:
            lines.append(b"connection: close")
        lines += (b"", b"" if self.scope["method"] == "HEAD" else body)
        self.response_started = self.response_complete = True
        self.transport.write(STATUS_LINE[status] + b"\r\n".join(lines))
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


class InboundProtocol(HttpToolsProtocol):
    """One client's connection."""

    arrival_timeout_s = 30.0
    """Longest time from the first byte of a request to its last; `bounded` sets another."""
    on_stalled: Callable[[], object] = staticmethod(lambda: None)
    """Called for each client that did not read its answer; `bounded` sets another."""
    exchange: Exchange
    """What is being answered; an application takes it as it begins."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._task: asyncio.Task[None] | None = None
        self._complete = True
        self._in_head = True
        self._head_bytes = 0
        self._too_long = False
        self._chunks = self._body_bytes = self._after_head_bytes = 0
        self._due_s = NEVER_S
        self._extensions = {EXTENSION: self}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client connected."""
        super().connection_made(transport)
        self._due_s = self.loop.time() + FIRST_BYTE_TIMEOUT_S

    def connection_lost(self, exc: Exception | None) -> None:
        """The client left, or took nothing for too long: what is not answered needs no answer."""
        if isinstance(exc, TimeoutError):  # ETIMEDOUT, by TCP_USER_TIMEOUT.
            self.on_stalled()
        super().connection_lost(exc)
        if self._task is not None:
            self._task.cancel()
            self.tasks.discard(self._task)

    def data_received(self, data: bytes) -> None:
        """Bytes of a request; most come with all of it."""
        if self._in_head:
            self._head_bytes += len(data)
        else:
            self._after_head_bytes += len(data)
        super().data_received(data)
        if self._in_head:
            if self._head_bytes > HEAD_BYTES:
                self._end(TOO_LONG)
        elif self._after_head_bytes - self._body_bytes > HEAD_BYTES + self._body_bytes:
            # Sizes of chunks, their extensions, and headers behind the last.
            self._end(TOO_LONG)

    def on_message_begin(self) -> None:
        """A request begins."""
        self.url = b""
        self.expect_100_continue = False
        self.headers = []
        self._complete, self._in_head = False, True
        self._chunks = self._body_bytes = self._after_head_bytes = 0
        self._due_s = self.loop.time() + self.arrival_timeout_s

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header of it."""
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))
        if len(self.headers) > MOST_HEADERS:
            self._too_long = True
            raise ValueError("the head has too many headers")

    def on_headers_complete(self) -> None:
        """Its head is complete; one that came at once with what follows is measured now."""
        if self._head_bytes > HEAD_BYTES:
            size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
            if size > HEAD_BYTES:
                self._too_long = True
                raise ValueError("the head is too long")
        if len(self.pipeline) >= MOST_PIPELINED:
            self._too_long = True
            raise ValueError("too many requests wait for the one before them")
        self._in_head = False
        self._head_bytes = 0
        before, self.cycle = self.cycle, self._exchange()
        if before is None or before.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def on_body(self, body: bytes) -> None:
        """A piece of its body."""
        self._chunks += 1
        self._body_bytes += len(body)
        if self._chunks > MOST_CHUNKS + self._body_bytes // BYTES_A_CHUNK:
            self._too_long = True
            raise ValueError("the body comes in too many chunks")
        super().on_body(body)

    def send_400_response(self, msg: str) -> None:
        """What cannot be parsed is answered, and the connection closed."""
        if self._too_long:
            self._end(TOO_LONG)
        else:
            super().send_400_response(msg)

    def on_message_complete(self) -> None:
        """Its body is complete."""
        super().on_message_complete()
        self._complete = self._in_head = True
        self._rest()

    def on_response_complete(self) -> None:
        """The answer is on its way; another may follow."""
        self.server_state.total_requests += 1
        if self._task is not None:
            self.tasks.discard(self._task)
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self._complete:
            self._rest()

    def abort(self) -> None:
        """Break off, so that the client does not take half an answer for a whole one."""
        if self.transport is not None:
            self.transport.abort()

    def sweep(self, now_s: float) -> None:
        """End what takes too long.

        Timers of its own would cost each request more than being looked at every second does.
        """
        if now_s > self._due_s:
            self._end(b"" if self._complete else TOO_SLOW)

    def _exchange(self) -> Exchange:
        parser = self.parser
        version = parser.get_http_version()
        url = httptools.parse_url(self.url)
        path = url.path.decode("ascii")
        scope: Any = {
            "type": "http",
            "http_version": version,
            "client": self.client,
            "method": parser.get_method().decode("ascii"),
            "path": unquote(path) if "%" in path else path,
            "raw_path": url.path,
            "query_string": url.query or b"",
            "headers": self.headers,
            "extensions": self._extensions,
        }
        return Exchange(
            scope,
            self.transport,
            self.flow,
            self.logger,
            self.access_logger,
            False,
            self.server_state.default_headers,
            asyncio.Event(),
            self.expect_100_continue,
            version != "1.0" and parser.should_keep_alive(),
            self.on_response_complete,
        )

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self.exchange = cycle
        self._task = self.loop.create_task(cycle.run_asgi(app))
        self.tasks.add(self._task)

    def _rest(self) -> None:
        """Nothing arrives: either an answer is awaited, which may take long, or another request."""
        answered = self.exchange.response_complete
        self._due_s = self.loop.time() + self.timeout_keep_alive if answered else NEVER_S

    def _end(self, last_words: bytes) -> None:
        self._due_s = NEVER_S
        if self.transport is None or self.transport.is_closing():
            return
        answered = self.cycle is None or (self.exchange.response_complete and self._in_head)
        if answered or self._unanswered_in_body():
            self.transport.write(last_words)
        self.transport.close()

    def _unanswered_in_body(self) -> bool:
        """Whether it is the body of what is being answered that arrives, before any of the answer has left."""
        return self.exchange is self.cycle and not self._in_head and not self.exchange.response_started


def bounded(arrival_timeout_s: float, on_stalled: Callable[[], object]) -> type[InboundProtocol]:
    """The protocol with a bound on the time that a request may take to arrive.

    Args:
        arrival_timeout_s: Seconds from its first byte to its last.
        on_stalled: Called for each client that did not read its answer.
    """
    fields = {"arrival_timeout_s": arrival_timeout_s, "on_stalled": staticmethod(on_stalled)}
    return type("BoundedProtocol", (InboundProtocol,), fields)
