"""What a running pod does with more requests than it can answer.

    dragoman serve --model examples/demo-model --device cpu --max-num-seqs 16 --host 127.0.0.1 --port 8000
    python bench/scheduling/overload.py --port 8000 --at-once 1000

Prints how so many requests at once end, how long a refusal takes while the engine is saturated, and how
soon after its client has disconnected a request is gone from the engine.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import statistics
import time
from collections import Counter

import aiohttp

from dragoman_tune.figures import quantile
from dragoman_tune.scrape import scrape

SENTENCE = "The cat number {} sleeps on the warm stone near the old house."
"""Each with a number of its own: identical segments in flight are translated once."""

SENTENCES = 12
"""Of a long text."""

REFUSED = "dragoman_admission_refusals_total"
RUNNING = "vllm:num_requests_running"
IN_FLIGHT = "dragoman_requests_in_flight"


def translation(number: int, sentences: int = 1) -> dict[str, str]:
    """A request's body, unlike any other number's."""
    text = " ".join(SENTENCE.format(f"{number}{at:02}") for at in range(sentences))
    return {"text": text, "source_lang": "en", "target_lang": "fr"}


class Pod:
    """The pod under test.

    Args:
        http: Connections, which are kept.
        url: Its address.
    """

    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self._http, self._url = http, url

    async def translate(self, number: int, sentences: int = 1) -> tuple[int, str]:
        """The status of one translation, and `translated` or the error's code."""
        async with self._http.post(f"{self._url}/translate", json=translation(number, sentences)) as answer:
            body = await answer.json()
            return answer.status, "translated" if answer.status == 200 else str(body["error"]["code"])

    async def live(self) -> None:
        """The liveness probe."""
        async with self._http.get(f"{self._url}/livez") as answer:
            await answer.read()

    async def metric(self, name: str) -> float:
        """The sum of a metric's samples."""
        return (await scrape(self._http, self._url)).get(name, 0.0)


async def at_once(pod: Pod, count: int) -> None:
    """How so many requests, each on a connection of its own, end."""
    took_s: dict[str, list[float]] = {}

    async def one(number: int) -> str:
        began_s = time.perf_counter()
        _, outcome = await pod.translate(number)
        took_s.setdefault(outcome, []).append(time.perf_counter() - began_s)
        return outcome

    began_s = time.perf_counter()
    found = Counter(await asyncio.gather(*map(one, range(count))))
    print(f"{count} at once: {dict(found)} in {time.perf_counter() - began_s:.1f} s")
    for outcome, each in took_s.items():
        print(f"  {outcome}: median {statistics.median(each):.2f} s, longest {max(each):.2f} s")


def spread(times_ms: list[float]) -> str:
    """Some quantiles."""
    at = [quantile(times_ms, share) or 0.0 for share in (0.5, 0.95, 0.99)]
    return f"median {at[0]:.2f} ms, p95 {at[1]:.2f} ms, p99 {at[2]:.2f} ms of {len(times_ms)}"


async def send_on(pod: Pod, number: int) -> None:
    """One client that always has another long text, and waits a second when refused."""
    for at in itertools.count():
        status, _ = await pod.translate(number * 1000 + at, SENTENCES)
        await asyncio.sleep(1 if status == 503 else 0)


async def refusals(pod: Pod, clients: int, count: int) -> None:
    """How long a refusal takes while so many clients send again and again."""
    callers = [asyncio.create_task(send_on(pod, number)) for number in range(clients)]
    while await pod.metric(REFUSED) < 1 and await pod.metric(IN_FLIGHT) < clients:  # noqa: ASYNC110
        await asyncio.sleep(0.2)
    await asyncio.sleep(1)
    loaded = await pod.metric(IN_FLIGHT)
    times_ms, base_ms, statuses = [], [], Counter[int]()
    for number in range(count):
        began_s = time.perf_counter()
        await pod.live()
        base_ms.append(1000 * (time.perf_counter() - began_s))
        began_s = time.perf_counter()
        status, _ = await pod.translate(number)
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
    while await pod.metric(IN_FLIGHT):  # noqa: ASYNC110
        await asyncio.sleep(0.1)


async def disconnects(pod: Pod, times: int) -> None:
    """How soon a client that disconnects frees its slot in the engine; each check costs a read of /metrics."""
    times_ms = []
    for number in range(times):
        request = asyncio.create_task(pod.translate(number, SENTENCES))
        while not await pod.metric(RUNNING):
            if request.done():
                print("a request ended before its client could disconnect; take a longer text")
                break
            await asyncio.sleep(0.002)
        began_s = time.perf_counter()
        request.cancel()
        while await pod.metric(IN_FLIGHT) or await pod.metric(RUNNING):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        times_ms.append(1000 * (time.perf_counter() - began_s))
    print(
        f"disconnected and free: median {statistics.median(times_ms):.0f} ms, longest {max(times_ms):.0f} ms"
    )


async def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--at-once", type=int, default=0)
    parser.add_argument("--clients", type=int, default=0, help="clients that send while refusals are timed")
    parser.add_argument("--refusals", type=int, default=300)
    parser.add_argument("--disconnects", type=int, default=0)
    options = parser.parse_args()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        pod = Pod(http, f"http://127.0.0.1:{options.port}")
        if options.disconnects:
            await disconnects(pod, options.disconnects)
        if options.clients:
            await refusals(pod, options.clients, options.refusals)
        if options.at_once:
            await at_once(pod, options.at_once)


if __name__ == "__main__":
    asyncio.run(main())
