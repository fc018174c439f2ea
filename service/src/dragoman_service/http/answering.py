"""From a dialect's bytes to its answer: what the routes of every dialect do, once.

A dialect reads a request into a piece of `Work` and renders its results and errors; everything between is
the same for all: the bounded body, admission, the client that may leave, streaming, counting.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import ExitStack, aclosing
from dataclasses import dataclass
from functools import partial

from starlette.requests import Request
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
from dragoman_protocols.errors import CapacityError, QuotaError, RequestError
from dragoman_protocols.events import EVENT_STREAM
from dragoman_service.core.admission import Admission
from dragoman_service.core.translator import Translator
from dragoman_service.http.accounting import Account, Accounting
from dragoman_service.http.exchange import ClientGoneError, read_body, while_connected
from dragoman_service.http.lifecycle import Lifecycle
from dragoman_service.http.work import TEXT_CHARS, Dialect, Refusing, Work, in_thread_if_long

CLIENT_CLOSED_REQUEST = 499
"""What nginx logs for a client that left; nobody receives it."""


def refusal(dialect: Refusing, error: RequestError) -> Response:
    """An error in a dialect's words, marked for routers where the pod did not begin what was asked.

    Args:
        dialect: Words it.
        error: What kept the request from being answered.
    """
    response = dialect.refuse(error)
    if isinstance(error, CapacityError) and not error.begun and error.code in REFUSALS:
        response.headers[REFUSED_HEADER] = error.code
    return response


def check_left(headers: Mapping[str, str], characters: int) -> None:
    """Refuse what is more than a router says that the caller's quota has left.

    Args:
        headers: Of the request.
        characters: That it would be charged for.

    Raises:
        QuotaError: It is more.
    """
    said = headers.get(CHARACTERS_LEFT_HEADER, "")
    if said.isdecimal() and characters > int(said):
        raise QuotaError(f"this key has {int(said)} characters left; this request has {characters}")


@dataclass(frozen=True)
class Answering:
    """What all endpoints share.

    Args:
        translator: The core.
        lifecycle: Tells whether requests are taken at all.
        admission: Tells whether there is room for one more.
        accounting: Counts and traces them.
        max_body_bytes: Largest body that is read.
    """

    translator: Translator
    lifecycle: Lifecycle
    admission: Admission
    accounting: Accounting
    max_body_bytes: int

    async def answer(self, request: Request, dialect: Dialect) -> Response:
        """Answer a request that needs the engine, on a path that one API has to itself."""
        return await self.translate(request, lambda *_: dialect, self.max_body_bytes)

    async def translate(
        self,
        request: Request,
        choose: Callable[[Request, bytes], Dialect],
        max_body_bytes: int,
    ) -> Response:
        """Answer a request that needs the engine.

        Args:
            request: Whose body has not been read.
            choose: Tells the dialect by the request's shape; for an empty body too, should reading fail.
            max_body_bytes: Maximum of the body.
        """
        dialect = choose(request, b"")
        with ExitStack() as held:
            account = held.enter_context(self.accounting.request(dialect.name, request.headers))
            try:
                body = await read_body(request, max_body_bytes)
                dialect = await in_thread_if_long(len(body), partial(choose, request, body))
                account.received(dialect.name)
                held.enter_context(self.lifecycle.admit(direct=not request.headers.get(ROUTER_HEADER)))
                size = len(body) + len(request.scope["query_string"])
                read = await in_thread_if_long(size, partial(dialect.read, request, body))
                work = await read if isinstance(read, Awaitable) else read
                characters = work.characters
                check_left(request.headers, characters)
                held.enter_context(work.reserve())
                time_left_s = self.admission.time_limit_s(
                    request.headers.get(TIMEOUT_HEADER), characters if work.is_file else None
                )
                size = characters + TEXT_CHARS * len(work.texts)
                cost = await in_thread_if_long(size, lambda: work.cost)
                place = held.enter_context(self.admission.admit(cost, time_left_s))
                account.admitted(place, len(work.texts))
                account.pair = await in_thread_if_long(size, lambda: work.check(self.translator))
                translator = self.translator.on_behalf_of(
                    account.origin, time_left_s if work.is_file else None
                )
                if work.streams:
                    stream = work.stream(translator)
                    return _Streamed(
                        self, request, dialect, work, stream, account, held.pop_all(), time_left_s
                    )
                response = await while_connected(
                    request, self.lifecycle, work.answer(translator), time_left_s
                )
            except RequestError as error:
                return refusal(dialect, account.refused(error))
            except ClientGoneError:
                account.left()
                return Response(status_code=CLIENT_CLOSED_REQUEST)
            except Exception:
                defect = self.accounting.defect()
                return refusal(dialect, account.refused(defect))
            account.translated()
            response.headers[CHARACTERS_HEADER] = str(characters)
            return response

    async def inform(
        self, request: Request, dialect: Refusing, reply: Callable[[bytes], Awaitable[Response]]
    ) -> Response:
        """Answer a request that does not need the engine, such as for detection or languages.

        Args:
            request: Whose body has not been read.
            dialect: Words the errors.
            reply: Makes the answer of the body; what it raises as `RequestError` is refused.
        """
        try:
            return await reply(await read_body(request, self.max_body_bytes))
        except RequestError as error:
            return refusal(dialect, error)
        except ClientGoneError:
            return Response(status_code=CLIENT_CLOSED_REQUEST)
        except Exception:
            return refusal(dialect, self.accounting.defect())


class _Streamed(Response):
    """An answer whose events are sent as they come.

    An error before the first event is an answer with a status of its own; one after it, an event. All is
    done in one task, which holds the request's place until the last byte is out.
    """

    media_type = EVENT_STREAM

    def __init__(
        self,
        answering: Answering,
        request: Request,
        dialect: Dialect,
        work: Work,
        stream: AsyncGenerator[bytes],
        account: Account,
        held: ExitStack,
        time_left_s: float,
    ) -> None:
        own = {
            "Cache-Control": "no-store",
            "X-Accel-Buffering": "no",
            CHARACTERS_HEADER: str(work.characters),
        }
        super().__init__(headers=own)
        del self.headers["content-length"]
        self._lifecycle, self._request, self._dialect = answering.lifecycle, request, dialect
        self._accounting = answering.accounting
        self._work, self._stream, self._account = work, stream, account
        self._held, self._time_left_s = held, time_left_s
        self._begun = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it, and let go of the place whatever happens."""
        with self._held:
            try:
                await while_connected(self._request, self._lifecycle, self._sent(send), self._time_left_s)
            except RequestError as error:
                answered = self._account.refused(error)
                if not self._begun:
                    await refusal(self._dialect, answered)(scope, receive, send)
                    return
                await send({"type": "http.response.body", "body": self._work.failed(answered)})
            except ClientGoneError:
                self._account.left()
            except Exception:
                defect = self._accounting.defect()
                self._account.refused(defect)
                if self._begun:
                    raise  # The server closes the connection, so that the stream does not pass for a whole one.
                await refusal(self._dialect, defect)(scope, receive, send)
            else:
                self._account.translated()

    async def _sent(self, send: Send) -> None:
        async with aclosing(self._stream) as events:
            async for event in events:
                if not self._begun:
                    self._begun = True
                    start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
                    await send(start)
                if event:
                    await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
