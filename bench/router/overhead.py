"""What a proxy costs: ours (with busy polling, too), nginx, haproxy, vllm-router and litellm in one run, interleaved.

    python bench/router/overhead.py [--rounds 9] [--vllm-router FILE] [--litellm FILE] [--json FILE]
    python bench/router/overhead.py --against DIRECTORY [--rounds 9] [--json FILE]

The second compares the router with that of another checkout, such as the commit before, and prints the ratios of both.

Needs wrk, nginx and haproxy on PATH, and at least two cores: the proxy has core 1 to itself, the upstream core 0, the
load core 2 or, where there is none, core 0 too. The upstream answers at once. Two measurements each round: as many
requests as 32 connections can have (wrk), and a fixed rate independent of the responses, so that a stall meets all that
come in it, against the same without a proxy just before. The proxies take turns at being first; the result is the
median of many short rounds, so that what else the machine does in one of them says nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import httptools
import uvloop

sys.path.insert(0, str(Path(__file__).parent))
import proxies
from proxies import KEY, LOAD_CORE, Proxy

from dragoman_devcluster.ports import free_port
from dragoman_tune.figures import quantile

BODY = json.dumps(
    {
        "model": "european",
        "messages": [
            {"role": "user", "content": "The cat sleeps on the sofa, and the dog barks in the garden."}
        ],
        "translation_options": {"source_lang": "en", "target_lang": "de"},
    }
)
HEADERS = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
PATH = "/v1/chat/completions"
BUSY_POLL_MS = 20
"""More than a Poisson stream of 500 a second ever pauses; at 20 a second, not."""
LUA = f"""wrk.method = "POST"
wrk.body = '{BODY}'
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer {KEY}"
"""
REQUEST = (
    f"POST {PATH} HTTP/1.1\r\nHost: x\r\n"
    + "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
    + f"Content-Length: {len(BODY)}\r\n\r\n{BODY}"
).encode()


class Client(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self, done: Callable[[Client, float], None]) -> None:
        self._done = done
        self._sent_s = 0.0
        self.failed = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected."""
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]

    def send(self, request: bytes) -> None:
        """Send one request."""
        self._sent_s = time.perf_counter()
        self._parser = httptools.HttpResponseParser(self)
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        """Bytes of an answer."""
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        """It is whole."""
        self.failed += self._parser.get_status_code() != 200
        self._done(self, time.perf_counter() - self._sent_s)


async def fixed_rate(
    port: int, rate: int, seconds: float, seed: int, request: bytes = REQUEST
) -> tuple[list[float], int]:
    """Seconds of each request of a Poisson stream, and how many failed."""
    loop, chance = asyncio.get_running_loop(), random.Random(seed)
    # A garbage collection takes milliseconds here, and would count as the proxy's.
    gc.collect()
    gc.freeze()
    gc.disable()
    idle: list[Client] = []
    times: list[float] = []
    clients: list[Client] = []

    def done(client: Client, took_s: float) -> None:
        times.append(took_s)
        idle.append(client)

    async def send() -> None:
        if not idle:
            _, client = await loop.create_connection(lambda: Client(done), "127.0.0.1", port)
            clients.append(client)
            idle.append(client)
        idle.pop().send(request)

    for _ in range(8):
        _, client = await loop.create_connection(lambda: Client(done), "127.0.0.1", port)
        clients.append(client)
        idle.append(client)
    sent, due_s = 0, time.perf_counter()
    end_s = due_s + seconds
    while due_s < end_s:
        due_s += chance.expovariate(rate)
        await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
        await send()
        sent += 1
    deadline_s = time.perf_counter() + 10
    while len(times) < sent and time.perf_counter() < deadline_s:  # noqa: ASYNC110 - answers set no event
        await asyncio.sleep(0.01)
    for client in clients:
        client._transport.abort()
    gc.enable()
    return times, sent - len(times) + sum(client.failed for client in clients)


def quantiles_ms(times: list[float]) -> dict[str, float]:
    """p50, p95 and p99 in milliseconds."""
    return {f"p{share}": 1000 * (quantile(times, share / 100) or 0.0) for share in (50, 95, 99)}


def wrk(port: int, seconds: int, script: Path) -> float:
    """Requests a second that got through.

    Raises:
        RuntimeError: Some did not.
    """
    command = ["taskset", "-c", LOAD_CORE, "wrk", "-t1", "-c32", f"-d{seconds}s", "-s", str(script)]
    ended = subprocess.run(
        [*command, f"http://127.0.0.1:{port}{PATH}"], capture_output=True, text=True, check=True
    )
    lines = ended.stdout.splitlines()
    if "Non-2xx" in ended.stdout:
        raise RuntimeError(ended.stdout)
    return float(next(line for line in lines if line.startswith("Requests/sec")).split()[1])


