"""A good client's latency alone, beside hostile requests to the same server, and beside the same ones to another."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import uvloop
from overhead import fixed_rate, quantiles_ms
from proxies import UPSTREAM_CORE

from dragoman_bench.hostile import GOOD, post, throw

HOSTILE_CORE = "3" if (os.cpu_count() or 1) > 3 else UPSTREAM_CORE
PHASES = ("alone", "beside", "elsewhere")


async def throw_all(
    arguments: argparse.Namespace, requests: Iterable[tuple[str, bytes]], patience_s: float = 0.3
) -> tuple[Counter[str], Counter[str]]:
    """Hostile requests to `arguments.throw_at`, as many at once and a second as the arguments say.

    Returns:
        How many had which status, and how many had a hostile value in a field of which API.
    """
    left = enumerate(itertools.islice(requests, arguments.requests))
    statuses: Counter[str] = Counter()
    apis: Counter[str] = Counter()
    began_s = time.monotonic()

    async def one_after_another() -> None:
        for at, (api, data) in left:
            if arguments.hostile_rate:
                await asyncio.sleep(max(0.0, began_s + at / arguments.hostile_rate - time.monotonic()))
            apis.update([api] if api else [])
            try:
                answer = await throw(arguments.throw_at, data, patience_s)
            except OSError:
                statuses["no connection"] += 1
            else:
                statuses[answer[9:12].decode("latin-1") if answer.startswith(b"HTTP/1.1 ") else "none"] += 1

    await asyncio.gather(*(one_after_another() for _ in range(arguments.at_once)))
    return statuses, apis


async def _until_done(
    port: int, rate: int, seed: int, thrower: subprocess.Popen[str]
) -> tuple[list[float], int]:
    """The good client, for as long as the hostile ones are at it."""
    times: list[float] = []
    failed = 0
    while thrower.poll() is None:
        more, broken = await fixed_rate(port, rate, 0.5, seed, post(GOOD))
        times, failed, seed = times + more, failed + broken, seed + 1
    return times, failed


def beside(arguments: argparse.Namespace, port: int, target: int, seed: int) -> dict[str, Any]:
    """The good client at `port` while hostile ones are at `target`."""
    command = [
        "taskset",
        "-c",
        HOSTILE_CORE,
        sys.executable,
        sys.argv[0],
        arguments.server,
        f"--throw-at={target}",
        f"--seed={seed}",
    ]
    command += [f"--requests={arguments.requests // arguments.rounds}", f"--at-once={arguments.at_once}"]
    command.append(f"--hostile-rate={arguments.hostile_rate}")
    if arguments.max_chars is not None:
        command.append(f"--max-chars={arguments.max_chars}")
    began_s = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as thrower:
        times, failed = uvloop.run(_until_done(port, arguments.rate, seed, thrower))
        output, _ = thrower.communicate()
    if thrower.returncode:
        raise RuntimeError(f"the hostile clients ended with status {thrower.returncode}")
    seconds = time.monotonic() - began_s
    statuses, apis = json.loads(output)
    return {"times": times, "failed": failed, "seconds": seconds, "statuses": statuses, "apis": apis}


def one_round(arguments: argparse.Namespace, number: int, port: int, other: int | None) -> dict[str, Any]:
    """The phases, another one first each time; without the last where there is no `other`."""
    phases = PHASES if other is not None else PHASES[:2]
    first = number % len(phases)
    row: dict[str, Any] = {"round": number}
    for phase in phases[first:] + phases[:first]:
        seed = arguments.seed + 1000 * number
        if phase == "alone":
            times, failed = uvloop.run(fixed_rate(port, arguments.rate, arguments.seconds, seed, post(GOOD)))
            row[phase] = {"times": times, "failed": failed}
        else:
            target = other if other is not None and phase == "elsewhere" else port
            row[phase] = beside(arguments, port, target, seed)
        row[phase] |= quantiles_ms(row[phase]["times"])
        row[phase]["requests"] = len(row[phase].pop("times"))
    for phase in phases[1:]:
        for name in ("p50", "p99"):
            row[phase][f"{name}_ratio"] = row[phase][name] / row["alone"][name]
    row["load_average"] = round(os.getloadavg()[0], 1)
    print(json.dumps(row), file=sys.stderr, flush=True)
    return row


def table(rows: list[dict[str, Any]]) -> str:
    """Medians of the rounds; the ratios are round by round."""
    lines = [
        "| good client | requests | failed | p50 ms | p99 ms | p50 ratio | p99 ratio (range) |",
        "|---|---|---|---|---|---|---|",
    ]
    for phase in (phase for phase in PHASES if phase in rows[0]):
        own = [row[phase] for row in rows]
        cells = [
            phase,
            f"{sum(each['requests'] for each in own):,}",
            str(sum(each["failed"] for each in own)),
        ]
        cells += [f"{statistics.median(each[name] for each in own):.2f}" for name in ("p50", "p99")]
        if phase == "alone":
            cells += ["1", "1"]
        else:
            ratios = [each["p99_ratio"] for each in own]
            cells.append(f"{statistics.median(each['p50_ratio'] for each in own):.2f}")
            cells.append(f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def add_arguments(parser: argparse.ArgumentParser, requests: int) -> None:
    """What both measurements take, and what their child that throws is given."""
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--requests", type=int, default=requests, help="hostile ones in all")
    parser.add_argument("--at-once", type=int, default=30, help="hostile ones at once, at most")
    parser.add_argument(
        "--hostile-rate", type=float, help="a second (router 300, pod 20); 0: as many as get through"
    )
    parser.add_argument("--rate", type=int, default=200, help="of the good client, a second")
    parser.add_argument("--seconds", type=float, default=3.0, help="of the good client alone, each round")
    parser.add_argument("--json", type=Path, help="write every figure here")
    parser.add_argument("--throw-at", type=int, help=argparse.SUPPRESS)
    parser.add_argument(
        "--seed", type=int, default=0, help="of all requests; runs side by side have one each"
    )


def counted(rows: list[dict[str, Any]], what: str) -> dict[str, int]:
    """Hostile requests of all rounds."""
    found = sum((Counter(row["beside"][what]) for row in rows), Counter[str]())
    return dict(found.most_common())
