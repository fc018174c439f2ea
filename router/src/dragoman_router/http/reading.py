"""Reads requests: the head, and the body within limits of size and memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from urllib.parse import unquote

from dragoman_contract.routing import DEPLOYMENT_HEADER, DEPLOYMENT_PREFIX
from dragoman_http.bodies import ClientGoneError, Message, Receive, discard_body
from dragoman_http.protocol import EXTENSION, Cycle
from dragoman_protocols.endpoints import Endpoint
from dragoman_protocols.errors import (
    BodyTooLargeError,
    OverloadedError,
    RequestError,
    TooManyConnectionsError,
    UnknownPathError,
)
from dragoman_protocols.routes import recognise
from dragoman_router.http.state import State
from dragoman_router.request import Request

PREFIX = DEPLOYMENT_PREFIX.encode()
NO_MEMORY = "the router's memory limit for request bodies is reached; retry later"
INLINE_FORM_BYTES = 64 * 1024
"""Larger forms are read in a thread: this many bytes take about 1 ms."""

_DEPLOYMENT = DEPLOYMENT_HEADER.lower().encode()


def read_head(scope: Message) -> Request:
    """The head of a request, with a deployment that its path or a header names."""
    client, peer = scope.get("client"), scope["extensions"][EXTENSION].client
    request = Request(
        method=scope["method"],
        path=scope["path"],
        query=scope["query_string"],
        headers=scope["headers"],
        client=client[0] if client else "",
        peer=peer[0] if peer else "",
        raw_path=scope["raw_path"],
    )
    if request.raw_path.startswith(PREFIX) and len(parts := request.raw_path.split(b"/", 4)) == 5:
        request.deployment = unquote(f"{parts[2].decode('latin-1')}/{parts[3].decode('latin-1')}")
        request.raw_path = b"/" + parts[4]
        request.path = unquote(request.raw_path.decode("latin-1"))
    named = request.header(_DEPLOYMENT)
    if named is not None:
        request.deployment = named.decode("latin-1").strip()
    return request


def known_endpoint(request: Request) -> Endpoint:
    """The endpoint that the head of a request shows.

    Raises:
        UnknownPathError: No API has its path.
    """
    found = recognise(request)
    if found is None:
        raise UnknownPathError(f"nothing here at {request.path[:100]!r}")
    return found


async def refuse(receive: Receive, exchange: Cycle, max_connections: int) -> None:
    """Refuse the request of a connection that is one too many, and end the connection with the answer.

    Raises:
        TooManyConnectionsError: Always.
    """
    # A connection that is closed with bytes that were not read is reset, and its client may not read the answer.
    await discard_body(receive)
    exchange.keep_alive = False
    raise TooManyConnectionsError(
        f"this router has its maximum of {max_connections} connections; retry later, and use connections again",
        1,
    )


async def read_body(
    state: State,
    request: Request,
    receive: Receive,
    max_bytes: int,
    feed: Callable[[bytes], Awaitable[None]] | None = None,
) -> None:
    """Read the body into the request; the connection limits its time.

    Args:
        state: Counts the memory of all bodies.
        request: Its head is read.
        receive: ASGI's.
        max_bytes: Maximum size of this body.
        feed: Gets its parts as they arrive.

    Raises:
        BodyTooLargeError: It is longer than `max_bytes`.
        OverloadedError: The memory for bodies is used up.
        ClientGoneError: The client disconnected.
    """
    length = request.header(b"content-length")
    more = True
    if length is None or int(length) <= max_bytes:
        parts: list[bytes] = []
        while more and request.reserved_bytes <= max_bytes:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            part = message.get("body", b"")
            more = message.get("more_body", False)
            if state.body_bytes + len(part) > state.max_memory_bytes:
                raise OverloadedError(NO_MEMORY, 1)
            state.body_bytes += len(part)
            request.reserved_bytes += len(part)
            parts.append(part)
            if feed is not None:
                await feed(part)
        if request.reserved_bytes <= max_bytes:
            request.body = parts[0] if len(parts) == 1 else b"".join(parts)
            if len(request.body) > INLINE_FORM_BYTES and request.is_form:
                with suppress(RequestError):  # Raised again where the fields are used.
                    await asyncio.to_thread(request.form_fields)
            return
        parts.clear()
        state.body_bytes -= request.reserved_bytes
        request.reserved_bytes = 0
    if more:
        await discard_body(receive)
    raise BodyTooLargeError(f"the body is larger than {max_bytes} bytes; send less at once")
