"""What one HTTP request comes to: work for the core, as a dialect reads it and writes its answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, aclosing, nullcontext
from dataclasses import dataclass
from typing import Protocol, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from dragoman_protocols.api import JSON_TYPE, Answer, Events, Results
from dragoman_protocols.errors import RequestError
from dragoman_protocols.languages import Pair
from dragoman_protocols.translation import TranslationRequest, TranslationResult
from dragoman_service.core.costs import Cost, cost_of, demands_of
from dragoman_service.core.translator import Translator

MOST_REQUESTS_SIDE_BY_SIDE = 8
"""Of one call: each may have many texts in the engine at once."""

INLINE_CHARS = 4_000
"""Longer requests are read, and longer answers rendered, in a thread: this many take 4 ms, markup in answers too."""

TEXT_CHARS = 100
"""What a text costs beside its characters, in theirs."""

WITHOUT_BODY = (204, 304)

Value = TypeVar("Value")


async def in_thread_if_long(size: int, work: Callable[[], Value]) -> Value:
    """What `work` gives, made in a thread where it takes long.

    Args:
        size: Of what it works on, in characters or bytes.
        work: Linear in `size`.
    """
    return work() if size <= INLINE_CHARS else await asyncio.to_thread(work)


def response_of(answer: Answer) -> Response:
    """An answer as Starlette sends it."""
    headers = dict(answer.headers)
    if answer.status not in WITHOUT_BODY:
        headers.setdefault("Content-Type", JSON_TYPE)
    if answer.close:
        headers["Connection"] = "close"
    return Response(answer.body, answer.status, headers)


class Work(Protocol):
    """What one HTTP request wants of the core."""

    @property
    def texts(self) -> Sequence[str]:
        """What the engine will be given."""
        ...

    @property
    def cost(self) -> Cost:
        """What it takes of the engine: by `costs.cost_of`."""
        ...

    @property
    def characters(self) -> int:
        """What it is charged for: code points of its texts, once for each target."""
        ...

    @property
    def is_file(self) -> bool:
        """Whether it is a file, whose time grows with its size."""
        ...

    def reserve(self) -> AbstractContextManager[None]:
        """Hold what it will use of the pod's own quota while it is answered.

        Raises:
            QuotaError: There is not so much left.
        """
        ...

    @property
    def streams(self) -> bool:
        """Whether `stream` is what was asked for, rather than `answer`."""
        ...

    def check(self, translator: Translator) -> Pair | None:
        """The pair that it counts as, None where it is no translation.

        Raises:
            CallerError: It cannot be answered as it is.
        """
        ...

    async def answer(self, translator: Translator) -> Response:
        """Have it done; cancelling aborts it in the engine."""
        ...

    def stream(self, translator: Translator) -> AsyncGenerator[bytes]:
        """Have it done, the answer's events as they come; closing it aborts it in the engine."""
        ...

    def failed(self, error: RequestError) -> bytes:
        """The last event of a stream that cannot be finished."""
        ...


@dataclass(frozen=True)
class Call:
    """One HTTP request that asks for translations: the usual work.

    Args:
        requests: What the core is asked for: one, or one for each target language, done side by side.
        render: Makes the answer of their results; in a thread, where they are long.
        events: Set where the one request's translations are to be streamed.
        charged: Characters, where they are not those of the requests: texts that are not translated count too.
        reserve: See `Work.reserve`.
    """

    requests: tuple[TranslationRequest, ...]
    render: Callable[[Results], Response]
    events: Events | None = None
    charged: int | None = None
    reserve: Callable[[], AbstractContextManager[None]] = nullcontext
    is_file: bool = False

    @property
    def characters(self) -> int:
        """See `Work.characters`."""
        return sum(map(len, self.texts)) if self.charged is None else self.charged

    @property
    def texts(self) -> Sequence[str]:
        """The texts, once for each language that they are translated into."""
        return [text for asked in self.requests for text in asked.texts]

    @property
    def cost(self) -> Cost:
        """Of all requests together."""
        return cost_of(demand for asked in self.requests for demand in demands_of(asked))

    @property
    def streams(self) -> bool:
        """Whether there are events to write."""
        return self.events is not None

    def check(self, translator: Translator) -> Pair | None:
        """The last request's pair, once all have been checked."""
        pairs = [translator.check(asked) for asked in self.requests]
        return pairs[-1] if pairs else None

    async def answer(self, translator: Translator) -> Response:
        """All requests side by side; the first failure ends the others."""
        if len(self.requests) == 1:
            return await self._rendered([await translator.translate(self.requests[0])])
        places = asyncio.Semaphore(MOST_REQUESTS_SIDE_BY_SIDE)

        async def in_turn(asked: TranslationRequest) -> list[TranslationResult]:
            async with places:
                return await translator.translate(asked)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(in_turn(asked)) for asked in self.requests]
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        return await self._rendered([task.result() for task in tasks])

    async def _rendered(self, results: Results) -> Response:
        chars = sum(len(result.text) for each in results for result in each)
        return await in_thread_if_long(chars, lambda: self.render(results))

    async def stream(self, translator: Translator) -> AsyncGenerator[bytes]:
        """The first request's translations as the dialect's events."""
        assert self.events is not None
        async with aclosing(translator.stream(self.requests[0])) as deltas:
            async for delta in deltas:
                yield self.events.delta(delta)
        yield self.events.end()

    def failed(self, error: RequestError) -> bytes:
        """See `Events.failed`."""
        assert self.events is not None
        return self.events.failed(error)


class Refusing(Protocol):
    """What can say no in the terms of an API."""

    def refuse(self, error: RequestError) -> Response:
        """The answer for an error, in the status and shape of this API."""
        ...


class Dialect(Refusing, Protocol):
    """One API as its clients know it."""

    @property
    def name(self) -> str:
        """Short and stable: a label of metrics."""
        ...

    def read(self, request: Request, body: bytes) -> Work | Awaitable[Work]:
        """What a request asks for; awaited where reading takes long enough for a thread.

        Args:
            request: Its method, query and headers; the body has been read.
            body: All of it.

        Raises:
            CallerError: It cannot be answered as it is.
        """
        ...
