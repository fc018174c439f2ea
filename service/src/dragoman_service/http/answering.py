"""Answers requests that need the engine: their bodies are bounded, their clients watched, their work admitted.

All APIs share this. `endpoints` reads a request into `Work`.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import ExitStack, aclosing
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from dragoman_contract.routing import (
    CHARACTERS_HEADER,
    CHARACTERS_LEFT_HEADER,
    ROUTER_HEADER,
    TIMEOUT_HEADER,
)
from dragoman_http.bodies import ClientGoneError
from dragoman_http.exchange import Exchange
from dragoman_protocols.errors import (
    CutShortError,
    DeadlineExceededError,
    QuotaError,
    RequestError,
)
from dragoman_protocols.languages import Pair
from dragoman_protocols.messages import EVENT_STREAM, Answer, Request
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


async def in_thread_if_long(size: int, work: Callable[[], Result]) -> Result:
    """The result of `work`, which is linear in `size`, characters or bytes; run in a thread if it takes long."""
    return work() if size <= INLINE_CHARS else await asyncio.to_thread(work)


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
                body = await exchange.read_body(limit_bytes)
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
