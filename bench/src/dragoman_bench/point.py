"""One point of a measurement: an arm under one load."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import aiohttp

from dragoman_bench.catalogue import MODEL_NAME, Arm
from dragoman_bench.gpu import GPU, summary
from dragoman_bench.loads import stream
from dragoman_bench.plan import RunPlan
from dragoman_bench.prompting import Prompting
from dragoman_tune.client import connections, post, translate
from dragoman_tune.closed_loop import Pace, Send, closed_loop
from dragoman_tune.errors import MetricsError
from dragoman_tune.figures import Figures, figures
from dragoman_tune.requests import Answer, SampleRequest
from dragoman_tune.scrape import EngineTimes, Scrape, between, scrape
from dragoman_tune.server import Server


@dataclass(frozen=True)
class ArmLoad:
    """One load."""

    kind: str
    in_flight: int
    pace: Pace
    seed: int


async def measure(
    arm: Arm, server: Server, load: ArmLoad, plan: RunPlan, prompting: Prompting, gpu: GPU | None
) -> dict[str, Any]:
    """Measure a point.

    Returns:
        The point as the results have it.

    Raises:
        ServerError: The server ended.
    """
    scrapes: list[Scrape] = []
    cpu: list[tuple[float, float, float]] = []
    host_bytes: list[int] = []
    async with connections() as session:

        async def mark() -> None:
            cpu.append((time.monotonic(), *server.cpu_s()))
            host_bytes.append(server.memory_bytes())
            if arm.metrics:
                with suppress(MetricsError):
                    scrapes.append(await scrape(session, server.url))

        requests = stream(load.kind, plan.model, plan.requests, load.seed)
        send = _sender(arm, session, server, prompting)
        window = await closed_loop(send, requests, load.in_flight, load.pace, ended=server.ended, mark=mark)
    times = between(*scrapes) if len(scrapes) == 2 else None
    busy = summary(gpu.readings, window.began_s, window.ended_s) if gpu is not None else None
    span_s, own_s, others_s = (late - early for early, late in zip(*cpu, strict=True))
    return {
        "load": load.kind,
        "in_flight": load.in_flight,
        "seed": load.seed,
        **_merged(figures(window), times),
        "gpu": None if busy is None else asdict(busy),
        "host_memory_bytes": max(host_bytes),
        "front_end_cores": own_s / span_s,
        "engine_cores": others_s / span_s,
    }


def _merged(measured: Figures, times: EngineTimes | None) -> dict[str, Any]:
    """The client's measurements, with those that only the engine has."""
    from_engine: dict[str, Any] = {"first_token_s": None, "per_output_token_s": None}
    from_engine |= {} if times is None else asdict(times)
    from_client = {name: value for name, value in asdict(measured).items() if value is not None}
    return asdict(measured) | from_engine | from_client


def _sender(arm: Arm, session: aiohttp.ClientSession, server: Server, prompting: Prompting) -> Send:
    async def by_completions(request: SampleRequest) -> Answer:
        body = {
            "model": MODEL_NAME,
            "prompt": prompting.framed(request),
            "max_tokens": prompting.guessed_room(request),
            "temperature": 0.0,
        }
        return await post(session, f"{server.url}/v1/completions", body)

    return by_completions if arm.completions else partial(translate, session, server.url)
