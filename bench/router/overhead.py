"""What the router costs: CPU time of a request, most requests a second, added latency; beside another checkout's.

    python bench/router/overhead.py [--against DIRECTORY] [--rounds 9] [--seconds 4] [--json FILE] [-- FLAGS]

FLAGS are for this checkout's router. DIRECTORY has another checkout, such as that of the commit before, with its
`.venv`; by default this checkout is compared with itself, which shows the noise, or what FLAGS change.

At least two cores: the router has core 1 to itself, the upstream core 0, the load core 2 or, where there is none, core
0 too. The upstream answers at once. Two measurements each round: as many requests as 32 connections can have, and a
fixed rate independent of the responses, so that a stall meets all that come in it, against the same without a router
just before. The routers take turns at being first; ratios are those within a round, so that what else the machine does
in one of them says nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import httptools
import uvloop

from dragoman.command_line import markdown
from dragoman_bench.machine import machine
from dragoman_devcluster.ports import free_port
from dragoman_tune.figures import quantile

KEY = "sk-bench-0123456789"
UPSTREAM_CORE, ROUTER_CORE = 0, 1
LOAD_CORE = 2 if (os.cpu_count() or 1) > 2 else UPSTREAM_CORE
CONNECTIONS = 32
RATE = 500
"""Requests a second of the measurement at a fixed rate."""
READY_S = 60.0
UPSTREAM_FLAG = "--upstream"
BODY = json.dumps(
    {
        "model": "european",
        "messages": [
            {"role": "user", "content": "The cat sleeps on the sofa, and the dog barks in the garden."}
        ],
        "translation_options": {"source_lang": "en", "target_lang": "de"},
    }
)
REQUEST = (
    f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    f"Authorization: Bearer {KEY}\r\nContent-Length: {len(BODY)}\r\n\r\n{BODY}"
).encode()
MESSAGE = {"role": "assistant", "content": "Die Katze schläft auf dem Sofa, und der Hund bellt."}
COMPLETION = json.dumps(
    {
        **{"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "european"},
        "choices": [{"index": 0, "finish_reason": "stop", "message": MESSAGE}],
        "usage": {"prompt_tokens": 20, "completion_tokens": 14, "total_tokens": 34},
    }
).encode()
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
    len(COMPLETION),
    COMPLETION,
)
STATIC = """deployments:
- name: bench/european
  languages: [{{source: en, targets: [de, fr, es]}}, {{source: de, targets: [en]}}]
  replicas: ["127.0.0.1:{0}", "127.0.0.1:{1}"]
  maxInFlight: 1000
- name: bench/rest
  replicas: ["127.0.0.1:{0}"]
"""
MEASURES = ("most_per_s", "cpu_us_at_most", "cpu_us_at_rate", "p50_ms", "p95_ms", "p99_ms", "memory_mb")


class Upstream(asyncio.Protocol):
    """Answers each request at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected."""
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        self._parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        """Bytes of a request."""
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        """It is whole."""
        self._transport.write(RESPONSE)


async def serve(ports: Sequence[int]) -> None:
    """The upstream, until it is terminated."""
    for port in ports:
        await asyncio.get_running_loop().create_server(Upstream, "127.0.0.1", port)
    await asyncio.Event().wait()


@dataclass
class RunningRouter:
    """One that runs, and whose process has no others."""

    name: str
    port: int
    pid: int

    def cpu_s(self) -> float:
        """Seconds of CPU that its threads have used; exact, where `stat` counts ticks of 10 ms."""
        threads = Path(f"/proc/{self.pid}/task").iterdir()
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9

    def memory_mb(self) -> float:
        """Its proportional set size; shared pages count in part."""
        rollup = Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines()
        return round(sum(int(line.split()[1]) for line in rollup if line.startswith("Pss:")) / 1024, 1)


class Connection(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self, done: Callable[[Connection, float], None]) -> None:
        self._done = done
        self._sent_s = 0.0
        self.failed = 0
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected."""
        self.transport = transport  # type: ignore[assignment]

    def send(self) -> None:
        """Send one request."""
        self._sent_s = time.perf_counter()
        self._parser = httptools.HttpResponseParser(self)
        self.transport.write(REQUEST)

    def data_received(self, data: bytes) -> None:
        """Bytes of an answer."""
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        """It is whole."""
        self.failed += self._parser.get_status_code() != 200
        self._done(self, time.perf_counter() - self._sent_s)


