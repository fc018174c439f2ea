"""A client's request: read within limits of size, time and memory; its head written for a replica."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, MutableMapping
from random import Random
from typing import Any
from urllib.parse import unquote

from dragoman_contract.glossaries import Packed, named
from dragoman_contract.routing import (
    CHARACTERS_LEFT_HEADER,
    DEPLOYMENT_HEADER,
    DEPLOYMENT_PREFIX,
    GLOSSARIES_HEADER,
    REPLICA_HEADER,
    ROUTER_HEADER,
    TIMEOUT_HEADER,
)
from dragoman_contract.serving import discard_body
from dragoman_protocols.errors import BodyTooLargeError, OverloadedError
from dragoman_router.http.placement import DOCUMENT, Placement
from dragoman_router.request import Request

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

DEPLOYMENT = DEPLOYMENT_HEADER.lower().encode()
PREFIX = DEPLOYMENT_PREFIX.encode()

CHUNK_BYTES = 64 * 1024
"""Part of a body that is parsed without a pause."""

HOP_BY_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te"}
    | {b"trailer", b"transfer-encoding", b"upgrade"}
)
"""RFC 9110 section 7.6.1: headers of one connection, which are not forwarded."""
OURS = frozenset(
    name.lower().encode()
    for name in (
        *(CHARACTERS_LEFT_HEADER, DEPLOYMENT_HEADER, GLOSSARIES_HEADER),
        *(REPLICA_HEADER, ROUTER_HEADER, TIMEOUT_HEADER),
    )
) | {
    b"content-length",
    b"expect",
    b"traceparent",
    b"x-forwarded-for",
}
"""Headers that the router writes itself."""

FORM = re.compile(rb"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_NOT_ZERO = 1 << 64 | 1
"""Neither the trace's id nor the span's may be all zeros."""


class ClientDisconnectedError(Exception):
    """The client disconnected before its request was complete."""


class BodyMemory:
    """BodyMemory for the bodies of all requests.

    Args:
        max_bytes: Maximum.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.used_bytes = 0


class BodyReservation:
    """One request's reservation of memory; `close` releases it.

    Args:
        memory: Of all requests.
    """

    __slots__ = ("_memory", "_size")

    def __init__(self, memory: BodyMemory) -> None:
        self._memory = memory
        self._size = 0

    def take(self, size: int) -> None:
        """Reserve more.

        Raises:
            OverloadedError: There is none left.
        """
        if self._memory.used_bytes + size > self._memory.max_bytes:
            raise OverloadedError("the router's memory limit for request bodies is reached; retry later", 1)
        self._memory.used_bytes += size
        self._size += size

    def close(self) -> None:
        """Release it."""
        self._memory.used_bytes -= self._size
        self._size = 0


def read_head(scope: Scope) -> Request:
    """The head of a request, with a deployment that its path or a header names."""
    client = scope.get("client")
    request = Request(
        method=scope["method"],
        path=scope["path"],
        query=scope["query_string"],
        headers=scope["headers"],
        client=client[0] if client else "",
        raw_path=scope["raw_path"],
    )
    if request.raw_path.startswith(PREFIX):
        _take_prefix(request)
    named = request.header(DEPLOYMENT)
    if named is not None:
        request.deployment = named.decode("latin-1").strip()
    return request


def _take_prefix(request: Request) -> None:
    parts = request.raw_path.split(b"/", 4)
    if len(parts) < 5:
        return
    request.deployment = unquote(f"{parts[2].decode('latin-1')}/{parts[3].decode('latin-1')}")
    request.raw_path = b"/" + parts[4]
    request.path = unquote(request.raw_path.decode("latin-1"))


