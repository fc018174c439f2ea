"""A closed loop of load: so many requests in flight at all times, measured over a window in its middle.

A window, rather than a count of requests, keeps the start (everybody arrives at once) and the end (the last
few run alone) out of the figures, and bounds the time of slow and fast servers alike.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from dragoman_tune.errors import ServerError
from dragoman_tune.requests import Answer, Request

CHECK_S = 0.25
"""Interval at which the loop checks whether the server runs."""

AFTER_FAILURE_S = 0.1
"""A pause after a failed request: a server that refuses at once must not get requests in a tight loop."""

Send = Callable[[Request], Awaitable[Answer]]
"""Sends one request; failures are answers with an error, and only a bug raises."""

Watch = Callable[[], str | None]
"""Why the server has ended; None while it runs."""

Mark = Callable[[], Awaitable[None]]
"""Called where the window begins and where it ends."""


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
        ended_s: When it ended.
        steady: Whether each of the requests in flight had been answered once before it began.
        samples: The requests that ended in it.
    """

    began_s: float
    ended_s: float
    steady: bool
    samples: tuple[Sample, ...]


async def nothing() -> None:
    """The mark of who wants none."""


async def closed_loop(
    send: Send,
    requests: Iterator[Request],
    in_flight: int,
    pace: Pace,
    *,
    ended: Watch = lambda: None,
    mark: Mark = nothing,
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

    tasks = [asyncio.create_task(one_after_another()) for _ in range(in_flight)]
    try:
        await _until(time.monotonic() + pace.ramp_s, ended, tasks, ramped)
        steady = ramped.is_set()
        await mark()
        began_s = time.monotonic()
        await _until(began_s + pace.window_s, ended, tasks)
        ended_s = time.monotonic()
        await mark()
        stopping = True
        await asyncio.wait(tasks, timeout=pace.drain_s)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    within = tuple(sample for sample in samples if began_s <= sample.ended_s < ended_s)
    return Window(began_s, ended_s, steady, within)


async def _until(
    end_s: float, ended: Watch, tasks: list[asyncio.Task[None]], event: asyncio.Event | None = None
) -> None:
    """Wait until a moment, or until the event if that is sooner."""
    while (left_s := end_s - time.monotonic()) > 0:
        reason = ended()
        if reason is not None:
            raise ServerError(reason)
        for task in tasks:
            if task.done():
                task.result()
        if event is None:
            await asyncio.sleep(min(CHECK_S, left_s))
            continue
        try:
            async with asyncio.timeout(min(CHECK_S, left_s)):
                await event.wait()
            return
        except TimeoutError:
            continue
