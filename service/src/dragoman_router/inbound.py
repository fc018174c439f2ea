"""uvicorn's HTTP protocol, with bounds on what a client may send before it is a request, and word of its leaving.

uvicorn itself bounds neither the length of a head nor the time that it takes, and tells an application of a client's
leaving only through `receive()`, which costs a task for every request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

EXTENSION = "dragoman.connection"

HEAD_BYTES = 32 * 1024
"""Longest head: request line and headers together."""
FIRST_BYTE_TIMEOUT_S = 30.0
"""Longest time from a connection to its first byte."""

_CLOSE = b"content-type: application/json\r\nconnection: close\r\n"


def _last_words(status: bytes, code: str, message: str) -> bytes:
    body = f'{{"error": {{"code": "{code}", "message": "{message}"}}}}'.encode()
    return b"HTTP/1.1 %s\r\n%scontent-length: %d\r\n\r\n%s" % (status, _CLOSE, len(body), body)


TOO_LONG = _last_words(
    b"431 Request Header Fields Too Large", "head_too_large", f"the head is longer than {HEAD_BYTES} bytes"
)
TOO_SLOW = _last_words(b"408 Request Timeout", "request_timeout", "the request did not arrive in time")


class InboundProtocol(HttpToolsProtocol):
    """One client's connection."""

    arrival_timeout_s = 30.0
    """Longest time from the first byte of a request to its last; `bounded` sets another."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.on_gone: Callable[[], None] | None = None
        self._complete = True
        self._in_head = True
        self._head_bytes = 0
        self._too_long = False
        self._timer: asyncio.TimerHandle | None = None
        self._extensions = {EXTENSION: self}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client connected."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(FIRST_BYTE_TIMEOUT_S, self._end, b"")

    def connection_lost(self, exc: Exception | None) -> None:
        """The client left."""
        self._stop_timer()
        super().connection_lost(exc)
        gone, self.on_gone = self.on_gone, None
        if gone is not None:
            gone()

    def data_received(self, data: bytes) -> None:
        """Bytes of a request; most come with all of it, and need no timer."""
        if self._complete:
            self._stop_timer()
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > HEAD_BYTES:
            self._end(TOO_LONG)
        if not self._complete and self._timer is None:
            self._timer = self.loop.call_later(self.arrival_timeout_s, self._end, TOO_SLOW)

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self.scope["extensions"] = self._extensions  # type: ignore[typeddict-item]
        self._complete, self._in_head = False, True

    def on_headers_complete(self) -> None:
        """Its head is complete; one that came at once with what follows is measured now."""
        if self._head_bytes > HEAD_BYTES:
            size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
            if size > HEAD_BYTES:
                self._too_long = True
                raise ValueError("the head is too long")
        self._in_head = False
        self._head_bytes = 0
        super().on_headers_complete()

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
        self._stop_timer()

    def abort(self) -> None:
        """Break off, so that the client does not take half an answer for a whole one."""
        if self.transport is not None:
            self.transport.abort()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self, last_words: bytes) -> None:
        self._timer = None
        if self.transport is None or self.transport.is_closing():
            return
        if self.cycle is None or self._in_head or not self.cycle.response_started:
            self.transport.write(last_words)
        self.transport.close()


def bounded(arrival_timeout_s: float) -> type[InboundProtocol]:
    """The protocol with a bound on the time that a request may take to arrive."""
    return type("BoundedProtocol", (InboundProtocol,), {"arrival_timeout_s": arrival_timeout_s})