async def read_body(
    request: Request,
    receive: Receive,
    max_bytes: int,
    reservation: BodyReservation,
    look: Callable[[bytes], None] | None = None,
) -> None:
    """Read the body into the request; the connection limits its time.

    Args:
        request: Its head.
        receive: ASGI's.
        max_bytes: Maximum size.
        reservation: Of its memory.
        look: Called with each part.

    Raises:
        BodyTooLargeError: It is longer than `max_bytes`.
        OverloadedError: There is no memory left for it.
        ClientDisconnectedError: The client disconnected.
    """
    length = request.header(b"content-length")
    if length is not None and int(length) > max_bytes:
        await discard_body(receive)
        raise _too_large(max_bytes)
    parts: list[bytes] = []
    size, more = 0, True
    while more and size <= max_bytes:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnectedError
        part = message.get("body", b"")
        more = message.get("more_body", False)
        reservation.take(len(part))
        size += len(part)
        parts.append(part)
        if look is not None:
            await _shown(part, look)
    if size > max_bytes:
        reservation.close()
        parts.clear()
        if more:
            await discard_body(receive)
        raise _too_large(max_bytes)
    request.body = parts[0] if len(parts) == 1 else b"".join(parts)


async def _shown(part: bytes, look: Callable[[bytes], None]) -> None:
    """Pass it on in pieces, so that other requests are served between them."""
    for at in range(0, len(part), CHUNK_BYTES):
        if at:
            await asyncio.sleep(0)
        look(part[at : at + CHUNK_BYTES])


def _too_large(max_bytes: int) -> BodyTooLargeError:
    return BodyTooLargeError(f"the body is larger than {max_bytes} bytes; send less at once")


class HeadWriter:
    """Writes the heads of forwarded requests.

    Args:
        router_id: Name of this router.
        dropped_headers: Headers that no replica gets.
        chance: Randomness of trace ids.
    """

    def __init__(self, router_id: str, dropped_headers: frozenset[bytes], chance: Random) -> None:
        self._router = b"x-dragoman-router: " + router_id.encode("ascii", "replace")
        self._dropped_headers = dropped_headers | HOP_BY_HOP | OURS
        self._chance = chance

    def write(
        self,
        request: Request,
        placement: Placement,
        glossaries: tuple[Packed, ...] = (),
        characters_left: int | None = None,
    ) -> bytes:
        """The request line and headers for a replica."""
        # llhttp lets neither blanks nor control characters into a target, nor line ends into a header.
        target = request.raw_path + b"?" + request.query if request.query else request.raw_path
        lines = [b"%b %b HTTP/1.1" % (request.method.encode(), target)]
        given: bytes | None = None
        forwarded = request.client.encode()
        dropped = self._dropped(request)
        for name, value in request.headers:
            if name == b"traceparent":
                given = value
            elif name == b"x-forwarded-for":
                forwarded = value + b", " + forwarded
            elif name not in dropped:
                lines.append(name + b": " + value)
        lines.append(b"traceparent: " + traceparent(given, self._chance))
        lines.append(b"x-forwarded-for: " + forwarded)
        if placement.reason != DOCUMENT:
            lines.append(self._router)
        if characters_left is not None:
            lines.append(f"{CHARACTERS_LEFT_HEADER}: {characters_left}".encode())
        if glossaries:
            lines.append(f"{GLOSSARIES_HEADER}: {named(glossaries)}".encode())
        if request.body or request.method not in ("GET", "DELETE"):
            lines.append(b"content-length: %d" % len(request.body))
        lines.append(b"\r\n")
        return b"\r\n".join(lines)

    def _dropped(self, request: Request) -> frozenset[bytes]:
        dropped = self._dropped_headers
        connection = request.header(b"connection")
        if connection is not None and connection.lower() not in (b"keep-alive", b"close"):
            dropped |= {each.strip().lower() for each in connection.split(b",")}
        return dropped


def traceparent(given: bytes | None, chance: Random) -> bytes:
    """The W3C trace context to forward (https://www.w3.org/TR/trace-context/).

    Args:
        given: As it came; kept if it is valid, because the router makes no span of its own.
        chance: Randomness of a new one.
    """
    if given is not None and FORM.fullmatch(given):
        return given
    ids = (chance.getrandbits(192) | _NOT_ZERO).to_bytes(24, "big").hex()
    return f"00-{ids[:32]}-{ids[32:]}-00".encode()
