"""The stages of all work that needs the engine: texts, chats and files, within a request or in the background.

    head        `Endpoints` finds the endpoint of a request. Keys are checked by routers.
    bounds      the body is read, up to the endpoint's limit; files have slots
    admission   by the pod's phase, of files also by an estimate; a refused file is never parsed
    parse       the request, and the file: large ones in a process of their own (`files.parsing`)
    admission   by the exact cost: the rest of the key's quota, the engine's queue, the time limit
    translate   ended if the client disconnects, the time is up, or the drain is over; this aborts it in the engine
    keep        the result of a file (`documents`)
    deliver     the answer, in the format of the API; a stream event by event
    delete      of a result: some time after it was delivered (`documents`)

`Pipeline._admitted` has the stages from the first admission to `translate`.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, aclosing, contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from dragoman_contract.routing import (
    CHARACTERS_HEADER,
    CHARACTERS_LEFT_HEADER,
    ROUTER_HEADER,
    TIMEOUT_HEADER,
)
from dragoman_http.bodies import ClientGoneError
from dragoman_http.exchange import Exchange
from dragoman_protocols.calls import TranslateFile
from dragoman_protocols.documents import Document, State
from dragoman_protocols.errors import (
    CutShortError,
    DeadlineExceededError,
    DrainingError,
    OverloadedError,
    QuotaError,
    RequestError,
)
from dragoman_protocols.files import MAX_FILE_BYTES
from dragoman_protocols.messages import EVENT_STREAM, Answer, Request
from dragoman_service.core.admission import Admission, Reason
from dragoman_service.core.costs import least_cost_of_file
from dragoman_service.core.translator import Translator
from dragoman_service.http.documents import DocumentStore
from dragoman_service.http.lifecycle import Lifecycle
from dragoman_service.http.metrics import RequestRecord, RequestRecords
from dragoman_service.http.work import BackgroundWork, Stream, Work

INLINE_CHARS = 4_000
"""Longer requests are read, and longer answers rendered, in a thread: this many take 4 ms, markup in answers too."""

TEXT_CHARS = 100
"""Fixed cost of a text, in characters."""

MAX_DIGITS = 18
"""Of a quota: Python refuses to read thousands of digits."""

MAX_FILES = 8
"""Files at the same time: bounds the memory that they take while they are parsed, translated and rebuilt."""

UPLOAD_WAIT_S = 2.0
"""How long an upload waits for the translation: the official clients request the state immediately, and then every five
seconds, which is long for a short letter."""

LEAVING = "this replica had to leave before the translation was finished; send it again"

Result = TypeVar("Result")

Created = Callable[[tuple[TranslateFile, Document]], object]
"""Called for an upload once its form was read."""


async def in_thread_if_long(size: int, work: Callable[[], Result]) -> Result:
    """The result of `work`, which is linear in `size`, characters or bytes; run in a thread if it takes long."""
    return work() if size <= INLINE_CHARS else await asyncio.to_thread(work)


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
            raise CutShortError(LEAVING) from None
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
    if left.isdecimal() and len(left) <= MAX_DIGITS and characters > int(left):
        raise QuotaError(f"this key has {int(left)} characters left; this request has {characters}")


@dataclass
class Pipeline:
    """Takes work through its stages.

    Args:
        lifecycle: Admits work by the pod's phase.
        admission: Admits work by its cost.
        documents: Keeps the results of files.
        translated: Characters that were translated since the start, by API.
    """

    translator: Translator
    lifecycle: Lifecycle
    admission: Admission
    records: RequestRecords
    documents: DocumentStore
    max_body_bytes: int
    translated: Counter[str] = field(default_factory=Counter)
    _files: int = 0

    async def answer(
        self, exchange: Exchange, read: Callable[[], Work | Awaitable[Work]], *, is_file: bool = False
    ) -> Answer | None:
        """The answer to a request; None where it was streamed, or its client disconnected.

        Args:
            exchange: The request, whose body has not been read.
            read: Parses the request, once its body was read; awaited if it needs more than the body, as files do.
                Raises `CallerError`.
            is_file: Whether the request is a form with a file.
        """
        request = exchange.request
        exchange.set_body(b"")  # The API of an error, should receiving the body fail.
        with ExitStack() as stack:
            record = stack.enter_context(self.records.request(exchange.endpoint.api.name, request))
            stream: Stream | None = None
            try:
                body = await exchange.read_body(self._body_limit(exchange, is_file=is_file))
                # A file's is not read yet.
                await in_thread_if_long(0 if is_file else len(body), lambda: exchange.set_body(body))
                api = exchange.endpoint.api.name
                record.received(api)
                direct = not request.text_header(ROUTER_HEADER)
                parse = (lambda: self._while_connected(exchange, read)) if is_file else read
                work, translator, time_left_s = await self._admitted(
                    stack, record, request, parse, len(body), direct=direct, is_file=is_file
                )
                stream = work.stream(translator)
                doing = (
                    work.answer(translator) if stream is None else _stream(exchange, stream, work.characters)
                )
                answer = await while_connected(exchange, self.lifecycle, doing, time_left_s)
            except ClientGoneError:
                record.disconnected()
                return None
            except Exception as error:
                refused = self._refused(record, error)
                if not exchange.started:
                    return exchange.refused(refused)
                if stream is None or not isinstance(error, RequestError):
                    raise  # The server closes the connection, so that the stream does not appear complete.
                await exchange.send(stream.failed(refused), more=False)
                return None
            self._finished(record, api, work)
        if answer is None:
            return None
        return answer._replace(headers=(*answer.headers, (CHARACTERS_HEADER, str(work.characters))))

    async def upload(
        self, exchange: Exchange, read: Callable[[Created], Awaitable[BackgroundWork]]
    ) -> Answer | None:
        """The answer to a form with a file, which is translated within the request or in the background.

        Args:
            exchange: The request, whose body has not been read.
            read: Parses the form and then the file, once the body was read. Raises `CallerError`.
        """
        with ExitStack() as slot:
            slot.enter_context(self._file_slot())
            if not exchange.endpoint.in_background:
                return await self.answer(exchange, lambda: read(lambda _: None), is_file=True)
            exchange.set_body(await exchange.read_body(self._body_limit(exchange, is_file=True)))
            return await self._start(exchange, read, slot.pop_all())

    async def _start(
        self, exchange: Exchange, read: Callable[[Created], Awaitable[BackgroundWork]], slot: ExitStack
    ) -> Answer:
        """Start to translate a file in the background; its slot is closed when that has ended.

        Raises:
            RequestError: It was refused before the answer, and before its translation.
        """
        created: asyncio.Future[tuple[TranslateFile, Document]] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._in_background(exchange, read, created))
        self.lifecycle.cut_off.add(task.cancel)

        def ended(_: object) -> None:
            self.lifecycle.cut_off.discard(task.cancel)
            slot.close()

        task.add_done_callback(ended)
        await asyncio.wait((task, created), return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait((task,), timeout=UPLOAD_WAIT_S)
        call, document = created.result() if created.done() else (None, None)
        refused = task.done() and (document is None or not document.started_s)
        if refused and document is not None:
            self.documents.drop(document)
        # The end of the drain cancels a task even before its first step.
        if refused and task.cancelled():
            raise DrainingError("this replica is shutting down; use another one")
        if refused and (error := task.result()) is not None:
            raise error
        assert call is not None
        assert document is not None
        return call.render(document)

    async def _in_background(
        self,
        exchange: Exchange,
        read: Callable[[Created], Awaitable[BackgroundWork]],
        created: asyncio.Future[tuple[TranslateFile, Document]],
    ) -> RequestError | None:
        """Translate a file; the error where it failed. Cancelled by its client, or by the end of the drain."""
        api, request = exchange.endpoint.api.name, exchange.request

        def start(found: tuple[TranslateFile, Document]) -> None:
            task = asyncio.current_task()
            assert task is not None
            self.documents.add(found[1], task.cancel)
            created.set_result(found)

        with ExitStack() as stack:
            record = stack.enter_context(self.records.request(api, request))
            try:
                # Not in the drain, even from a direct client: the Service would send its status requests elsewhere.
                work, translator, _ = await self._admitted(
                    stack,
                    record,
                    request,
                    lambda: read(start),
                    len(request.body),
                    direct=False,
                    is_file=True,
                )
                assert isinstance(work, BackgroundWork)
                await work.translate(translator)
            except asyncio.CancelledError:
                if created.done() and created.result()[1].state is State.CANCELLED:
                    record.disconnected()
                elif created.done():
                    self.documents.failed(created.result()[1], CutShortError(LEAVING))
                raise
            except Exception as error:
                refused = self._refused(record, error)
                if created.done():
                    self.documents.failed(created.result()[1], refused)
                return refused
            self._finished(record, api, work)
        return None

    async def _admitted(
        self,
        stack: ExitStack,
        record: RequestRecord,
        request: Request,
        read: Callable[[], Work | Awaitable[Work]],
        body_bytes: int,
        *,
        direct: bool,
        is_file: bool,
    ) -> tuple[Work, Translator, float]:
        """Work that may be done now, the translator for it, and its time limit in seconds.

        `stack` releases what the work holds: its count as in flight, and its slot in the queue. `direct` work is
        admitted while the pod drains, too.

        Raises:
            RequestError: It is refused.
        """
        stack.enter_context(self.lifecycle.admit(direct))
        slot = None
        if is_file:
            # The time limit depends on its characters.
            slot = stack.enter_context(self.admission.admit(least_cost_of_file(body_bytes), math.inf))
            found = read()
        else:
            found = await in_thread_if_long(body_bytes + len(request.query), read)
        work = await found if isinstance(found, Awaitable) else found
        check_left(request, work.characters)
        time_left_s = self.admission.time_limit_s(
            request.text_header(TIMEOUT_HEADER), work.characters if is_file else None
        )
        size = work.characters + TEXT_CHARS * work.text_count
        cost = await in_thread_if_long(size, lambda: work.cost)
        if slot is None:
            slot = stack.enter_context(self.admission.admit(cost, time_left_s))
        else:
            slot.set_cost(cost, time_left_s)
        record.admitted(slot, work.text_count)
        record.pair = await in_thread_if_long(size, lambda: work.check(self.translator))
        translator = self.translator.on_behalf_of(
            record.origin, time_left_s if is_file else None, work.progress
        )
        return work, translator, time_left_s

    async def _while_connected(self, exchange: Exchange, read: Callable[[], Work | Awaitable[Work]]) -> Work:
        found = read()
        assert isinstance(found, Awaitable)
        return await while_connected(exchange, self.lifecycle, found, math.inf)

    def _body_limit(self, exchange: Exchange, *, is_file: bool) -> int:
        own_bytes = max(self.max_body_bytes, MAX_FILE_BYTES) if is_file else self.max_body_bytes
        return exchange.by_head.body_limit(own_bytes)

    @contextmanager
    def _file_slot(self) -> Iterator[None]:
        if self._files >= MAX_FILES:
            raise OverloadedError(f"{MAX_FILES} files are being translated", reason=Reason.FILES)
        self._files += 1
        try:
            yield
        finally:
            self._files -= 1

    def _refused(self, record: RequestRecord, error: Exception) -> RequestError:
        """Count a failure, which is being handled; the error as the client gets it."""
        return record.refused(error if isinstance(error, RequestError) else self.records.defect())

    def _finished(self, record: RequestRecord, api: str, work: Work) -> None:
        self.translated[api] += work.characters
        record.translated()


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
