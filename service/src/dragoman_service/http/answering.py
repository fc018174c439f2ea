"""Answers requests that need the engine: their bodies are bounded, their clients watched, their work admitted.

All APIs share this. `endpoints` reads a request into `Work`.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import ExitStack, aclosing
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from starlette.requests import Request as Received
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dragoman_contract.routing import (
    CHARACTERS_HEADER,
    CHARACTERS_LEFT_HEADER,
    REFUSALS,
    REFUSED_HEADER,
    ROUTER_HEADER,
    TIMEOUT_HEADER,
)
from dragoman_contract.serving import discard_body
from dragoman_protocols.api import Answer, Endpoint, Request
from dragoman_protocols.bodies import JSON_TYPE
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
from dragoman_protocols.routes import with_body
from dragoman_service.core.admission import Admission
from dragoman_service.core.costs import Cost
from dragoman_service.core.translator import Translator
from dragoman_service.http.lifecycle import Lifecycle
from dragoman_service.http.metrics import Account, Accounting

CLIENT_CLOSED_REQUEST = 499
"""Status that nginx logs for a client that disconnected; it is not sent."""

INLINE_CHARS = 4_000
"""Longer requests are read, and longer answers rendered, in a thread: this many take 4 ms, markup in answers too."""

TEXT_CHARS = 100
"""Fixed cost of a text, in characters."""

WITHOUT_BODY = (204, 304)

Result = TypeVar("Result")


class ClientGoneError(Exception):
    """The client disconnected."""


async def in_thread_if_long(size: int, work: Callable[[], Result]) -> Result:
    """The result of `work`, which is linear in `size`, characters or bytes; run in a thread if it takes long."""
    return work() if size <= INLINE_CHARS else await asyncio.to_thread(work)


def response_of(answer: Answer) -> Response:
    """An answer as Starlette sends it."""
    headers = dict(answer.headers)
    if answer.status not in WITHOUT_BODY:
        headers.setdefault("Content-Type", JSON_TYPE)
    if answer.close:
        headers["Connection"] = "close"
    return Response(answer.body, answer.status, headers)


@dataclass
class Exchange:
    """One HTTP request at an endpoint, and how errors are answered.

    Args:
        received: The request as Starlette has it.
        request: The same as the APIs read it.
        by_head: The endpoint that the request's head shows.
    """

    received: Received
    request: Request
    by_head: Endpoint

    def __post_init__(self) -> None:
        self.endpoint = self.by_head

    def set_body(self, body: bytes) -> None:
        """Set the body, and the endpoint that it shows. Linear in the body's length."""
        self.request.body = body
        self.endpoint = with_body(self.by_head, self.request)

    def refused(self, error: RequestError) -> Response:
        """An error in the API's format; marked for routers if another replica can answer without cost."""
        response = response_of(self.endpoint.api.error(error, self.request))
        if isinstance(error, CapacityError) and not error.started and error.code in REFUSALS:
            response.headers[REFUSED_HEADER] = error.code
        return response


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


async def read_body(received: Received, limit_bytes: int) -> bytes:
    """The request's body, of which never more than `limit_bytes` and a chunk are held.

    Raises:
        BodyTooLargeError: It is longer; the rest was read and dropped.
        ClientGoneError: The client disconnected before it was complete.
    """
    body = bytearray()
    more = True
    while more and len(body) <= limit_bytes:
        message = await received.receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        body += message.get("body", b"")
        more = message.get("more_body", False)
    if len(body) <= limit_bytes:
        return bytes(body)
    body.clear()
    if more:
        await discard_body(received.receive)
    raise BodyTooLargeError(f"the body is over {limit_bytes} bytes; send the text in smaller pieces")


async def while_connected(
    received: Received, lifecycle: Lifecycle, work: Coroutine[Any, Any, Result], time_left_s: float
) -> Result:
    """The result of `work`, which is cancelled when the client disconnects or the time of it or the drain is up.

    Neither uvicorn nor FastAPI cancels a handler whose client disconnected, and its slot would stay taken.

    Raises:
        DeadlineExceededError: It took longer than `time_left_s`.
        ClientGoneError: The client disconnected first.
        CutShortError: The drain's time was up first.
    """
    working = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(_disconnected(received))
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


async def _disconnected(received: Received) -> None:
    while (await received.receive())["type"] != "http.disconnect":
        pass


def check_left(headers: Mapping[str, str], characters: int) -> None:
    """Refuse a request that exceeds what is left of the caller's quota, as its router reports it.

    Raises:
        QuotaError: It does.
    """
    left = headers.get(CHARACTERS_LEFT_HEADER, "")
    if left.isdecimal() and characters > int(left):
        raise QuotaError(f"this key has {int(left)} characters left; this request has {characters}")


