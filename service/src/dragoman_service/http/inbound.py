"""uvicorn's HTTP protocol with bounds on what comes before a body: uvicorn itself bounds neither heads nor chunks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES = 48 * 1024
"""Longest head, request line and headers together: more than a router takes (32 KiB) and adds."""

ADDRESS_BYTES = 40 * 1024
"""Longest address; decoding it takes 0.1 µs a byte, 0.7 where all are percent signs, in one piece. deep-translator's
client for LibreTranslate has texts of any length there."""

MOST_HEADERS = 300

MOST_PIPELINED = 16
"""Requests that wait for the answer to one before them."""

MOST_CHUNKS = 1024
"""Pieces of a body that may be short; of any more, each `BYTES_A_CHUNK` long on average."""

BYTES_A_CHUNK = 64


class HeadTooLargeError(ValueError):
    """A request has more before its body than is read; the parser ends with it."""


def _refusal(status: bytes, code: str, message: str) -> bytes:
    body = f'{{"error": {{"code": "{code}", "message": "{message}"}}}}'.encode()
    head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
    return head % (status, len(body)) + body


HEAD_TOO_LARGE = _refusal(
    b"431 Request Header Fields Too Large",
    "head_too_large",
    f"the head has more than {HEAD_BYTES} bytes or {MOST_HEADERS} headers, or the body too many chunks",
)
ADDRESS_TOO_LONG = _refusal(
    b"414 URI Too Long",
    "uri_too_long",
    f"the address has more than {ADDRESS_BYTES} bytes; send the text in a body",
)


class BoundedProtocol(HttpToolsProtocol):
    """One client's connection."""

    on_stalled: Callable[[], None] = staticmethod(lambda: None)
    """Called for each client that did not read its answer; `bounded` sets another."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._in_head = True
        self._head_bytes = self._address_bytes = self._headers = 0
        self._chunks = self._body_bytes = 0

    def connection_lost(self, exc: Exception | None) -> None:
        """The client left, or did not read for too long."""
        if isinstance(exc, TimeoutError):  # ETIMEDOUT, by TCP_USER_TIMEOUT.
            self.on_stalled()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes of a request."""
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        # A header without an end is with the parser until it ends.
        if self._in_head and self._head_bytes > HEAD_BYTES:
            self._refuse(HEAD_TOO_LARGE)

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._in_head = True
        self._address_bytes = self._headers = self._chunks = self._body_bytes = 0

    def on_url(self, url: bytes) -> None:
        """A part of its address."""
        super().on_url(url)
        self._address_bytes += len(url)
        if self._address_bytes > ADDRESS_BYTES:
            self._refuse(ADDRESS_TOO_LONG)
            raise HeadTooLargeError("the address is too long")

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header of it."""
        super().on_header(name, value)
        self._headers += 1
        if self._headers > MOST_HEADERS:
            self._refuse(HEAD_TOO_LARGE)
            raise HeadTooLargeError("the head has too many headers")

    def on_headers_complete(self) -> None:
        """Its head is complete; one that came at once with what follows is measured now."""
        size = self._address_bytes + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > HEAD_BYTES or len(self.pipeline) >= MOST_PIPELINED:
            self._refuse(HEAD_TOO_LARGE)
            raise HeadTooLargeError("the head is too long, or too many requests wait for the one before them")
        self._in_head = False
        self._head_bytes = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of its body."""
        self._chunks += 1
        self._body_bytes += len(body)
        if self._chunks > MOST_CHUNKS + self._body_bytes // BYTES_A_CHUNK:
            self._refuse(HEAD_TOO_LARGE)
            raise HeadTooLargeError("the body comes in too many chunks")
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Its body is complete."""
        super().on_message_complete()
        self._in_head = True

    def send_400_response(self, msg: str) -> None:
        """What cannot be parsed is answered, and the connection closed."""
        if not self.transport.is_closing():  # Else it was refused already.
            super().send_400_response(msg)

    def _refuse(self, answer: bytes) -> None:
        if self.transport.is_closing():
            return
        cycle = self.cycle
        in_its_body = not self._in_head and not self.pipeline
        # Else it would be taken for the answer to the request before it.
        if cycle is None or cycle.response_complete or (in_its_body and not cycle.response_started):
            self.transport.write(answer)
        self.transport.close()


def bounded(on_stalled: Callable[[], None]) -> type[BoundedProtocol]:
    """The protocol, calling `on_stalled` for each client that did not read its answer."""
    return type("Bounded", (BoundedProtocol,), {"on_stalled": staticmethod(on_stalled)})
