"""What a pod does with more than it can do: asked of a running one, over HTTP.

    dragoman serve --model examples/demo-model --device cpu --max-num-seqs 16 --host 127.0.0.1 --port 8000
    python bench/scheduling/overload.py --port 8000 --at-once 1000

Prints how so many requests at once end, how long a refusal takes while the engine is saturated, and how
soon after its client has left a request is gone from the engine.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import statistics
import time
from collections import Counter

SENTENCE = "The cat number {} sleeps on the warm stone near the old house."
"""Each with a number of its own: identical segments in flight are translated once."""

SENTENCES = 12
"""Of a long text."""

REFUSED = "dragoman_admission_refusals_total"
RUNNING = "vllm:num_requests_running"
IN_FLIGHT = "dragoman_requests_in_flight"


class Connection:
    """One keep-alive connection."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, method: str, path: str, body: bytes = b"") -> None:
        """Send a request."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        self._streams[1].write(head.encode() + body)

    async def receive(self) -> tuple[int, bytes]:
        """Its answer."""
        assert self._streams is not None
        reader = self._streams[0]
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = next(int(line[15:]) for line in head.split("\r\n") if line.startswith("content-length:"))
        return int(head.split()[1]), await reader.readexactly(length)

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Send and receive."""
        await self.send(method, path, body)
        return await self.receive()

    def close(self) -> None:
        """Leave."""
        if self._streams is not None:
            self._streams[1].transport.abort()


def translation(number: int, sentences: int = 1) -> bytes:
    """A request's body, unlike any other number's."""
    text = " ".join(SENTENCE.format(f"{number}{at:02}") for at in range(sentences))
    return json.dumps({"text": text, "source_lang": "en", "target_lang": "fr"}).encode()


async def metric(connection: Connection, name: str) -> float:
    """The sum of a metric's samples."""
    _, page = await connection.ask("GET", "/metrics")
    lines = page.decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith((f"{name} ", f"{name}{{")))


async def at_once(port: int, count: int) -> None:
    """How so many requests, each on a connection of its own, end."""
    took_s: dict[str, list[float]] = {}

    async def one(number: int) -> str:
        connection = Connection(port)
        began_s = time.perf_counter()
        status, body = await connection.ask("POST", "/translate", translation(number))
        connection.close()
        outcome = "translated" if status == 200 else json.loads(body)["error"]["code"]
        took_s.setdefault(outcome, []).append(time.perf_counter() - began_s)
        return outcome

    began_s = time.perf_counter()
    found = Counter(await asyncio.gather(*map(one, range(count))))
    print(f"{count} at once: {dict(found)} in {time.perf_counter() - began_s:.1f} s")
    for outcome, each in took_s.items():
        print(f"  {outcome}: median {statistics.median(each):.2f} s, longest {max(each):.2f} s")


def spread(times_ms: list[float]) -> str:
    """Some quantiles."""
    ranked = sorted(times_ms) or [float("nan")]
    at = [ranked[int(len(ranked) * share)] for share in (0.5, 0.95, 0.99)]
    return f"median {at[0]:.2f} ms, p95 {at[1]:.2f} ms, p99 {at[2]:.2f} ms of {len(times_ms)}"


async def ask_on(port: int, number: int) -> None:
    """One caller who always has another long text, and waits a second when refused."""
    for at in itertools.count():
        connection = Connection(port)
        try:
            status, _ = await connection.ask("POST", "/translate", translation(number * 1000 + at, SENTENCES))
        finally:
            connection.close()
        await asyncio.sleep(1 if status == 503 else 0)


async def refusals(port: int, held: int, asked: int) -> None:
    """How long a refusal takes while so many callers ask again and again, and the event loop holds what it may."""
    probe = Connection(port)
    callers = [asyncio.create_task(ask_on(port, number)) for number in range(held)]
    while await metric(probe, REFUSED) < 1 and await metric(probe, IN_FLIGHT) < held:  # noqa: ASYNC110
        await asyncio.sleep(0.2)
    await asyncio.sleep(1)
    loaded = await metric(probe, IN_FLIGHT)
    times_ms, base_ms, statuses = [], [], Counter[int]()
    for number in range(asked):
        began_s = time.perf_counter()
        await probe.ask("GET", "/livez")
        base_ms.append(1000 * (time.perf_counter() - began_s))
        began_s = time.perf_counter()
        status, _ = await probe.ask("POST", "/translate", translation(number))
        if status == 503:
            times_ms.append(1000 * (time.perf_counter() - began_s))
        statuses[status] += 1
        await asyncio.sleep(0.01)
    for caller in callers:
        caller.cancel()
    await asyncio.gather(*callers, return_exceptions=True)
    print(f"with {loaded:.0f} in flight, statuses {dict(statuses)}")
    print(f"  refusals:                    {spread(times_ms)}")
    print(f"  /livez, in turn with them:   {spread(base_ms)}")
    while await metric(probe, IN_FLIGHT):  # noqa: ASYNC110
        await asyncio.sleep(0.1)


async def disconnects(port: int, times: int) -> None:
    """How soon a client that leaves frees its place in the engine; each look costs a read of /metrics."""
    probe = Connection(port)
    times_ms = []
    for number in range(times):
        leaving = Connection(port)
        await leaving.send("POST", "/translate", translation(number, SENTENCES))
        deadline_s = time.perf_counter() + 10
        while not await metric(probe, RUNNING):
            if time.perf_counter() > deadline_s:
                print("a request was done before it could be left; take a longer text")
                break
            await asyncio.sleep(0.002)
        began_s = time.perf_counter()
        leaving.close()
        while await metric(probe, IN_FLIGHT) or await metric(probe, RUNNING):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        times_ms.append(1000 * (time.perf_counter() - began_s))
    ranked = sorted(times_ms)
    print(f"left and free: median {statistics.median(ranked):.0f} ms, longest {ranked[-1]:.0f} ms of {times}")


async def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--at-once", type=int, default=0)
    parser.add_argument("--held", type=int, default=0, help="callers that ask on while refusals are timed")
    parser.add_argument("--refusals", type=int, default=300)
    parser.add_argument("--disconnects", type=int, default=0)
    asked = parser.parse_args()
    if asked.disconnects:
        await disconnects(asked.port, asked.disconnects)
    if asked.held:
        await refusals(asked.port, asked.held, asked.refusals)
    if asked.at_once:
        await at_once(asked.port, asked.at_once)


if __name__ == "__main__":
    asyncio.run(main())
