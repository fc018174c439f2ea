"""One request, and how it is answered in the format of its API; the same for pods and routers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from dragoman_contract.routing import REFUSALS, REFUSED_HEADER
from dragoman_http.bodies import BodyMemory, ClientGoneError, Message, Receive, Send, discard_body
from dragoman_http.protocol import EXTENSION, Cycle
from dragoman_protocols.endpoints import Api, Endpoint
from dragoman_protocols.errors import (
    BodyTooLargeError,
    CapacityError,
    OverloadedError,
    RequestError,
    TooManyConnectionsError,
)
from dragoman_protocols.messages import Answer, Request
from dragoman_protocols.routes import api_of, with_body

TOO_LARGE = 413


class Exchange:
    """One HTTP request, and how it is answered.

    Args:
        request: Its head was read from `scope`.
        memory: Counts the memory of bodies; None: it is not counted.

    Attributes:
        by_head: The endpoint that the request's head shows; set by `set_endpoint`.
        endpoint: The one that its body shows, once that is set.
        reserved_bytes: Memory that the body takes.
        started: Whether an answer was started.
        cycle: The server's; None under another server than `make_server`'s, where a disconnect is not noticed.
    """

    __slots__ = (
        "_memory", "_send", "by_head", "cycle", "endpoint", "has_endpoint", "receive", "request", "reserved_bytes",
        "started",
    )  # fmt: skip

    by_head: Endpoint
    endpoint: Endpoint

    def __init__(
        self,
        request: Request,
        scope: Message,
        receive: Receive,
        send: Send,
        memory: BodyMemory | None = None,
    ) -> None:
        self.request, self.receive, self._send, self._memory = request, receive, send, memory
        connection = scope["extensions"].get(EXTENSION) if "extensions" in scope else None
        self.cycle: Cycle | None = None if connection is None else connection.current
        self.reserved_bytes = 0
        self.has_endpoint = self.started = False

    def set_endpoint(self, endpoint: Endpoint) -> None:
        """Set the endpoint that the request's head shows."""
        self.by_head = self.endpoint = endpoint
        self.has_endpoint = True

    def set_body(self, body: bytes) -> None:
        """Set the body, and the endpoint that it shows. Linear in the body's length."""
        self.request.body = body
        self.endpoint = with_body(self.by_head, self.request)

    async def read_body(
        self, limit_bytes: int, feed: Callable[[bytes], Awaitable[None]] | None = None
    ) -> bytes:
        """The body, of which never more than `limit_bytes` and a chunk are held.

        Args:
            limit_bytes: Maximum size.
            feed: Gets the parts as they arrive.

        Raises:
            BodyTooLargeError: It is longer; the rest was read and dropped.
            OverloadedError: The memory for bodies is used up.
            ClientGoneError: The client disconnected before it was complete.
        """
        parts: list[bytes] = []
        size, more = 0, True
        while more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            part, more = message.get("body", b""), message.get("more_body", False)
            length = len(part)
            size += length
            expected = int(self.request.header(b"content-length") or 0) if more and not parts else size
            if size > limit_bytes or expected > limit_bytes:
                break
            if (memory := self._memory) is not None:
                if memory.used_bytes + length > memory.max_bytes:
                    raise OverloadedError("the memory limit for request bodies is reached; retry later", 1)
                memory.used_bytes += length
                self.reserved_bytes += length
            parts.append(part)
            if feed is not None:
                await feed(part)
        else:
            return parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        self.release()
        if more:
            await discard_body(self.receive)
        raise BodyTooLargeError(f"the body is over {limit_bytes} bytes; send less at once")

    def release(self) -> None:
        """Give the memory of the body back."""
        if self._memory is not None:
            self._memory.used_bytes -= self.reserved_bytes
            self.reserved_bytes = 0

    @property
    def api(self) -> Api:
        """The API of the request, or the nearest one of an unknown path."""
        if not self.has_endpoint:
            return api_of(self.request)
        # Where the body was not read, too: a form is for another API than JSON.
        endpoint = self.endpoint if self.request.body else with_body(self.by_head, self.request)
        return endpoint.api

    def error(self, error: RequestError) -> Answer:
        """An error in the format of the API."""
        return self.api.error(error, self.request)

    def refused(self, error: RequestError) -> Answer:
        """The same of a pod: marked for routers if another replica can answer without cost."""
        answer = self.error(error)
        if isinstance(error, CapacityError) and not error.started and error.code in REFUSALS:
            return answer._replace(headers=(*answer.headers, (REFUSED_HEADER, error.code)))
        return answer

    @property
    def is_gone(self) -> bool:
        """Whether the client has disconnected."""
        return self.cycle is not None and self.cycle.disconnected

    @contextmanager
    def watched(self, end: Callable[[], object]) -> Iterator[None]:
        """Call `end` if the client disconnects meanwhile; a task for each request that waits for it would cost more."""
        if self.cycle is not None:
            self.cycle.on_disconnect = end
        try:
            yield
        finally:
            if self.cycle is not None:
                self.cycle.on_disconnect = None

    async def answer(self, answer: Answer) -> None:
        """Send a whole answer."""
        close = answer.close or answer.status == TOO_LARGE
        if self.cycle is None:
            await self.start(answer.status, answer.head(), close=close)
            await self.send(answer.body, more=False)
        else:
            self.started = True
            if close:
                self.cycle.keep_alive = False
            await self.cycle.answer(answer.status, answer.head(), answer.body)
        if answer.delivered is not None and not self.is_gone and self.request.method != "HEAD":
            answer.delivered()

    async def start(self, status: int, headers: list[tuple[bytes, bytes]], *, close: bool = False) -> None:
        """Send the head of an answer."""
        self.started = True
        if close:
            headers.append((b"connection", b"close"))
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def send(self, body: bytes, *, more: bool) -> None:
        """Send a part of the body."""
        await self._send({"type": "http.response.body", "body": body, "more_body": more})

    async def refuse_connection(self, max_connections: int) -> None:
        """Refuse the request of a connection that is one too many; the answer ends the connection.

        Raises:
            TooManyConnectionsError: Always.
        """
        # A connection that is closed with bytes that were not read is reset, and its client may not read the answer.
        await discard_body(self.receive)
        if self.cycle is not None:
            self.cycle.keep_alive = False
        raise TooManyConnectionsError(
            f"this router has its maximum of {max_connections} connections; retry later, and use connections again",
            1,
        )
