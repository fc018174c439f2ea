"""One HTTP exchange, below every dialect: its body is bounded, and its client is watched."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import Request

from dragoman_contract.serving import discard_body
from dragoman_protocols.errors import BodyTooLargeError, CutShortError, DeadlineExceededError
from dragoman_service.http.lifecycle import Lifecycle

Result = TypeVar("Result")


class ClientGoneError(Exception):
    """Nobody is left to answer."""


async def read_body(request: Request, limit_bytes: int) -> bytes:
    """The request's body, of which never more than `limit_bytes` and a chunk are held.

    Raises:
        BodyTooLargeError: It is longer; what came of it was read and dropped.
        ClientGoneError: The client left before it was complete.
    """
    body = bytearray()
    more = True
    while more and len(body) <= limit_bytes:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        body += message.get("body", b"")
        more = message.get("more_body", False)
    if len(body) <= limit_bytes:
        return bytes(body)
    body.clear()
    if more:
        await discard_body(request.receive)
    raise BodyTooLargeError(f"the body is over {limit_bytes} bytes; send the text in smaller pieces")


async def while_connected(
    request: Request,
    lifecycle: Lifecycle,
    work: Coroutine[Any, Any, Result],
    time_left_s: float | None = None,
) -> Result:
    """The result of `work`, which is cancelled once the client is gone, its time is up, or the pod has to go.

    Neither uvicorn nor FastAPI cancels a handler whose client left; nobody else would free its place.

    Args:
        request: Whose body has been read to its end.
        lifecycle: Tells when a drain has run out of time.
        work: What is done for it.
        time_left_s: Seconds until the client gives up; None is no limit.

    Raises:
        DeadlineExceededError: It took longer.
        ClientGoneError: The client left first.
        CutShortError: The drain's time was up first.
    """
    working = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(_disconnected(request))
    try:
        watched = (working, watching, lifecycle.given_up)
        await asyncio.wait(watched, timeout=time_left_s, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        if watching.done():
            raise ClientGoneError
        if not lifecycle.given_up.done():
            raise DeadlineExceededError(
                f"the translation was not finished within {time_left_s:g} s and was given up; send less text at "
                "once, or allow more time"
            )
        raise CutShortError("this replica had to leave before the translation was finished; ask again")
    finally:
        watching.cancel()
        if not working.done():
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