def one_round(
    number: int, compared: list[Proxy], direct_port: int, seconds: int, script: Path
) -> list[dict[str, Any]]:
    """Each proxy once, another one first each time; direct before each."""
    rows = []
    first = number % len(compared)
    for proxy in compared[first:] + compared[:first]:
        before_s, began_s = proxy.cpu_s(), time.monotonic()
        most = wrk(proxy.port, seconds, script)
        answered = max(1.0, most * (time.monotonic() - began_s))
        busy_us = 1e6 * (proxy.cpu_s() - before_s) / answered
        direct, _ = uvloop.run(fixed_rate(direct_port, proxy.rate, seconds, number))
        before_s = proxy.cpu_s()
        times, failed = uvloop.run(fixed_rate(proxy.port, proxy.rate, seconds, number))
        at_rate_us = 1e6 * (proxy.cpu_s() - before_s) / max(1, len(times))
        without, through = quantiles_ms(direct), quantiles_ms(times)
        row = {
            "proxy": proxy.name,
            "round": number,
            "most_per_s": round(most),
            "cpu_us_at_most": round(busy_us),
            "cpu_us_at_rate": round(at_rate_us),
            "rate": proxy.rate,
            "failed": failed,
            "memory_mb": proxy.memory_mb(),
            **{f"{name}_ms": round(through[name], 3) for name in through},
            **{f"added_{name}_ms": round(through[name] - without[name], 3) for name in through},
            **{f"direct_{name}_ms": round(without[name], 3) for name in without},
            "load_average": round(os.getloadavg()[0], 1),
        }
        print(json.dumps(row), file=sys.stderr, flush=True)
        rows.append(row)
    return rows


def table(rows: list[dict[str, Any]], compared: list[Proxy]) -> str:
    """Medians, with the range of what varies most; the ratio to nginx is round by round."""
    nginx = {row["round"]: row for row in rows if row["proxy"] == "nginx"}
    lines = [
        "| proxy | most/s (range) | of nginx's | CPU µs at most | nginx's × | at the rate | added p50 | p95 | p99 ms | "
        "at /s | PSS MB | failed |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for proxy in compared:
        own = [row for row in rows if row["proxy"] == proxy.name]

        def middle(field: str, own: list[dict[str, Any]] = own) -> float:
            return float(statistics.median(row[field] for row in own))

        most = [row["most_per_s"] for row in own]
        share = statistics.median(row["most_per_s"] / nginx[row["round"]]["most_per_s"] for row in own)
        times = statistics.median(
            row["cpu_us_at_most"] / nginx[row["round"]]["cpu_us_at_most"] for row in own
        )
        cells = [
            proxy.name,
            f"{middle('most_per_s'):,.0f} ({min(most):,} to {max(most):,})",
            f"{share:.2f}",
            f"{middle('cpu_us_at_most'):.0f}",
            f"{times:.1f}",
            f"{middle('cpu_us_at_rate'):.0f}",
            *(f"{middle(f'added_p{share}_ms'):.2f}" for share in (50, 95, 99)),
            str(proxy.rate),
            f"{middle('memory_mb'):.0f}",
            str(sum(row["failed"] for row in own)),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def ratios(rows: list[dict[str, Any]], ours: Proxy, other: Proxy) -> str:
    """This checkout's router over the other's, round by round: median and range."""
    lines = [f"{ours.name} ÷ {other.name}"]
    for field in ("most_per_s", "cpu_us_at_most", "cpu_us_at_rate", "p50_ms", "p99_ms", "memory_mb"):
        values = {
            name: [row[field] for row in rows if row["proxy"] == name] for name in (ours.name, other.name)
        }
        found = sorted(a / b for a, b in zip(values[ours.name], values[other.name], strict=True))
        lines.append(f"{field}: {statistics.median(found):.3f} ({found[0]:.3f} to {found[-1]:.3f})")
    return "\n".join(lines)


def stop_all(processes: Iterable[subprocess.Popen[bytes]]) -> None:
    """End processes together; one that does not end in 20 s is killed."""
    processes = list(processes)
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main() -> int:
    """Start all, compare, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=int, default=4, help="of each measurement")
    parser.add_argument("--vllm-router", type=Path, help="its program; left out where not given")
    parser.add_argument("--litellm", type=Path, help="its program; left out where not given")
    parser.add_argument("--against", type=Path, metavar="DIRECTORY", help="another checkout, with its .venv")
    parser.add_argument("--json", type=Path, help="write all measurements here")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {int(LOAD_CORE)})
    pods = free_port(), free_port()
    with tempfile.TemporaryDirectory(prefix="overhead-") as temporary:
        directory = Path(temporary)
        (directory / "post.lua").write_text(LUA)
        served = proxies.upstream(directory, pods)
        ours = partial(proxies.ours, directory, pods)
        compared: list[Proxy] = []
        try:
            compared.append(ours(free_port(), free_port()))
            compared.append(proxies.nginx(directory, pods, free_port()))
            if arguments.against:
                compared.append(ours(free_port(), free_port(), checkout=arguments.against.resolve()))
            else:
                compared.append(ours(free_port(), free_port(), busy_poll_ms=BUSY_POLL_MS))
                compared.append(proxies.haproxy(directory, pods, free_port()))
            if program := arguments.vllm_router:
                compared.append(proxies.vllm_router(directory, pods, free_port(), program, free_port()))
            if program := arguments.litellm:
                compared.append(proxies.litellm(directory, pods, free_port(), program))
            for proxy in compared:
                proxies.await_ready(proxy.port, PATH, BODY.encode(), HEADERS)
            rows: list[dict[str, Any]] = []
            for number in range(arguments.rounds):
                rows += one_round(number, compared, pods[0], arguments.seconds, directory / "post.lua")
        finally:
            stop_all([served, *(proxy.process for proxy in compared)])
    text = table(rows, compared)
    if arguments.against:
        text += "\n\n" + ratios(rows, compared[0], compared[2])
    print(text)
    if arguments.json:
        machine = {"cores": os.cpu_count(), "python": platform.python_version(), "kernel": platform.release()}
        arguments.json.write_text(
            json.dumps({"machine": machine, "rounds": rows, "table": text}, indent=1) + "\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
