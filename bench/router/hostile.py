"""What hostile clients cost the others: a good client's latency without them and beside them, in one run.

    python bench/router/hostile.py [--rounds 10] [--requests 50000] [--hostile-rate 300] [--json FILE]

Rounds of three phases, in turn: the good client alone; beside hostile requests to the router; beside the same ones to
an nginx on another port, which cost the machine as much and the router nothing. The second against the first is what a
client sees; the third against the first is the part of it that is the load's and not the router's, which matters where
there are few cores: the router has core 1, the upstream core 0, the good client core 2 and the hostile ones core 3,
where there are as many, else core 0.

What a good client asks is a translation, answered at once by nginx; the router asks for no keys, so that hostile
requests get as far as they can. Half of the hostile requests are broken, smuggled and oversized ones
(`dragoman_bench.hostile`); each of the others has one value that makes slow parsers slow, in any field of any API
(`dragoman_bench.hostile_fields`). The router's event loop is watched (`watched_router.py`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import uvloop

sys.path.insert(0, str(Path(__file__).parent))
import proxies
from overhead import fixed_rate, free_ports, quantiles_ms, stop
from proxies import LOAD_CORE, UPSTREAM_CORE, Proxy

from dragoman_bench.hostile import GOOD, hostile, post, throw
from dragoman_bench.hostile_fields import draws

HOSTILE_CORE = "3" if (os.cpu_count() or 1) > 3 else UPSTREAM_CORE
DEPLOYMENTS = """deployments:
- name: default/a
  languages: [{{source: en, targets: [de]}}]
  replicas: ["127.0.0.1:{0}", "127.0.0.1:{1}"]
"""
SETTLED_S = 10.0
"""The longest of the hostile ones leave 0.3 s after they came; the router's own bounds are longer."""
MOST_CHARS = 300_000
"""Of a hostile value; a body of it is near `--max-body-bytes` where each character is three bytes, or an escape."""
PHASES = ("alone", "beside", "elsewhere")


async def throw_all(
    port: int, count: int, at_once: int, rate: float, seed: int
) -> tuple[Counter[str], Counter[str]]:
    """Hostile requests, at most so many at once and so many a second (0 is any).

    Returns:
        How many had which status, and how many had a hostile value in a field of which API.
    """
    chance = random.Random(seed)
    drawn = draws(chance, MOST_CHARS)
    left = iter(range(count))
    statuses: Counter[str] = Counter()
    apis: Counter[str] = Counter()
    began_s = time.monotonic()

    async def one_after_another() -> None:
        for at in left:
            if rate:
                await asyncio.sleep(max(0.0, began_s + at / rate - time.monotonic()))
            if chance.random() < 0.5:
                data = hostile(chance)
            else:
                field, value = next(drawn)
                apis[field.api] += 1
                data = field.request(value).wire()
            try:
                answer = await throw(port, data)
            except OSError:
                statuses["no connection"] += 1
            else:
                statuses[answer[9:12].decode("latin-1") if answer.startswith(b"HTTP/1.1 ") else "none"] += 1

    await asyncio.gather(*(one_after_another() for _ in range(at_once)))
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


def beside(asked: argparse.Namespace, port: int, target: int, seed: int) -> dict[str, Any]:
    """The good client at `port` while hostile ones are at `target`."""
    command = [
        "taskset",
        "-c",
        HOSTILE_CORE,
        sys.executable,
        __file__,
        f"--throw-at={target}",
        f"--seed={seed}",
    ]
    command += [f"--requests={asked.requests // asked.rounds}", f"--at-once={asked.at_once}"]
    command.append(f"--hostile-rate={asked.hostile_rate}")
    began_s = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as thrower:
        times, failed = uvloop.run(_until_done(port, asked.rate, seed, thrower))
        told, _ = thrower.communicate()
    if thrower.returncode:
        raise RuntimeError(f"the hostile clients ended with status {thrower.returncode}")
    seconds = time.monotonic() - began_s
    statuses, apis = json.loads(told)
    return {"times": times, "failed": failed, "seconds": seconds, "statuses": statuses, "apis": apis}


