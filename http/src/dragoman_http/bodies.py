"""Reads the bodies of requests within limits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from dragoman_protocols.errors import BodyTooLargeError

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

DISCARD_BYTES = 64 * 1024 * 1024
DISCARD_S = 5.0
"""An oversized body is read and discarded up to here, so that its sender reads the response, not a broken pipe."""


class ClientGoneError(Exception):
    """The client disconnected."""


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


async def read_body(
    receive: Receive,
    limit_bytes: int,
    take: Callable[[bytes], Awaitable[None]] | None = None,
    declared_bytes: int = 0,
) -> bytes:
    """The request's body, of which never more than `limit_bytes` and a chunk are held.

    Args:
        receive: ASGI's.
        limit_bytes: Maximum size of the body.
        take: Gets each part as it arrives; may raise.
        declared_bytes: `Content-Length`, where it is known.

    Raises:
        BodyTooLargeError: It is longer; the rest was read and dropped.
        ClientGoneError: The client disconnected before it was complete.
    """
    body = bytearray()
    more = True
    while more and max(declared_bytes, len(body)) <= limit_bytes:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        part, more = message.get("body", b""), message.get("more_body", False)
        if take is not None:
            await take(part)
        if not more and not body and len(part) <= limit_bytes:
            return bytes(part)
        body += part
    if max(declared_bytes, len(body)) <= limit_bytes:
        return bytes(body)
    body.clear()
    if more:
        await discard_body(receive)
    raise BodyTooLargeError(f"the body is over {limit_bytes} bytes; send the text in smaller pieces")
