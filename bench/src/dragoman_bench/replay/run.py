"""One pod: started, rehearsed for its own metrics to calibrate, loaded by a bursty replay, and simulated."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp

from dragoman_bench.catalogue import pod, started
from dragoman_bench.errors import BenchError
from dragoman_bench.loads import VARIABLE, stream
from dragoman_bench.plan import RunPlan
from dragoman_bench.replay.arrivals import arrival_times
from dragoman_bench.replay.comparison import compared
from dragoman_bench.replay.open_loop import open_loop
from dragoman_bench.results import Results
from dragoman_simulate.calibrate import Page, calibrated, read_page
from dragoman_simulate.trace import read_trace
from dragoman_tune.client import connections, translate
from dragoman_tune.closed_loop import Pace, closed_loop
from dragoman_tune.figures import figures
from dragoman_tune.server import settled

WARM_UP = Pace(window_s=3.0, ramp_s=20.0, drain_s=30.0)
QUEUE = 4
"""Requests in flight per sequence while the capacity is measured."""

CAPACITY = Pace(window_s=18.0, ramp_s=18.0, drain_s=60.0)
DRAIN_S = 45.0
"""After the rehearsal and the replay each, for what is queued; where the limit is near, the replay is shortened."""

MIN_REPLAY_S = 60

NO_LIMIT = 10**9
"""The pod's admission would refuse the bursts, which are to queue."""


@dataclass(frozen=True)
class Replay:
    """What to measure.

    Args:
        url: A pod that runs; None starts one.
        rehearsal_s: Length of another bursty part of the trace, before: its metrics calibrate the model.
        peak: Peak of the arrivals, as a multiple of the pod's capacity.
        limit_s: For all of it.
    """

    plan: RunPlan
    output: Path
    url: str | None
    max_num_seqs: int
    trace: Path
    rehearsal_s: int
    seconds: int
    peak: float
    seed: int
    limit_s: float


async def measure(wanted: Replay, head: dict[str, Any], say: Callable[[str], None]) -> dict[str, Any]:
    """Measure, and write what is known after each phase to `results.json` and `speeds.json`.

    Raises:
        MeasureError: The pod did not start or ended, or the limit was reached.
    """
    began_s = time.monotonic()
    results = Results(wanted.output, {**head, "max_num_seqs": wanted.max_num_seqs, "peak": wanted.peak})
    try:
        async with (
            asyncio.timeout(wanted.limit_s),
            _pod(wanted, say) as (url, ended),
            connections() as session,
        ):
            requests = stream(VARIABLE, wanted.plan.model, wanted.plan.requests, wanted.seed)
            say("warm-up")
            send, queued = partial(translate, session, url), QUEUE * wanted.max_num_seqs
            await closed_loop(send, requests, queued, WARM_UP, ended=ended)
            capacity = figures(
                await closed_loop(send, requests, queued, CAPACITY, ended=ended)
            ).requests_per_s
            left_s = wanted.limit_s - (time.monotonic() - began_s) - wanted.rehearsal_s - 2 * DRAIN_S
            seconds = max(MIN_REPLAY_S, min(wanted.seconds, int(left_s)))
            earlier, times = arrival_times(
                read_trace(wanted.trace), wanted.rehearsal_s, seconds, wanted.peak * capacity, wanted.seed
            )
            results.write(capacity_per_s=capacity, rehearsal_s=wanted.rehearsal_s, seconds=seconds)
            say(f"rehearsal: {len(earlier)} requests in {wanted.rehearsal_s} s")
            start = await _page(session, url)
            await open_loop(session, url, requests, earlier, say)
            before = await _page(session, url)
            speed = calibrated(before.since(start), "calibrated by dragoman bench replay")
            text = speed.as_json("the pod's /metrics under the arrivals of the rehearsal")
            (wanted.output / "speeds.json").write_text(text, encoding="utf-8")
            results.write(speeds=json.loads(text))
            say(
                f"replay: {len(times)} requests in {seconds} s, {len(times) / seconds:.1f}/s on average, "
                f"{wanted.peak:g} × {capacity:.1f}/s at the peak"
            )
            replayed = await open_loop(session, url, requests, times, say)
            after = await _page(session, url)
            results.write(replay=compared(replayed, wanted.max_num_seqs, speed))
            # What the replay alone has measured: the table of a pod that is watched under its own load.
            itself = calibrated(after.since(before), speed.name)
            results.write(replay_by_its_own_speeds=compared(replayed, wanted.max_num_seqs, itself))
    except TimeoutError:
        raise BenchError(
            f"--limit-s {wanted.limit_s:g} was reached; {wanted.output} has what was measured"
        ) from None
    return results.document


async def _page(session: aiohttp.ClientSession, url: str) -> Page:
    try:
        async with session.get(f"{url}/metrics") as answer:
            return read_page(await answer.text(), f"{url}/metrics")
    except aiohttp.ClientError as error:
        raise BenchError(f"cannot read {url}/metrics: {type(error).__name__}: {error}") from error


@asynccontextmanager
async def _pod(
    wanted: Replay, say: Callable[[str], None]
) -> AsyncIterator[tuple[str, Callable[[], str | None]]]:
    """The pod's address, and why it has ended."""
    if wanted.url is not None:
        yield wanted.url.rstrip("/"), lambda: None
        return

    def command(port: int) -> list[str]:
        own = pod(max_num_seqs=wanted.max_num_seqs, max_num_batched_tokens=8192)(wanted.plan, port)
        return [*own, "--max-queued-sequences", str(NO_LIMIT), "--max-queued-tokens", str(NO_LIMIT)]

    began_s = time.monotonic()
    say("starting the pod")
    async with started(wanted.plan, "pod", command, wanted.output, wanted.plan.start_s) as server:
        say(f"pod: ready after {time.monotonic() - began_s:.0f} s")
        await settled(server)
        yield server.url, server.ended
