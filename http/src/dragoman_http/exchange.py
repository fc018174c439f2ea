"""One request and how it is answered, in the format of its API."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dragoman_contract.routing import REFUSALS, REFUSED_HEADER
from dragoman_http.bodies import Receive, Send
from dragoman_http.protocol import BoundedProtocol
from dragoman_protocols.endpoints import Api, Endpoint
from dragoman_protocols.errors import CapacityError, RequestError
from dragoman_protocols.messages import Answer, Request
from dragoman_protocols.routes import api_of, with_body


class Exchange:
    """One HTTP request, and how it is answered.

    Attributes:
        by_head: The endpoint that the request's head shows; set by `set_endpoint`.
        endpoint: The one that its body shows.
        started: Whether an answer was started.

    Args:
        connection: Where the server is the pod's own: whether the client disconnected is known from it.
    """

    by_head: Endpoint
    endpoint: Endpoint

    def __init__(
        self,
        request: Request,
        receive: Receive,
        send: Send,
        connection: BoundedProtocol | None = None,
    ) -> None:
        self.request, self.receive = request, receive
        self._send = send
        self._cycle = None if connection is None else connection.current
        self._api: Api | None = None
        self.started = False

    def set_endpoint(self, endpoint: Endpoint) -> None:
        """Set the endpoint that the request's head shows."""
        self.by_head, self.endpoint, self._api = endpoint, endpoint, endpoint.api

    def set_body(self, body: bytes) -> None:
        """Set the body, and the endpoint that it shows. Linear in the body's length."""
        self.request.body = body
        self.endpoint = with_body(self.by_head, self.request)
        self._api = self.endpoint.api

    def refused(self, error: RequestError) -> Answer:
        """An error in the API's format; marked for routers if another replica can answer without cost."""
        answer = (self._api or api_of(self.request)).error(error, self.request)
        if isinstance(error, CapacityError) and not error.started and error.code in REFUSALS:
            return answer._replace(headers=(*answer.headers, (REFUSED_HEADER, error.code)))
        return answer

    @property
    def is_gone(self) -> bool:
        """Whether the client has disconnected."""
        return self._cycle is not None and self._cycle.disconnected

    @contextmanager
    def watched(self, end: Callable[[], object]) -> Iterator[None]:
        """Call `end` if the client disconnects meanwhile; a task for each request that waits for it would cost more."""
        if self._cycle is not None:
            self._cycle.on_disconnect = end
        try:
            yield
        finally:
            if self._cycle is not None:
                self._cycle.on_disconnect = None

    async def answer(self, answer: Answer) -> None:
        """Send a whole answer."""
        await self.start(answer.status, answer.head(), close=answer.close)
        await self.send(answer.body, more=False)
        if answer.delivered is not None and not self.is_gone:
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
