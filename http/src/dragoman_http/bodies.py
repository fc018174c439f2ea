"""Reads the bodies of requests within limits of size and memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from dragoman_protocols.errors import BodyTooLargeError, OverloadedError

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

DISCARD_BYTES = 64 * 1024 * 1024
DISCARD_S = 5.0
"""An oversized body is read and discarded up to here, so that its sender reads the response, not a broken pipe."""


class ClientGoneError(Exception):
    """The client disconnected."""


class BodyMemory:
    """The memory that the bodies of all requests take.

    Args:
        max_bytes: Maximum of all together.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes, self.used_bytes = max_bytes, 0


class Reservation:
    """What one request takes of it."""

    __slots__ = ("_memory", "size_bytes")

    def __init__(self, memory: BodyMemory) -> None:
        self._memory, self.size_bytes = memory, 0

    def add(self, size_bytes: int) -> None:
        """Take more.

        Raises:
            OverloadedError: The memory is used up.
        """
        if self._memory.used_bytes + size_bytes > self._memory.max_bytes:
            raise OverloadedError("the router's memory limit for request bodies is reached; retry later", 1)
        self._memory.used_bytes += size_bytes
        self.size_bytes += size_bytes

    def release(self) -> None:
        """Give all back."""
        self._memory.used_bytes -= self.size_bytes
        self.size_bytes = 0


async def read_body(
    receive: Receive,
    limit_bytes: int,
    length: bytes | None = None,
    reservation: Reservation | None = None,
    feed: Callable[[bytes], Awaitable[None]] | None = None,
) -> bytes:
    """A request's body, of which never more than `limit_bytes` and a chunk are held.

    Args:
        receive: ASGI's.
        limit_bytes: Maximum size of the body.
        length: Header `Content-Length`: a body that it shows to be too long is not kept at all.
        reservation: Counts the memory.
        feed: Gets the parts as they arrive.

    Raises:
        BodyTooLargeError: It is longer; the rest was read and dropped.
        OverloadedError: The memory for bodies is used up.
        ClientGoneError: The client disconnected before it was complete.
    """
    parts: list[bytes] = []
    size, more = 0, True
    if length is None or int(length) <= limit_bytes:
        while more and size <= limit_bytes:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            part, more = message.get("body", b""), message.get("more_body", False)
            if reservation is not None:
                reservation.add(len(part))
            size += len(part)
            parts.append(part)
            if feed is not None:
                await feed(part)
        if size <= limit_bytes:
            return parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        if reservation is not None:
            reservation.release()
    if more:
        await discard_body(receive)
    raise BodyTooLargeError(f"the body is over {limit_bytes} bytes; send less at once")


async def discard_body(receive: Receive) -> None:
    """Read the rest of an oversized body and discard it, up to `DISCARD_BYTES` and `DISCARD_S`."""
    discarded = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(DISCARD_S):
            while discarded < DISCARD_BYTES:
                message = await receive()
                discarded += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body"):
                    return
