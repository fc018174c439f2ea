"""One point of a measurement: an arm, a load, so many in flight."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

import aiohttp

from dragoman_bench.catalogue import MODEL_NAME, Arm, Interface
from dragoman_bench.gpu import GPU, summary
from dragoman_bench.loads import stream
from dragoman_bench.plan import Plan
from dragoman_bench.prompting import Prompting
from dragoman_tune.client import connections, post, translate
from dragoman_tune.closed_loop import Pace, Send, closed_loop
from dragoman_tune.errors import MetricsError, ServerError
from dragoman_tune.figures import Figures, figures
from dragoman_tune.requests import Answer, Request
from dragoman_tune.scrape import EngineTimes, Scrape, between, scrape
from dragoman_tune.server import Server


@dataclass
class Observed:
    """What was read at both ends of a window."""

    scrapes: list[Scrape] = field(default_factory=list)
    cpu: list[tuple[float, float, float]] = field(default_factory=list)
    """When, by the monotonic clock, and the processor time so far of the server's own process and of its others."""
    host_bytes: int = 0

    def cores(self) -> tuple[float, float] | None:
        """Cores that the server's own process kept busy in the window, and that its others did."""
        if len(self.cpu) < 2:
            return None
        (began_s, *before), (ended_s, *after) = self.cpu[:2]
        own, others = (
            (late - early) / (ended_s - began_s) for early, late in zip(before, after, strict=True)
        )
        return own, others


async def measure(
    arm: Arm,
    server: Server,
    plan: Plan,
    prompting: Prompting,
    kind: str,
    in_flight: int,
    pace: Pace,
    seed: int,
    gpu: GPU | None,
) -> dict[str, Any]:
    """Measure a point.

    Returns:
        The point as results hold it.

    Raises:
        ServerError: The server ended, or could not measure itself.
    """
    observed = Observed()
    async with connections() as session:

        async def mark() -> None:
            observed.cpu.append((time.monotonic(), *server.cpu_s()))
            observed.host_bytes = max(observed.host_bytes, server.memory_bytes())
            if arm.metrics:
                with suppress(MetricsError):
                    observed.scrapes.append(await scrape(session, server.url))

        if arm.interface is Interface.INTERNAL:
            measured, span = await _inside(session, server, plan, kind, in_flight, pace, seed, mark)
        else:
            send = _sender(arm, session, server, prompting)
            requests = stream(
                kind, str(plan.model), None if plan.requests is None else str(plan.requests), seed
            )
            window = await closed_loop(send, requests, in_flight, pace, ended=server.ended, mark=mark)
            measured, span = figures(window), (window.began_s, window.ended_s)
    times = between(*observed.scrapes[:2]) if len(observed.scrapes) > 1 else None
    busy = summary(gpu.readings, *span) if gpu is not None else None
    cores = observed.cores()
    return {
        "load": kind,
        "in_flight": in_flight,
        "seed": seed,
        **_merged(measured, times),
        "gpu": None if busy is None else asdict(busy),
        "host_memory_bytes": observed.host_bytes,
        "front_end_cores": None if cores is None else cores[0],
        "engine_cores": None if cores is None else cores[1],
    }


def _merged(measured: Figures, times: EngineTimes | None) -> dict[str, Any]:
    """The caller's figures, with what only the engine knows."""
    merged = asdict(measured)
    merged["first_token_s"] = merged["per_output_token_s"] = None
    if times is not None:
        merged["first_token_s"] = times.first_token_s
        merged["per_output_token_s"] = times.per_output_token_s
        merged["queue_s"] = merged["queue_s"] if merged["queue_s"] is not None else times.queue_s
        merged["compute_s"] = merged["compute_s"] if merged["compute_s"] is not None else times.compute_s
    return merged


def _sender(arm: Arm, session: aiohttp.ClientSession, server: Server, prompting: Prompting) -> Send:
    async def by_translate(request: Request) -> Answer:
        return await translate(session, server.url, request)

    async def by_completions(request: Request) -> Answer:
        body = {
            "model": MODEL_NAME,
            "prompt": prompting.framed(request),
            "max_tokens": prompting.guessed_room(request),
            "temperature": 0.0,
        }
        return await post(session, f"{server.url}/v1/completions", body)

    return by_translate if arm.interface is Interface.TRANSLATE else by_completions


async def _inside(
    session: aiohttp.ClientSession,
    server: Server,
    plan: Plan,
    kind: str,
    in_flight: int,
    pace: Pace,
    seed: int,
    mark: Any,
) -> tuple[Figures, tuple[float, float]]:
    """Let an arm load itself; the marks include its ramp."""
    body = {
        "kind": kind,
        "seed": seed,
        "requests": None if plan.requests is None else str(plan.requests),
        "in_flight": in_flight,
        **asdict(pace),
    }
    await mark()
    began_s = time.monotonic()
    limit_s = aiohttp.ClientTimeout(total=10 * (pace.ramp_s + pace.window_s + pace.drain_s))
    try:
        async with session.post(f"{server.url}/run", json=body, timeout=limit_s) as answer:
            if answer.status != 200:
                raise ServerError(server.ended() or f"{server.name} could not run its load: {answer.status}")
            measured = Figures(**await answer.json())
    except (aiohttp.ClientError, TimeoutError) as error:
        raise ServerError(server.ended() or f"{server.name}: {type(error).__name__}: {error}") from error
    ended_s = time.monotonic()
    await mark()
    return measured, (began_s, ended_s)
