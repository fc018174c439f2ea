"""What the bodies of requests take, and how an oversized one is discarded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

DISCARD_BYTES = 64 * 1024 * 1024
DISCARD_S = 5.0
"""An oversized body is read and discarded up to here, so that its sender reads the response, not a broken pipe."""


class ClientGoneError(Exception):
    """The client disconnected."""


@dataclass(slots=True)
class BodyMemory:
    """The memory that the bodies of all requests take.

    Args:
        max_bytes: Maximum of all together.
    """

    max_bytes: int
    used_bytes: int = 0


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
