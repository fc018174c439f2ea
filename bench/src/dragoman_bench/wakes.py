"""How long the first request to a sleeping pod takes, and the same request to the pod once it is awake.

The answers are compared too: weights that came back damaged would answer otherwise.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import aiohttp

from dragoman_bench.catalogue import pod, scripted_pod, started
from dragoman_bench.errors import BenchError
from dragoman_bench.gpu import GPU
from dragoman_bench.loads import UNIFORM, stream
from dragoman_bench.plan import RunPlan
from dragoman_tune.client import connections, translate
from dragoman_tune.errors import MeasureError
from dragoman_tune.figures import quantile
from dragoman_tune.requests import SampleRequest
from dragoman_tune.scrape import Scrape, scrape
from dragoman_tune.server import Server

POLL_S = 0.05
ASLEEP_WITHIN_S = 120.0
"""Maximum time for a pod without requests to sleep: the first time, host memory is allocated for the weights."""

ASLEEP, WAKES, WAKE_S = (
    "dragoman_engine_asleep",
    "dragoman_engine_wakes_total",
    "dragoman_engine_wake_seconds_sum",
)
SCRIPTED_WAKE_S = 0.05


@dataclass
class Samples:
    """What was measured, a value for each round, times in seconds; requests that failed have no time.

    Args:
        wake_s: Time that the pod took to wake its engine, as it reports it.
        to_sleep_s: From the last answer to the end of falling asleep; `--sleep-after-s` is in it.
        host_asleep_bytes: Resident memory of the pod's processes.
        lost: Why requests failed.
        changed: Answers that differ from the first.
    """

    asleep_s: list[float] = field(default_factory=list)
    awake_s: list[float] = field(default_factory=list)
    wake_s: list[float] = field(default_factory=list)
    to_sleep_s: list[float] = field(default_factory=list)
    gpu_asleep_bytes: list[int] = field(default_factory=list)
    gpu_awake_bytes: list[int] = field(default_factory=list)
    host_asleep_bytes: list[int] = field(default_factory=list)
    host_awake_bytes: list[int] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    changed: int = 0


@dataclass(frozen=True)
class Rounds:
    """How much is measured.

    Args:
        count: Rounds: asleep, then awake.
        sleep_after_s: Idle time after which the pod sleeps.
        limit_s: Seconds after which no round begins, from the start of the pod.
    """

    count: int
    sleep_after_s: float
    limit_s: float


def command_line(plan: RunPlan, port: int, rounds: Rounds, *, scripted: bool) -> list[str]:
    """The pod's; a scripted one needs no model."""
    sleep = ["--sleep-after-s", f"{rounds.sleep_after_s:g}"]
    if not scripted:
        return [*pod(max_num_seqs=64, max_num_batched_tokens=8192)(plan, port), *sleep]
    return [*scripted_pod(port, wake_s=SCRIPTED_WAKE_S, first_token_s=0.005), *sleep]


async def measure(
    plan: RunPlan,
    rounds: Rounds,
    directory: Path,
    gpu: GPU | None,
    say: Callable[[str], None],
    *,
    scripted: bool,
) -> dict[str, Any]:
    """Start a pod, and measure rounds until there are enough or the time is up.

    Returns:
        The results, without the machine; `failed` is why there are fewer rounds.

    Raises:
        ServerError: The pod did not start.
    """
    gpu_before_bytes = None if gpu is None else gpu.used_bytes
    end_s = time.monotonic() + rounds.limit_s
    samples = Samples()
    failed: str | None = None
    command = partial(command_line, plan, rounds=rounds, scripted=scripted)
    async with started(plan, "pod", command, directory, rounds.limit_s) as server, connections() as http:
        say("the pod is ready")
        request = (
            SampleRequest("Good morning", "en", "de")
            if scripted
            else next(stream(UNIFORM, plan.model, None, 7))
        )
        _, expected = await _translated(http, server.url, request, samples)
        for number in range(rounds.count):
            if time.monotonic() >= end_s:
                failed = f"the time was up after {number} rounds"
                break
            try:
                await _round(http, server, request, expected, samples, gpu)
            except MeasureError as error:
                failed = server.ended() or str(error)
                break
            if (number + 1) % 10 == 0:
                say(
                    f"{number + 1} rounds; last: {samples.asleep_s[-1:]} s asleep, {samples.awake_s[-1:]} awake"
                )
    return {
        "command": plan.shown(command(0)),
        "failed": failed,
        "gpu_before_bytes": gpu_before_bytes,
        "figures": figures(samples),
        "samples": asdict(samples),
    }