@dataclass(frozen=True)
class Answering:
    """Answers the requests of all endpoints.

    Args:
        translator: The core.
        lifecycle: Admits requests by the pod's phase.
        admission: Admits requests by their cost.
        accounting: Counts and traces them.
        max_body_bytes: Maximum of a body.
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
    ) -> Response:
        """Answer a request that needs the engine.

        Args:
            exchange: The request, whose body has not been read.
            read: The work of a request whose body was read; awaited if it needs more than its body. Raises
                `CallerError`.
        """
        headers = exchange.received.headers
        exchange.set_body(b"")  # The API of an error, should receiving the body fail.
        with ExitStack() as stack:
            account = stack.enter_context(self.accounting.request(exchange.endpoint.api.name, headers))
            try:
                limit_bytes = exchange.by_head.body_limit(self.max_body_bytes)
                body = await read_body(exchange.received, limit_bytes)
                await in_thread_if_long(len(body), lambda: exchange.set_body(body))
                account.received(exchange.endpoint.api.name)
                stack.enter_context(self.lifecycle.admit(direct=not headers.get(ROUTER_HEADER)))
                size = len(body) + len(exchange.request.query)
                found = await in_thread_if_long(size, lambda: read(exchange))
                work = await found if isinstance(found, Awaitable) else found
                characters = work.characters
                check_left(headers, characters)
                time_left_s = self.admission.time_limit_s(
                    headers.get(TIMEOUT_HEADER), characters if work.is_file else None
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
                if stream is not None:
                    return _Streamed(
                        self, exchange, stream, characters, account, stack.pop_all(), time_left_s
                    )
                answer = await while_connected(
                    exchange.received, self.lifecycle, work.answer(translator), time_left_s
                )
            except RequestError as error:
                return exchange.refused(account.refused(error))
            except ClientGoneError:
                account.disconnected()
                return Response(status_code=CLIENT_CLOSED_REQUEST)
            except Exception:
                return exchange.refused(account.refused(self.accounting.defect()))
            self.translated[exchange.endpoint.api.name] += characters
            account.translated()
            response = response_of(answer)
            response.headers[CHARACTERS_HEADER] = str(characters)
            return response

    async def respond(self, exchange: Exchange, answer: Callable[[bytes], Awaitable[Answer]]) -> Response:
        """Answer a request that does not need the engine, such as for detection or languages.

        Args:
            exchange: The request, whose body has not been read.
            answer: Makes the answer from the body; may raise `RequestError`.
        """
        try:
            return response_of(await answer(await read_body(exchange.received, self.max_body_bytes)))
        except RequestError as error:
            return exchange.refused(error)
        except ClientGoneError:
            return Response(status_code=CLIENT_CLOSED_REQUEST)
        except Exception:
            return exchange.refused(self.accounting.defect())


class _Streamed(Response):
    """An answer whose events are sent one by one.

    An error before the first event is an answer with a status of its own; one after it, an event. All is
    done in one task, which holds the request's slot until the last byte is sent.
    """

    media_type = EVENT_STREAM

    def __init__(
        self,
        answering: Answering,
        exchange: Exchange,
        stream: Stream,
        characters: int,
        account: Account,
        slot: ExitStack,
        time_left_s: float,
    ) -> None:
        super().__init__(
            headers={
                "Cache-Control": "no-store",
                "X-Accel-Buffering": "no",
                CHARACTERS_HEADER: str(characters),
            }
        )
        del self.headers["content-length"]
        self._answering, self._exchange = answering, exchange
        self._stream, self._account = stream, account
        self._slot, self._time_left_s = slot, time_left_s
        self._started = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it, and release the slot."""
        exchange = self._exchange
        with self._slot:
            try:
                await while_connected(
                    exchange.received, self._answering.lifecycle, self._send_events(send), self._time_left_s
                )
            except RequestError as error:
                refused = self._account.refused(error)
                if not self._started:
                    await exchange.refused(refused)(scope, receive, send)
                    return
                await send({"type": "http.response.body", "body": self._stream.failed(refused)})
            except ClientGoneError:
                self._account.disconnected()
            except Exception:
                defect = self._answering.accounting.defect()
                self._account.refused(defect)
                if self._started:
                    raise  # The server closes the connection, so that the stream does not appear complete.
                await exchange.refused(defect)(scope, receive, send)
            else:
                self._account.translated()

    async def _send_events(self, send: Send) -> None:
        async with aclosing(self._stream.events) as events:
            async for event in events:
                if not self._started:
                    self._started = True
                    await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                if event:
                    await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
