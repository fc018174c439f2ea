"""Reads a request: its head into a value, its body within bounds of size, time and memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import unquote

from dragoman_contract.routing import DEPLOYMENT_HEADER, DEPLOYMENT_PREFIX
from dragoman_contract.serving import discard_body
from dragoman_protocols.errors import BodyTooLargeError, OverloadedError
from dragoman_router.dialects.asking import Request

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

DEPLOYMENT = DEPLOYMENT_HEADER.lower().encode()
PREFIX = DEPLOYMENT_PREFIX.encode()

LOOK_BYTES = 64 * 1024
"""What is looked at in one go."""


class ClientGoneError(Exception):
    """The client left before it had sent everything."""


class Memory:
    """What the bodies of all requests may take together.

    Args:
        most_bytes: At most.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.used_bytes = 0


class Room:
    """One request's part of the memory; `close` gives it back.

    Args:
        memory: Of which it is a part.
    """

    __slots__ = ("_memory", "_size")

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._size = 0

    def take(self, size: int) -> None:
        """Take more.

        Raises:
            OverloadedError: There is none left.
        """
        if self._memory.used_bytes + size > self._memory.most_bytes:
            raise OverloadedError("the router holds as many bytes of requests as it may; try again", 1)
        self._memory.used_bytes += size
        self._size += size

    def close(self) -> None:
        """Give all of it back."""
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
    most_bytes: int,
    room: Room,
    look: Callable[[bytes], None] | None = None,
) -> None:
    """Read the body into the request; how long that may take is the connection's business.

    Args:
        request: Its head.
        receive: ASGI's.
        most_bytes: Largest body that is read.
        room: What it takes is taken of.
        look: Sees each part of it as it comes.

    Raises:
        BodyTooLargeError: It is longer than `most_bytes`.
        OverloadedError: There is no memory left for it.
        ClientGoneError: The client left.
    """
    length = request.header(b"content-length")
    if length is not None and int(length) > most_bytes:
        await discard_body(receive)
        raise _too_large(most_bytes)
    parts: list[bytes] = []
    size, more = 0, True
    while more and size <= most_bytes:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        part = message.get("body", b"")
        more = message.get("more_body", False)
        room.take(len(part))
        size += len(part)
        parts.append(part)
        if look is not None:
            await _shown(part, look)
    if size > most_bytes:
        room.close()
        parts.clear()
        if more:
            await discard_body(receive)
        raise _too_large(most_bytes)
    request.body = parts[0] if len(parts) == 1 else b"".join(parts)


async def _shown(part: bytes, look: Callable[[bytes], None]) -> None:
    """Show it in pieces, so that others have their turn between them."""
    for at in range(0, len(part), LOOK_BYTES):
        if at:
            await asyncio.sleep(0)
        look(part[at : at + LOOK_BYTES])


def _too_large(most_bytes: int) -> BodyTooLargeError:
    return BodyTooLargeError(f"the body is larger than {most_bytes} bytes; send less at once")