async def connected(port: int, done: Callable[[Connection, float], None]) -> Connection:
    """A client with a connection."""
    loop = asyncio.get_running_loop()
    return (await loop.create_connection(lambda: Connection(done), "127.0.0.1", port))[1]


async def most(port: int, seconds: float) -> float:
    """Requests a second on `CONNECTIONS` connections, each with one in flight.

    Raises:
        RuntimeError: Some failed.
    """
    answered, end_s = 0, time.perf_counter() + seconds

    def done(client: Connection, _: float) -> None:
        nonlocal answered
        answered += 1
        if time.perf_counter() < end_s:
            client.send()

    clients = [await connected(port, done) for _ in range(CONNECTIONS)]
    for client in clients:
        client.send()
    await asyncio.sleep(seconds)
    for client in clients:
        client.transport.abort()
    if failed := sum(client.failed for client in clients):
        raise RuntimeError(f"{failed} requests failed")
    return answered / seconds


async def fixed_rate(port: int, seconds: float, seed: int) -> tuple[list[float], int]:
    """Seconds of each request of a Poisson stream, and how many failed."""
    chance = random.Random(seed)
    # A garbage collection takes milliseconds here, and would count as the router's.
    gc.collect()
    gc.freeze()
    gc.disable()
    times: list[float] = []
    idle: list[Connection] = []

    def done(client: Connection, took_s: float) -> None:
        times.append(took_s)
        idle.append(client)

    clients = [await connected(port, done) for _ in range(8)]
    idle += clients
    sent, due_s = 0, time.perf_counter()
    end_s = due_s + seconds
    while due_s < end_s:
        due_s += chance.expovariate(RATE)
        await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
        if not idle:
            clients.append(await connected(port, done))
            idle.append(clients[-1])
        idle.pop().send()
        sent += 1
    deadline_s = time.perf_counter() + 10
    while len(times) < sent and time.perf_counter() < deadline_s:  # noqa: ASYNC110 - answers set no event
        await asyncio.sleep(0.01)
    for client in clients:
        client.transport.abort()
    gc.enable()
    return times, sent - len(times) + sum(client.failed for client in clients)


def one_round(
    number: int, routers: list[RunningRouter], direct_port: int, seconds: float
) -> list[dict[str, Any]]:
    """Each router once, another one first each time; direct before each."""
    rows = []
    first = number % len(routers)
    for router in routers[first:] + routers[:first]:
        before_s = router.cpu_s()
        rate = uvloop.run(most(router.port, seconds))
        at_most_us = 1e6 * (router.cpu_s() - before_s) / (rate * seconds)
        direct, _ = uvloop.run(fixed_rate(direct_port, seconds, number))
        before_s = router.cpu_s()
        times, failed = uvloop.run(fixed_rate(router.port, seconds, number))
        at_rate_us = 1e6 * (router.cpu_s() - before_s) / max(1, len(times))
        row: dict[str, Any] = {
            "router": router.name,
            "round": number,
            "most_per_s": round(rate),
            "cpu_us_at_most": round(at_most_us, 1),
            "cpu_us_at_rate": round(at_rate_us, 1),
            "failed": failed,
            "memory_mb": router.memory_mb(),
            "load_average": round(os.getloadavg()[0], 1),
        }
        for share in (50, 95, 99):
            through, without = (1000 * (quantile(each, share / 100) or 0.0) for each in (times, direct))
            row |= {f"p{share}_ms": round(through, 3), f"added_p{share}_ms": round(through - without, 3)}
        print(json.dumps(row), file=sys.stderr, flush=True)
        rows.append(row)
    return rows


