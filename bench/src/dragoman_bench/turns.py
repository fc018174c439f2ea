"""Pods that share one GPU and are awake in turn: requests for each at random, and the same requests to each alone.

The second is what a GPU of its own would give each pod: at these rates no request waits for another.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import aiohttp

from dragoman_bench.catalogue import pod, scripted_pod, started
from dragoman_bench.errors import BenchError
from dragoman_bench.gpu import GPU
from dragoman_bench.loads import UNIFORM, stream
from dragoman_bench.plan import RunPlan
from dragoman_devcluster.ports import free_port
from dragoman_tune.client import connections, translate
from dragoman_tune.figures import quantile
from dragoman_tune.requests import SampleRequest
from dragoman_tune.scrape import Scrape, scrape
from dragoman_tune.server import Server

WAKES, WAIT_S = "dragoman_engine_wakes_total", "dragoman_engine_turn_wait_seconds_sum"
ALONE = 10
"""Requests to each pod while the others have none; the first of them wakes it and does not count."""
STORES = ("valkey-server", "redis-server")


@dataclass(frozen=True)
class Sharing:
    """What is measured.

    Args:
        pods: Pods on the GPU.
        per_s: Requests per second for each, at random times.
        duration_s: For how long.
        start_s: Seconds that all pods together get to start.
    """

    pods: int
    per_s: float
    duration_s: float
    start_s: float


@dataclass(frozen=True)
class TurnSample:
    """One request: to which pod, when (seconds from the start), how long it took; `lost` is why it failed."""

    pod: int
    at_s: float
    took_s: float
    lost: str | None = None


def command_line(plan: RunPlan, port: int, store: str, memory: Path | None) -> list[str]:
    """A pod's; a scripted one locks the file `memory` while it is awake, and needs no model."""
    turns = ["--sleep-after-s", "300", "--turns-url", store]
    if memory is None:
        return [*pod(max_num_seqs=64, max_num_batched_tokens=8192)(plan, port), *turns]
    engine = scripted_pod(port, wake_s=0.05, sleep_s=0.1, first_token_s=0.005, memory=str(memory))
    return [*engine, "--turns-device", "scripted", *turns]


async def measure(
    plan: RunPlan,
    sharing: Sharing,
    directory: Path,
    gpu: GPU | None,
    say: Callable[[str], None],
    *,
    scripted: bool,
) -> dict[str, Any]:
    """Start the pods, send the requests, then those for each pod alone.

    Returns:
        The results, without the machine.

    Raises:
        ServerError: A pod did not start.
        BenchError: There is no Redis or Valkey.
    """
    memory = directory / "memory" if scripted else None
    if scripted:
        requests = [SampleRequest(f"Good morning {number}", "en", "de") for number in range(1000)]
    else:
        requests = list(islice(stream(UNIFORM, plan.model, None, 7), 1000))
    with _store(directory) as store:
        command = partial(command_line, plan, store=store, memory=memory)
        async with AsyncExitStack() as stack:
            servers = [
                await stack.enter_async_context(
                    started(plan, f"pod-{number}", command, directory, sharing.start_s)
                )
                for number in range(sharing.pods)
            ]
            http = await stack.enter_async_context(connections())
            say(f"{sharing.pods} pods are ready")
            began_s = time.monotonic()
            plans = [_arrivals(number, sharing) for number in range(sharing.pods)]
            shared = await _all(http, servers, plans, requests, began_s)
            say(f"{len(shared)} requests were answered")
            metrics = [await scrape(http, server.url) for server in servers]
            alone = [
                sample
                for number, server in enumerate(servers)
                for sample in await _alone(http, server, number, requests, began_s)
            ]
            memory_bytes = None if gpu is None else gpu.used_bytes
    return {
        "sharing": asdict(sharing),
        "command": plan.shown(command_line(plan, 0, "URL", memory)),
        "gpu_bytes": memory_bytes,
        "figures": figures(shared, alone, metrics, sharing),
        "shared": [asdict(sample) for sample in shared],
        "alone": [asdict(sample) for sample in alone],
    }