async def _round(
    http: aiohttp.ClientSession,
    server: Server,
    request: SampleRequest,
    expected: str | None,
    samples: Samples,
    gpu: GPU | None,
) -> None:
    began_s = time.monotonic()
    before = await _until_asleep(http, server)
    samples.to_sleep_s.append(time.monotonic() - began_s)
    samples.host_asleep_bytes.append(server.memory_bytes())
    if gpu is not None:
        samples.gpu_asleep_bytes.append(gpu.used_bytes)
    for times_s in (samples.asleep_s, samples.awake_s):
        took_s, answer = await _translated(http, server.url, request, samples)
        if took_s is not None:
            times_s.append(took_s)
            samples.changed += answer != expected
    after = await scrape(http, server.url)
    if (woke := after.get(WAKES, 0.0) - before.get(WAKES, 0.0)) != 1:
        raise BenchError(f"the pod woke {woke:g} times in a round; raise --sleep-after-s")
    samples.wake_s.append(after[WAKE_S] - before[WAKE_S])
    samples.host_awake_bytes.append(server.memory_bytes())
    if gpu is not None:
        samples.gpu_awake_bytes.append(gpu.used_bytes)


async def _translated(
    http: aiohttp.ClientSession, url: str, request: SampleRequest, samples: Samples
) -> tuple[float | None, str | None]:
    """Seconds to the whole answer, and its text; None if it failed, which is counted."""
    began_s = time.perf_counter()
    answer = await translate(http, url, request)
    if answer.error is not None:
        samples.lost.append(answer.error)
        return None, None
    return time.perf_counter() - began_s, str(answer.document["translation"])


async def _until_asleep(http: aiohttp.ClientSession, server: Server) -> Scrape:
    """The metrics of the pod once it sleeps.

    Raises:
        MeasureError: It does not, or has ended.
    """
    end_s = time.monotonic() + ASLEEP_WITHIN_S
    while time.monotonic() < end_s:
        found = await scrape(http, server.url)
        if found.get(ASLEEP) == 1:
            return found
        await asyncio.sleep(POLL_S)
    raise BenchError(f"the pod did not sleep within {ASLEEP_WITHIN_S:g} s; see pod.log")


def figures(samples: Samples) -> dict[str, Any]:
    """Quantiles of the times, means of the memory; None where there is no value."""
    times = {
        name: {"p50": quantile(values, 0.5), "p99": quantile(values, 0.99), "max": max(values, default=None)}
        for name, values in (
            ("asleep_s", samples.asleep_s),
            ("awake_s", samples.awake_s),
            ("wake_s", samples.wake_s),
            ("to_sleep_s", samples.to_sleep_s),
        )
    }
    memory = {
        name: _mean(getattr(samples, name))
        for name in ("gpu_asleep_bytes", "gpu_awake_bytes", "host_asleep_bytes", "host_awake_bytes")
    }
    return {
        "rounds": len(samples.wake_s),
        **times,
        **memory,
        "lost": len(samples.lost),
        "changed": samples.changed,
    }


def _mean(values: Sequence[int]) -> int | None:
    return round(fmean(values)) if values else None


def table(found: dict[str, Any]) -> str:
    """The figures as text."""
    lines = [f"{found['rounds']} rounds, {found['lost']} requests lost, {found['changed']} answers changed"]
    for name, title in (
        ("asleep_s", "request to a sleeping pod"),
        ("awake_s", "the same, awake"),
        ("wake_s", "of it, the wake"),
        ("to_sleep_s", "last answer to asleep"),
    ):
        values = found[name]
        if values["max"] is not None:
            lines.append(f"{title}: " + ", ".join(f"{key} {value:.3f} s" for key, value in values.items()))
    for where, title in (("gpu", "GPU memory"), ("host", "host memory")):
        asleep, awake = found[f"{where}_asleep_bytes"], found[f"{where}_awake_bytes"]
        if asleep is not None and awake is not None:
            lines.append(f"{title}: {asleep / 1e9:.2f} GB asleep, {awake / 1e9:.2f} GB awake")
    return "\n".join(lines)