def table(rows: list[dict[str, Any]], routers: list[RunningRouter]) -> str:
    """Medians of each router, and of the ratios within rounds, with their range."""
    columns = [*MEASURES, *(f"added_p{share}_ms" for share in (50, 95, 99)), "failed"]
    cells = []
    for router in routers:
        own = [row for row in rows if row["router"] == router.name]
        cells.append([router.name, *(f"{median(row[name] for row in own):g}" for name in columns)])
    ours, other = ([row for row in rows if row["router"] == router.name] for router in routers)
    lines = []
    for name in MEASURES:
        ratios = sorted(
            mine[name] / theirs[name]
            for mine, theirs in zip(by_round(ours), by_round(other), strict=True)
            if theirs[name]
        )
        lines.append((name, f"{median(ratios):.3f}", f"{ratios[0]:.3f} to {ratios[-1]:.3f}"))
    ratio = f"{routers[0].name} ÷ {routers[1].name}"
    return f"{markdown(['router', *columns], cells)}\n\n{markdown((ratio, 'median', 'range'), lines)}"


def by_round(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """In the order of their rounds."""
    return sorted(rows, key=lambda row: row["round"])


@contextmanager
def started(directory: Path, name: str, core: int, command: Sequence[str]) -> Iterator[int]:
    """The id of a process that is bound to a core, and ends with the block."""
    with (directory / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(["taskset", "-c", str(core), *command], stdout=log, stderr=log)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


async def await_ready(port: int) -> None:
    """Wait until a request is answered.

    Raises:
        TimeoutError: None is.
    """
    async with asyncio.timeout(READY_S):
        while True:
            answered = asyncio.Event()
            try:
                client = await connected(port, lambda *_, answered=answered: answered.set())
            except OSError:
                await asyncio.sleep(0.1)
                continue
            client.send()
            await answered.wait()
            client.transport.abort()
            if not client.failed:
                return
            await asyncio.sleep(0.1)


@contextmanager
def router(directory: Path, name: str, python: Path, flags: Sequence[str]) -> Iterator[RunningRouter]:
    """A router with a key and language routing, which is ready."""
    port = free_port()
    command = [
        *(str(python), "-m", "dragoman", "router", f"--static={directory / 'static.yaml'}"),
        *("--host=127.0.0.1", f"--port={port}", f"--admin-port={free_port()}", "--lame-duck-s=0"),
        *(f"--keys-dir={directory / 'keys'}", *flags),
    ]
    with started(directory, name.replace("/", "-"), ROUTER_CORE, command) as pid:
        uvloop.run(await_ready(port))
        yield RunningRouter(name, port, pid)


def main() -> None:
    """Start both routers, compare, print the tables."""
    if sys.argv[1:2] == [UPSTREAM_FLAG]:
        uvloop.run(serve([int(port) for port in sys.argv[2:]]))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", type=Path, metavar="DIRECTORY", help="another checkout, with its .venv")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=4, help="of each measurement")
    parser.add_argument("--json", type=Path, help="write all measurements here")
    parser.add_argument("flags", nargs="*", help="of this checkout's router")
    given = parser.parse_args()
    os.sched_setaffinity(0, {LOAD_CORE})
    against = given.against and given.against.resolve()
    python = Path(sys.executable) if against is None else against / ".venv/bin/python"
    pods = free_port(), free_port()
    upstream = [sys.executable, __file__, UPSTREAM_FLAG, *map(str, pods)]
    with tempfile.TemporaryDirectory(prefix="overhead-") as temporary:
        directory = Path(temporary)
        (directory / "static.yaml").write_text(STATIC.format(*pods))
        (directory / "keys").mkdir()
        (directory / "keys/bench").write_text(KEY)
        other_name = "the same" if against is None else str(against.name)
        with (
            started(directory, "upstream", UPSTREAM_CORE, upstream),
            router(directory, " ".join(["this", *given.flags]), Path(sys.executable), given.flags) as ours,
            router(directory, other_name, python, []) as other,
        ):
            rows = [
                row
                for number in range(given.rounds)
                for row in one_round(number, [ours, other], pods[0], given.seconds)
            ]
    text = table(rows, [ours, other])
    print(text)
    if given.json:
        document = {"machine": machine(None), "rounds": rows, "table": text}
        given.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