@contextmanager
def _store(directory: Path) -> Iterator[str]:
    """URL of a server for the turns, which runs for the time of a block."""
    binary = next(filter(None, map(shutil.which, STORES)), None)
    if binary is None:
        raise BenchError(f"none of {', '.join(STORES)} on PATH: apt-get install redis-server")
    port = free_port()
    with (directory / "store.log").open("wb") as log:
        flags = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        process = subprocess.Popen([binary, *flags], stdout=log, stderr=log, cwd=directory)
    try:
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait()


def _arrivals(number: int, sharing: Sharing) -> list[float]:
    """Seconds from the start at which requests for a pod arrive."""
    draw, at_s, found = random.Random(number), 0.0, list[float]()
    while (at_s := at_s + draw.expovariate(sharing.per_s)) < sharing.duration_s:
        found.append(at_s)
    return found


async def _all(
    http: aiohttp.ClientSession,
    servers: Sequence[Server],
    plans: Sequence[Sequence[float]],
    requests: Sequence[SampleRequest],
    began_s: float,
) -> list[TurnSample]:
    async def one(number: int, at_s: float, request: SampleRequest) -> TurnSample:
        await asyncio.sleep(began_s + at_s - time.monotonic())
        return await _sent(http, servers[number], number, request, began_s)

    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(one(number, at_s, requests[place % len(requests)]))
            for number, plan in enumerate(plans)
            for place, at_s in enumerate(plan)
        ]
    return [task.result() for task in tasks]


async def _alone(
    http: aiohttp.ClientSession,
    server: Server,
    number: int,
    requests: Sequence[SampleRequest],
    began_s: float,
) -> list[TurnSample]:
    samples = [await _sent(http, server, number, request, began_s) for request in requests[-(ALONE + 1) :]]
    return samples[1:]


async def _sent(
    http: aiohttp.ClientSession, server: Server, number: int, request: SampleRequest, began_s: float
) -> TurnSample:
    sent_s = time.monotonic()
    answer = await translate(http, server.url, request)
    return TurnSample(number, sent_s - began_s, time.monotonic() - sent_s, answer.error)


def figures(
    shared: Sequence[TurnSample], alone: Sequence[TurnSample], metrics: Sequence[Scrape], sharing: Sharing
) -> dict[str, Any]:
    """Quantiles of the times in seconds, shared and alone, and how often the pods woke."""
    wakes, waited_s = (sum(each.get(name, 0.0) for each in metrics) for name in (WAKES, WAIT_S))
    return {
        "requests": len(shared),
        "lost": sum(sample.lost is not None for sample in (*shared, *alone)),
        "requests_per_s": len(shared) / sharing.duration_s,
        "shared_s": _quantiles(shared),
        "alone_s": _quantiles(alone),
        "wakes": wakes,
        "turn_wait_s": waited_s / max(1.0, wakes),
    }


def _quantiles(samples: Sequence[TurnSample]) -> dict[str, float | None]:
    took_s = [sample.took_s for sample in samples if sample.lost is None]
    named = {f"p{round(100 * share)}": quantile(took_s, share) for share in (0.5, 0.95, 0.99)}
    return {**named, "max": max(took_s, default=None)}


def table(found: dict[str, Any]) -> str:
    """The figures as text."""
    lines = [f"{found['requests']} requests, {found['lost']} lost, {found['requests_per_s']:.2f} a second"]
    for name, title in (("shared_s", "on the shared GPU"), ("alone_s", "each pod alone")):
        values = ", ".join(f"{key} {value:.3f} s" for key, value in found[name].items() if value is not None)
        lines.append(f"{title}: {values}")
    lines.append(
        f"{found['wakes']:.0f} wakes, after {found['turn_wait_s']:.2f} s of waiting for the turn on average"
    )
    return "\n".join(lines)
