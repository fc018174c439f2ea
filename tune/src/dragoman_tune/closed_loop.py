"""A closed loop of load: so many requests in flight at all times, measured over a window in its middle.

A window, rather than a count of requests, keeps the start (everybody arrives at once) and the end (the last
few run alone) out of the figures, and bounds the time of slow and fast servers alike.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from dragoman_tune.errors import ServerError
from dragoman_tune.requests import Answer, SampleRequest

CHECK_S = 0.25
"""Interval at which the loop checks whether the server runs."""

AFTER_FAILURE_S = 0.1
"""A pause after a failed request: a server that refuses at once must not get requests in a tight loop."""

Send = Callable[[SampleRequest], Awaitable[Answer]]
"""Sends one request; failures are answers with an error, and only a bug raises."""

Watch = Callable[[], str | None]
"""Why the server has ended; None while it runs."""

Mark = Callable[[], Awaitable[None]]
"""Called at the begin and at the end of the window."""


@dataclass(frozen=True)
class Pace:
    """How long a measurement takes.

    Args:
        window_s: Seconds that are measured.
        ramp_s: Most seconds before: the window begins once each of the requests in flight was answered once.
        drain_s: Most seconds after, for what is still in flight.
    """

    window_s: float = 10.0
    ramp_s: float = 15.0
    drain_s: float = 10.0


@dataclass(frozen=True)
class Sample:
    """One request that ended within the window; times are of the monotonic clock."""

    began_s: float
    ended_s: float
    output_tokens: int | None
    answer: Answer


@dataclass(frozen=True)
class Window:
    """What was measured.

    Args:
        began_s: When the window began, on the monotonic clock.
        steady: Whether each of the requests in flight had been answered once before it began.
        samples: The requests that ended in it.
    """

    began_s: float
    ended_s: float
    steady: bool
    samples: tuple[Sample, ...]


async def closed_loop(
    send: Send,
    requests: Iterator[SampleRequest],
    in_flight: int,
    pace: Pace,
    *,
    ended: Watch = lambda: None,
    mark: Mark | None = None,
) -> Window:
    """Keep `in_flight` requests going and measure a window of them.

    Raises:
        ServerError: The server ended.
    """
    samples: list[Sample] = []
    unanswered = in_flight
    ramped = asyncio.Event()
    stopping = False

    async def one_after_another() -> None:
        nonlocal unanswered
        first = True
        while not stopping:
            request = next(requests)
            began_s = time.monotonic()
            answer = await send(request)
            samples.append(Sample(began_s, time.monotonic(), request.output_tokens, answer))
            if first:
                first = False
                unanswered -= 1
                if not unanswered:
                    ramped.set()
            if answer.error is not None:
                await asyncio.sleep(AFTER_FAILURE_S)

    try:
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(_watch(ended))
            tasks = [group.create_task(one_after_another()) for _ in range(in_flight)]
            with suppress(TimeoutError):
                async with asyncio.timeout(pace.ramp_s):
                    await ramped.wait()
            steady = ramped.is_set()
            if mark is not None:
                await mark()
            began_s = time.monotonic()
            await asyncio.sleep(pace.window_s)
            ended_s = time.monotonic()
            if mark is not None:
                await mark()
            stopping = True
            await asyncio.wait(tasks, timeout=pace.drain_s)
            for task in (watching, *tasks):
                task.cancel()
    except ExceptionGroup as failed:
        if (found := failed.subgroup(ServerError)) is not None:
            raise found.exceptions[0] from None
        raise
    within = tuple(sample for sample in samples if began_s <= sample.ended_s < ended_s)
    return Window(began_s, ended_s, steady, within)


async def _watch(ended: Watch) -> None:
    while (reason := ended()) is None:  # noqa: ASYNC110 - a process has no event
        await asyncio.sleep(CHECK_S)
    raise ServerError(reason)
