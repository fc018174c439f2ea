"""Answers requests that need the engine: their bodies are bounded, their clients watched, their work admitted.

All APIs share this. `endpoints` reads a request into `Work`.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import ExitStack, aclosing, contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from dragoman_contract.http_protocol import BoundedProtocol
from dragoman_contract.routing import (
    CHARACTERS_HEADER,
    CHARACTERS_LEFT_HEADER,
    REFUSALS,
    REFUSED_HEADER,
    ROUTER_HEADER,
    TIMEOUT_HEADER,
)
from dragoman_contract.serving import Receive, Send, discard_body
from dragoman_protocols.endpoints import Api, Endpoint
from dragoman_protocols.errors import (
    BodyTooLargeError,
    CapacityError,
    CutShortError,
    DeadlineExceededError,
    QuotaError,
    RequestError,
)
from dragoman_protocols.events import EVENT_STREAM
from dragoman_protocols.languages import Pair
from dragoman_protocols.messages import Answer, Request
from dragoman_protocols.routes import api_of, with_body
from dragoman_service.core.admission import Admission
from dragoman_service.core.costs import Cost
from dragoman_service.core.translator import Translator
from dragoman_service.http.lifecycle import Lifecycle
from dragoman_service.http.metrics import Accounting

INLINE_CHARS = 4_000
"""Longer requests are read, and longer answers rendered, in a thread: this many take 4 ms, markup in answers too."""

TEXT_CHARS = 100
"""Fixed cost of a text, in characters."""

Result = TypeVar("Result")


class ClientGoneError(Exception):
    """The client disconnected."""


async def in_thread_if_long(size: int, work: Callable[[], Result]) -> Result:
    """The result of `work`, which is linear in `size`, characters or bytes; run in a thread if it takes long."""
    return work() if size <= INLINE_CHARS else await asyncio.to_thread(work)


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
        scheme: str = "http",
        connection: BoundedProtocol | None = None,
    ) -> None:
        self.request, self.receive, self.scheme = request, receive, scheme
        self._send = send
        self._cycle = None if connection is None else connection.exchange
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

    async def start(self, status: int, headers: list[tuple[bytes, bytes]], *, close: bool = False) -> None:
        """Send the head of an answer."""
        self.started = True
        if close:
            headers.append((b"connection", b"close"))
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def send(self, body: bytes, *, more: bool) -> None:
        """Send a part of the body."""
        await self._send({"type": "http.response.body", "body": body, "more_body": more})


class Stream(NamedTuple):
    """A streamed answer.

    Args:
        events: Its events; closing it aborts the work in the engine.
        failed: Makes the last event of a stream that cannot be finished.
    """

    events: AsyncGenerator[bytes]
    failed: Callable[[RequestError], bytes]


class Work(ABC):
    """What the core does for one HTTP request.

    Attributes:
        characters: What it is charged for.
        text_count: Texts for the engine.
        is_file: Whether it is a file, whose time limit increases with its size.
    """

    characters: int
    text_count: int
    is_file = False

    @property
    @abstractmethod
    def cost(self) -> Cost:
        """Its cost for the engine."""

    @abstractmethod
    def check(self, translator: Translator) -> Pair | None:
        """The pair that it is counted as; None if it is no translation.

        Raises:
            CallerError: It is not supported.
        """

    @abstractmethod
    async def answer(self, translator: Translator) -> Answer:
        """Do it; cancelling aborts it in the engine."""

    def stream(self, translator: Translator) -> Stream | None:
        """Do it as a stream; None if its answer is not streamed."""
        del translator
        return None


async def read_body(receive: Receive, limit_bytes: int) -> bytes:
    """The request's body, of which never more than `limit_bytes` and a chunk are held.

    Raises:
        BodyTooLargeError: It is longer; the rest was read and dropped.
        ClientGoneError: The client disconnected before it was complete.
    """
    body = bytearray()
    more = True
    while more and len(body) <= limit_bytes:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        body += message.get("body", b"")
        more = message.get("more_body", False)
    if len(body) <= limit_bytes:
        return bytes(body)
    body.clear()
    if more:
        await discard_body(receive)
    raise BodyTooLargeError(f"the body is over {limit_bytes} bytes; send the text in smaller pieces")


async def while_connected(
    exchange: Exchange, lifecycle: Lifecycle, work: Awaitable[Result], time_left_s: float
) -> Result:
    """The result of `work`, which is cancelled when the client disconnects or the time of it or the drain is up.

    Otherwise the slot of a client that disconnected would stay taken.

    Raises:
        DeadlineExceededError: It took longer than `time_left_s`.
        ClientGoneError: The client disconnected first.
        CutShortError: The drain's time was up first.
    """
    limit = asyncio.timeout(time_left_s)

    def end() -> None:
        if not limit.expired():
            limit.reschedule(0)

    try:
        async with limit:
            with exchange.watched(end):
                lifecycle.cut_off.add(end)
                if lifecycle.given_up or exchange.is_gone:
                    end()
                try:
                    return await work
                finally:
                    lifecycle.cut_off.discard(end)
    except TimeoutError:
        if not limit.expired():
            raise
        if exchange.is_gone:
            raise ClientGoneError from None
        if lifecycle.given_up:
            raise CutShortError(
                "this replica had to leave before the translation was finished; ask again"
            ) from None
        raise DeadlineExceededError(
            f"the translation was not finished within {time_left_s:g} s and was given up; send less text at "
            "once, or allow more time"
        ) from None


def check_left(request: Request, characters: int) -> None:
    """Refuse a request that exceeds what is left of the caller's quota, as its router reports it.

    Raises:
        QuotaError: It does.
    """
    left = request.text_header(CHARACTERS_LEFT_HEADER) or ""
    if left.isdecimal() and characters > int(left):
        raise QuotaError(f"this key has {int(left)} characters left; this request has {characters}")


@dataclass(frozen=True)
class Answering:
    """Answers the requests of all endpoints.

    Args:
        lifecycle: Admits requests by the pod's phase.
        admission: Admits requests by their cost.
        translated: Characters that were translated since the start, by API.
    """

    translator: Translator
    lifecycle: Lifecycle
    admission: Admission
    accounting: Accounting
    max_body_bytes: int
    translated: Counter[str] = field(default_factory=Counter)

    async def translate(
        self, exchange: Exchange, read: Callable[[Exchange], Work | Awaitable[Work]]
    ) -> Answer | None:
        """The answer to a request that needs the engine; None where it was streamed, or its client disconnected.

        Args:
            exchange: The request, whose body has not been read.
            read: The work of a request whose body was read; awaited if it needs more than its body. Raises
                `CallerError`.
        """
        request = exchange.request
        exchange.set_body(b"")  # The API of an error, should receiving the body fail.
        with ExitStack() as stack:
            account = stack.enter_context(self.accounting.request(exchange.endpoint.api.name, request))
            stream: Stream | None = None
            try:
                limit_bytes = exchange.by_head.body_limit(self.max_body_bytes)
                body = await read_body(exchange.receive, limit_bytes)
                await in_thread_if_long(len(body), lambda: exchange.set_body(body))
                account.received(exchange.endpoint.api.name)
                stack.enter_context(self.lifecycle.admit(direct=not request.text_header(ROUTER_HEADER)))
                size = len(body) + len(request.query)
                found = await in_thread_if_long(size, lambda: read(exchange))
                work = await found if isinstance(found, Awaitable) else found
                characters = work.characters
                check_left(request, characters)
                time_left_s = self.admission.time_limit_s(
                    request.text_header(TIMEOUT_HEADER), characters if work.is_file else None
                )
                size = characters + TEXT_CHARS * work.text_count
                cost = await in_thread_if_long(size, lambda: work.cost)
                slot = stack.enter_context(self.admission.admit(cost, time_left_s))
                account.admitted(slot, work.text_count)
                account.pair = await in_thread_if_long(size, lambda: work.check(self.translator))
                translator = self.translator.on_behalf_of(
                    account.origin, time_left_s if work.is_file else None
                )
                stream = work.stream(translator)
                answering = (
                    work.answer(translator) if stream is None else _stream(exchange, stream, characters)
                )
                answer = await while_connected(exchange, self.lifecycle, answering, time_left_s)
            except RequestError as error:
                refused = account.refused(error)
                if stream is None or not exchange.started:
                    return exchange.refused(refused)
                await exchange.send(stream.failed(refused), more=False)
                return None
            except ClientGoneError:
                account.disconnected()
                return None
            except Exception:
                defect = account.refused(self.accounting.defect())
                if exchange.started:
                    raise  # The server closes the connection, so that the stream does not appear complete.
                return exchange.refused(defect)
            self.translated[exchange.endpoint.api.name] += characters
            account.translated()
            if answer is None:
                return None
            return answer._replace(headers=(*answer.headers, (CHARACTERS_HEADER, str(characters))))


async def _stream(exchange: Exchange, stream: Stream, characters: int) -> None:
    """Send events one by one; an error before the first is an answer with a status of its own."""
    async with aclosing(stream.events) as events:
        async for event in events:
            if not exchange.started:
                head = [
                    (b"cache-control", b"no-store"),
                    (b"x-accel-buffering", b"no"),
                    (b"content-type", f"{EVENT_STREAM}; charset=utf-8".encode()),
                    (CHARACTERS_HEADER.lower().encode(), b"%d" % characters),
                ]
                await exchange.start(200, head)
            if event:
                await exchange.send(event, more=True)
    await exchange.send(b"", more=False)
