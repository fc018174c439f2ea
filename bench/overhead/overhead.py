"""What HTTP and the core add to a bare call of the engine, for one short sentence.

The engine is the scripted one, which answers at once and rightly: what is measured is all that stands around
an engine. Three ways take turns, so that the machine's other work meets all of them alike:

    engine   `engine.generate` with a prompt, as the core calls it, in this process
    core     `Translator.translate`, in this process: segments, prompt, markers, guards
    http     `POST /translate` over loopback, on one connection, to the pod's application under uvicorn

All of it runs in one thread, the client too, which is therefore counted. The limit is compared with the time on the
processor, to which the time on the clock comes down on an idle machine: a busy one stretches that at will.

    python bench/overhead/overhead.py [--requests 3000] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import socket
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import uvicorn
import uvloop
from prometheus_client import CollectorRegistry

from dragoman_bench.sentences import SENTENCES
from dragoman_protocols.languages import pair
from dragoman_protocols.translation import TranslationRequest
from dragoman_service.core.stages import Observer
from dragoman_service.core.translator import translator_of
from dragoman_service.engine.scripted.engine import ScriptedEngine, script_from
from dragoman_service.http.app import create_app
from dragoman_service.http.lifecycle import Lifecycle
from dragoman_service.http.tracing import tracing
from dragoman_service.prompts.families import prompt_family
from dragoman_service.settings import Settings

LIMIT_MS = 3.0
ROUNDS = 30

Way = Callable[[str, str], Awaitable[None]]


async def measured(requests: int) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Seconds of each request by way, and seconds on the processor for each."""
    settings = Settings(model="org/model", engine="scripted", engine_args={"answers": SENTENCES})
    engine = ScriptedEngine(script_from(settings), "bench", CollectorRegistry())
    translator = translator_of(settings, engine, Observer())
    await translator.warm_up()
    family, languages = prompt_family("chatml-generic"), pair("en", "de", ())

    async def by_engine(text: str, wanted: str) -> None:
        prompt = family.prompt(text, languages)
        async with aclosing(engine.generate(prompt, family.decoding, text)) as chunks:
            assert [chunk.text async for chunk in chunks] == [wanted]

    async def by_core(text: str, wanted: str) -> None:
        (result,) = await translator.translate(TranslationRequest((text,), "de", "en"))
        assert (result.text, result.warnings) == (wanted, ())

    async with pod(settings) as post:

        async def by_http(text: str, wanted: str) -> None:
            body = {"text": text, "source_lang": "en", "target_lang": "de"}
            assert json.loads(await post("/translate", json.dumps(body).encode()))["translation"] == wanted

        ways: dict[str, Way] = {"engine": by_engine, "core": by_core, "http": by_http}
        for way in ways.values():
            await timed(way, 100)
        took_s: dict[str, list[float]] = {name: [] for name in ways}
        rounds_s: dict[str, list[float]] = {name: [] for name in ways}
        each = max(1, requests // ROUNDS)
        for _ in range(ROUNDS):
            for name, way in ways.items():
                began_s = time.process_time()
                took_s[name] += await timed(way, each)
                rounds_s[name].append((time.process_time() - began_s) / each)
    return took_s, {name: statistics.median(spent) for name, spent in rounds_s.items()}


async def timed(way: Way, requests: int) -> list[float]:
    """Seconds of each of so many requests, one after the other."""
    took_s = []
    for text, wanted in itertools.islice(itertools.cycle(SENTENCES.items()), requests):
        began_s = time.perf_counter()
        await way(text, wanted)
        took_s.append(time.perf_counter() - began_s)
    return took_s


@asynccontextmanager
async def pod(settings: Settings) -> AsyncIterator[Callable[[str, bytes], Awaitable[bytes]]]:
    """A pod's application under uvicorn, as a function that posts to it on one connection."""
    registry, lifecycle = CollectorRegistry(), Lifecycle()
    engine = ScriptedEngine(script_from(settings), settings.name, registry)
    app = create_app(settings, engine, lifecycle, registry, tracing(None, settings.name))
    lifecycle.ready()
    server = uvicorn.Server(
        uvicorn.Config(app, http="httptools", ws="none", lifespan="off", access_log=False, log_config=None)
    )
    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        reader, writer = await asyncio.open_connection(*listening.getsockname())

        async def post(path: str, body: bytes) -> bytes:
            head = f"POST {path} HTTP/1.1\r\nHost: pod\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
            length = next(
                int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:")
            )
            answer = await reader.readexactly(length)
            if b" 200 " not in lines[0]:
                raise SystemExit(f"the pod answered {lines[0].decode()}: {answer.decode()}")
            return answer

        yield post
        writer.close()
        server.should_exit = True
        await serving


def main() -> int:
    """Measure and print; exit status 1 where the limit is not kept."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--requests", type=int, default=3000, help="of each way")
    options.add_argument("--json", type=Path, help="file for the figures")
    arguments = options.parse_args()
    took_s, spent_s = uvloop.run(measured(arguments.requests))
    print(f"{'':8}{'processor ms':>14}{'added':>8}{'times':>8}{'median ms':>12}{'added':>8}{'p99 ms':>9}")
    bare_s, bare_median_s = spent_s["engine"], statistics.median(took_s["engine"])
    figures = {}
    for name, each in took_s.items():
        median_s, p99_s = statistics.median(each), statistics.quantiles(each, n=100)[98]
        added_s = spent_s[name] - bare_s
        figures[name] = {"processor_s": spent_s[name], "median_s": median_s, "p99_s": p99_s}
        print(
            f"{name:8}{spent_s[name] * 1000:14.3f}{added_s * 1000:8.3f}{spent_s[name] / bare_s:7.1f}x"
            f"{median_s * 1000:12.3f}{(median_s - bare_median_s) * 1000:8.3f}{p99_s * 1000:9.3f}"
        )
    added_ms = (spent_s["http"] - bare_s) * 1000
    print(f"HTTP and core together add {added_ms:.2f} ms of processor time; the limit is {LIMIT_MS:g} ms")
    if arguments.json:
        arguments.json.write_text(json.dumps({"ways": figures, "added_ms": added_ms}) + "\n")
    return int(added_ms > LIMIT_MS)


if __name__ == "__main__":
    sys.exit(main())