def state(proxy: Proxy, admin_port: int) -> dict[str, float]:
    """What the router holds: connections of clients, all sockets, memory, requests in flight."""
    # Local address, remote address, state; 01 is established.
    rows = [line.split()[1:4] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    clients = sum(local.endswith(f":{proxy.port:04X}") and kind == "01" for local, _, kind in rows)
    files = list(Path(f"/proc/{proxy.process.pid}/fd").iterdir())
    status = Path(f"/proc/{proxy.process.pid}/status").read_text().splitlines()
    resident = next(line for line in status if line.startswith("VmRSS:"))
    with urllib.request.urlopen(f"http://127.0.0.1:{admin_port}/load", timeout=5) as answer:
        load = json.load(answer)
    return {
        "clients": clients,
        "sockets": sum(os.readlink(each).startswith("socket:") for each in files if each.is_symlink()),
        "resident_mb": round(int(resident.split()[1]) / 1024, 1),
        "in_flight": sum(each["inFlight"] for each in load["deployments"].values()),
    }


def settled(proxy: Proxy, admin_port: int, clients: float) -> dict[str, float]:
    """The same once no more clients are left than there were, or some time has passed."""
    end_s = time.monotonic() + SETTLED_S
    while (now := state(proxy, admin_port))["clients"] > clients and time.monotonic() < end_s:
        time.sleep(0.2)
    return now


def one_round(asked: argparse.Namespace, number: int, port: int, other: int) -> dict[str, Any]:
    """The three phases, another one first each time."""
    row: dict[str, Any] = {"round": number}
    for phase in PHASES[number % 3 :] + PHASES[: number % 3]:
        seed = 1000 * number
        if phase == "alone":
            times, failed = uvloop.run(fixed_rate(port, asked.rate, asked.seconds, seed, post(GOOD)))
            row[phase] = {"times": times, "failed": failed}
        else:
            target = port if phase == "beside" else other
            row[phase] = beside(asked, port, target, seed)
        row[phase] |= quantiles_ms(row[phase]["times"])
        row[phase]["requests"] = len(row[phase].pop("times"))
    for phase in PHASES[1:]:
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
    for phase in PHASES:
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


def measure(asked: argparse.Namespace) -> dict[str, Any]:
    """Start the router and what it is measured with, and go through the rounds."""
    os.sched_setaffinity(0, {int(LOAD_CORE)})
    one, two, port, admin_port, other = free_ports(5)
    with tempfile.TemporaryDirectory(prefix="hostile-") as temporary:
        directory = Path(temporary)
        started = [proxies.upstream(directory, (one, two))]
        try:
            started.append(proxies.nginx(directory, (one, two), other).process)
            stalls = directory / "stalls.json"
            router = proxies.ours(
                directory, (one, two), port, admin_port, deployments=DEPLOYMENTS, keys=False, stalls=stalls
            )
            started.append(router.process)
            proxies.await_ready(port, "/translate", GOOD)
            proxies.await_ready(other, "/translate", GOOD)
            # The first requests bring memory and connections that stay.
            uvloop.run(fixed_rate(port, asked.rate, 2.0, 1, post(GOOD)))
            before = settled(router, admin_port, 0)
            router.process.send_signal(signal.SIGUSR1)
            rows = [one_round(asked, number, port, other) for number in range(asked.rounds)]
            after = settled(router, admin_port, before["clients"]) | json.loads(stalls.read_text())
        finally:
            for process in started:
                process.terminate()
            for process in started:
                stop(process)
    return {"rounds": rows, "before": before, "after": after}


def main() -> int:
    """Measure and tell; or, as the child that throws, throw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--requests", type=int, default=50_000, help="hostile ones at the router, in all")
    parser.add_argument("--at-once", type=int, default=30, help="hostile ones at once, at most")
    parser.add_argument("--hostile-rate", type=float, default=300, help="a second; 0: as many as get through")
    parser.add_argument("--rate", type=int, default=200, help="of the good client, a second")
    parser.add_argument("--seconds", type=float, default=3.0, help="of the good client alone, each round")
    parser.add_argument("--json", type=Path, help="write every figure here")
    parser.add_argument("--throw-at", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.throw_at:
        thrown = throw_all(asked.throw_at, asked.requests, asked.at_once, asked.hostile_rate, asked.seed)
        print(json.dumps(uvloop.run(thrown)))
        return 0
    found = measure(asked)
    statuses = sum((Counter(row["beside"]["statuses"]) for row in found["rounds"]), Counter())
    print(table(found["rounds"]))
    apis = sum((Counter(row["beside"]["apis"]) for row in found["rounds"]), Counter())
    print(f"answers to hostile requests: {dict(statuses.most_common())}")
    print(f"hostile values in fields of: {dict(apis.most_common())}")
    print(f"before: {found['before']}\nafter: {found['after']}")
    print(
        f"longest stall of the router's loop: {found['after']['cpu_ms']} ms of CPU, {found['after']['wall_ms']} ms"
    )
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
