"""An open loop of load: each request is sent at its time, independent of the responses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import aiohttp

from dragoman_tune.client import translate
from dragoman_tune.requests import SampleRequest


@dataclass(frozen=True)
class Replayed:
    """One request of a replay.

    Args:
        at_s: When it was due, from the start.
        sent_s: When it was sent; later than `at_s` only where this client was too slow.
        latency_s: From when it was due to its answer.
        output_tokens: Of the answer.
        error: Why it failed; empty where it did not.
    """

    at_s: float
    sent_s: float
    latency_s: float
    output_tokens: int = 0
    error: str = ""


async def open_loop(
    session: aiohttp.ClientSession,
    url: str,
    requests: Iterator[SampleRequest],
    times: Sequence[float],
    say: Callable[[str], None],
    say_every_s: float = 30.0,
) -> list[Replayed]:
    """Send requests to a pod at these times, and return all of them once the last is answered.

    Args:
        session: With connections for all of them.
        url: The pod's.
        requests: At least as many as there are times.
        times: Seconds from now, ascending.
        say: Called with a line about the progress.
        say_every_s: How often.
    """
    loop = asyncio.get_running_loop()
    start_s = loop.time()
    done: list[Replayed] = []

    async def one(at_s: float, request: SampleRequest) -> None:
        sent_s = loop.time() - start_s
        answer = await translate(session, url, request, details=True)
        took_s = loop.time() - start_s - at_s
        tokens = 0
        if answer.error is None:
            tokens = sum(text["output_tokens"] for text in answer.document["details"])
        done.append(Replayed(at_s, sent_s, took_s, tokens, answer.error or ""))

    said_s = 0.0
    async with asyncio.TaskGroup() as group:
        for number, at_s in enumerate(times):
            if (delay_s := start_s + at_s - loop.time()) > 0:
                await asyncio.sleep(delay_s)
            group.create_task(one(at_s, next(requests)))
            if at_s - said_s >= say_every_s:
                said_s = at_s
                say(f"replay: {at_s:.0f} s, {number + 1} sent, {number + 1 - len(done)} in flight")
    return done
