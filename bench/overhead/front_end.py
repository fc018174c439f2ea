"""CPU time of a pod's HTTP process for one request, by requests in flight and sentences in each.

The engine is the scripted one, in the same process: it takes a second for each generation and answers rightly.
Requests are DeepL's, on connections that are kept, from another process. With `--against`, a pod of another checkout
takes turns with this one's, so that the machine's other work meets both alike.

    python bench/overhead/front_end.py [--against /other/checkout/.venv/bin/python] [--json FILE]

For vLLM's part there is `dragoman bench compare`, whose table has the same measurement for a pod with vLLM.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import aiohttp
import uvloop

from dragoman_bench.sentences import LONG_SENTENCES
from dragoman_devcluster.ports import free_port
from dragoman_tune.client import connections, post
from dragoman_tune.closed_loop import Pace, closed_loop
from dragoman_tune.requests import Answer, SampleRequest
from dragoman_tune.server import Server, running

MAX_IN_FLIGHT = 512
POD = str(Path(__file__).with_name("front_end_pod.py"))
START_S = 60.0
Case = tuple[int, int]
"""Requests in flight, and sentences of each."""


def requests(sentences: int) -> Iterator[SampleRequest]:
    """Endless; none has a sentence that another one in flight has."""
    known = list(LONG_SENTENCES)
    random.Random(7).shuffle(known)
    chosen = itertools.cycle(known)
    while True:
        yield SampleRequest(" ".join(itertools.islice(chosen, sentences)), "EN", "DE")


async def translate(session: aiohttp.ClientSession, url: str, request: SampleRequest) -> Answer:
    """One request of DeepL's API."""
    body = {"text": [request.text], "source_lang": request.source_lang, "target_lang": request.target_lang}
    return await post(session, f"{url}/v2/translate", body)


async def cpu_ms(python: str, case: Case, window_s: float, log: Path) -> float:
    """Milliseconds of the HTTP process for a request."""
    in_flight, sentences = case
    port = free_port()
    command = [python, POD, str(port)]
    spent_s: list[float] = []
    async with running(Server("the pod", command, port, "/readyz", log, {}), START_S) as server:

        async def mark() -> None:
            spent_s.append(server.cpu_s()[0])

        async with connections() as session:
            send = partial(translate, session, server.url)
            pace = Pace(window_s, ramp_s=10.0)
            window = await closed_loop(
                send, requests(sentences), in_flight, pace, ended=server.ended, mark=mark
            )
    failed = [sample.answer.error for sample in window.samples if sample.answer.error]
    if failed:
        raise SystemExit(f"{len(failed)} of {len(window.samples)} requests failed, as by {failed[0]}")
    return 1000 * (spent_s[1] - spent_s[0]) / len(window.samples)


async def measured(options: argparse.Namespace) -> dict[Case, list[list[float]]]:
    """Milliseconds of every repetition, of this pod and of the other one."""
    pythons = [sys.executable, *([options.against] if options.against else [])]
    found: dict[Case, list[list[float]]] = defaultdict(lambda: [[] for _ in pythons])
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(options.repetitions):
            for case in itertools.product(options.in_flight, options.sentences):
                # The one that is first in one repetition is last in the next.
                order = list(enumerate(pythons))[:: -1 if number % 2 else 1]
                for index, python in order:
                    log = Path(scratch) / "pod.log"
                    found[case][index].append(await cpu_ms(python, case, options.window, log))
    return found


def main() -> None:
    """Measure and print medians."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--against", metavar="PYTHON", help="of another checkout's environment")
    parser.add_argument("--in-flight", type=int, nargs="+", default=[25, 128, MAX_IN_FLIGHT])
    parser.add_argument("--sentences", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--window", type=float, default=5.0, help="seconds of one measurement (5)")
    parser.add_argument("--json", type=Path, help="file for every measurement")
    options = parser.parse_args()
    found = uvloop.run(measured(options))
    print(
        "in flight  sentences  CPU ms a request"
        + ("  the other's  ratio in pairs" if options.against else "")
    )
    for (in_flight, sentences), (own, *other) in found.items():
        line = f"{in_flight:9}  {sentences:9}  {statistics.median(own):16.2f}"
        if other:
            ratios = [mine / theirs for mine, theirs in zip(own, other[0], strict=True)]
            line += f"  {statistics.median(other[0]):11.2f}  {statistics.median(ratios):14.2f}"
        print(line)
    if options.json:
        document = [{"in_flight": key[0], "sentences": key[1], "cpu_ms": each} for key, each in found.items()]
        options.json.write_text(json.dumps(document) + "\n")


if __name__ == "__main__":
    main()
