"""Throughput of an engine with a part of it ÷ without, on a GPU: the part is switched on and off while requests run.

    python bench/overhead/switched.py --model DIR --output DIR

DIR has a checkpoint of `dragoman_bench.checkpoint`, whose translations are known. The parts are:

- delay: the measured delay by a prefill, instead of the lowest one, in the decision how long a request waits
- gate: prefill batching
- slots: the shortcut for slots in the KV cache
- coalescing: output coalescing, for requests that begin while it is on
- statistics: statistics of the scheduler at intervals, instead of at each step

A pair is some steps with a part and some without, in random order. The other part is on. All is measured in one engine,
because the speed of the CPU differs by more between two of them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import runpy
import statistics
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import aiohttp

from dragoman_bench.catalogue import LARGE, pod, started
from dragoman_bench.loads import VARIABLE, stream, words_of
from dragoman_bench.plan import RunPlan
from dragoman_bench.report import median_interval
from dragoman_tune.client import connections, translate
from dragoman_tune.closed_loop import Pace, closed_loop
from dragoman_tune.figures import figures
from dragoman_tune.requests import Answer, SampleRequest
from dragoman_tune.server import Server, settled

START_S = 240.0
PARTS = ("delay", "gate", "slots", "coalescing", "statistics")
BLOCK_STEPS = 160
SKIPPED_STEPS = 40
"""Of a block: requests that were held under the other setting have started by then."""


class Blocks:
    """The parts that are on, and the throughput of each block, in the engine's process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._draw = random.Random(1)
        self._step = self._tokens = 0
        self._began_s = self._seconds = 0.0
        self._block = -1
        self.on = dict.fromkeys(PARTS, True)

    def begin_step(self, sequences: int) -> None:
        """Count a step that begins, and its sequences, each of which gets a token; switch where a block ends."""
        now_s = time.monotonic()
        if self._step > SKIPPED_STEPS:
            self._seconds += now_s - self._began_s
            self._tokens += sequences
        self._began_s = now_s
        self._step += 1
        if self._step == BLOCK_STEPS:
            self._end_block(sequences)

    def _end_block(self, sequences: int) -> None:
        part = PARTS[self._block // 2 % len(PARTS)]
        if self._block >= 0:
            block = {
                "pair": self._block // 2,
                "part": part,
                "on": self.on[part],
                "sequences": sequences,
                "tokens_per_s": self._tokens / self._seconds,
            }
            with self._path.open("a") as file:
                file.write(json.dumps(block) + "\n")
        self._block += 1
        part = PARTS[self._block // 2 % len(PARTS)]
        on = self._draw.random() < 0.5 if self._block % 2 == 0 else not self.on[part]
        self.on = dict.fromkeys(PARTS, True) | {part: on}
        self._step = self._tokens = 0
        self._seconds = 0.0


def serve(path: Path) -> None:
    """The pod. The engine's process is forked from it, with what is replaced here."""
    from dragoman_service.engine.vllm import process

    original = process._replace_scheduler

    def replace(*args: Any, **more: Any) -> Any:
        switch(Blocks(path))
        return original(*args, **more)

    vars(process)["_replace_scheduler"] = replace
    runpy.run_module("dragoman", run_name="__main__", alter_sys=True)


def switch(blocks: Blocks) -> None:
    """Have the scheduler and the measurement of the delay follow `blocks`."""
    from dragoman_service.engine.vllm import open_blocks, scheduler
    from dragoman_service.engine.vllm.prefill_batching import MIN_STEPS, PrefillDelay, PrefillGate

    schedule, steps = scheduler._Gated.schedule, vars(PrefillDelay)["steps"].fget
    holds, has_open_block = PrefillGate.holds, open_blocks.has_open_block
    is_bufferable, make_stats = scheduler._Coalescing._is_bufferable, scheduler._Coalescing.make_stats

    def counted(self: Any, *args: Any, **more: Any) -> Any:
        blocks.begin_step(len(self.running))
        return schedule(self, *args, **more)

    def delay(self: Any) -> float:
        return float(steps(self)) if blocks.on["delay"] else MIN_STEPS

    def gate(self: Any, *args: Any) -> bool:
        held = holds(self, *args)
        return held and blocks.on["gate"]

    def slots(*args: int) -> bool:
        return blocks.on["slots"] and has_open_block(*args)

    def coalescing(self: Any, request_id: str) -> bool:
        return blocks.on["coalescing"] and is_bufferable(self, request_id)

    def statistics_of(self: Any, *args: Any, **more: Any) -> Any:
        if not blocks.on["statistics"]:
            self._statistics_due_s = 0.0
        return make_stats(self, *args, **more)

    for owner, name, replacement in (
        (scheduler._Gated, "schedule", counted),
        (PrefillGate, "holds", gate),
        (open_blocks, "has_open_block", slots),
        (scheduler._Coalescing, "_is_bufferable", coalescing),
        (scheduler._Coalescing, "make_stats", statistics_of),
        (PrefillDelay, "steps", property(delay)),
    ):
        setattr(owner, name, replacement)


def ratios(lines: list[str], in_flight: int) -> dict[str, list[float]]:
    """Throughput with each part ÷ without, in each pair of blocks at a load."""
    pairs: dict[tuple[str, int], dict[bool, float]] = {}
    for block in map(json.loads, lines):
        # A pair at the begin or the end of the load has too few sequences.
        if block["sequences"] > in_flight / 2:
            pairs.setdefault((block["part"], block["pair"]), {})[block["on"]] = block["tokens_per_s"]
    found: dict[str, list[float]] = {part: [] for part in PARTS}
    for (part, _), pair in pairs.items():
        if len(pair) == 2:
            found[part].append(pair[True] / pair[False])
    return found


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


class Checked:
    """Sends requests, and counts the translations that are not the known ones."""

    def __init__(self, session: aiohttp.ClientSession, url: str, words: tuple[str, ...]) -> None:
        self._session, self._url, self._words = session, url, words
        self.wrong = 0

    async def send(self, request: SampleRequest) -> Answer:
        """Send one."""
        answer = await translate(self._session, self._url, request)
        if answer.error is None:
            tokens = request.output_tokens or 0
            expected = " ".join(self._words[len(self._words) - tokens + 1 :])
            self.wrong += answer.document["translation"] != expected
        return answer


async def measured(server: Server, model: Path, in_flight: int, pace: Pace) -> dict[str, Any]:
    """One window: throughput, latencies, errors and wrong translations."""
    async with connections() as session:
        checked = Checked(session, server.url, words_of(model).target)
        requests = stream(VARIABLE, model, None, in_flight)
        window = await closed_loop(checked.send, requests, in_flight, pace, ended=server.ended)
    return {"in_flight": in_flight, "wrong": checked.wrong, **asdict(figures(window))}


async def measure(options: argparse.Namespace) -> None:
    """All loads, one after the other."""
    path = options.output / "blocks.jsonl"
    plan = RunPlan(options.model, "{text}", "cuda", options.memory, 2048, None, START_S)

    def command(port: int) -> list[str]:
        python, _, _, *serving = pod(**LARGE)(plan, port)
        return [python, __file__, "serve", str(path), *serving, "--cache-dir", str(options.output / "cache")]

    results = []
    async with started(plan, "pod", command, options.output, START_S) as server:
        await settled(server)
        for load in options.in_flight.split(","):
            in_flight, seconds = map(int, load.split(":"))
            known = len(_lines(path))
            window = await measured(server, options.model, in_flight, Pace(window_s=seconds))
            lines = _lines(path)[known:]
            results.append({**window, "blocks": [json.loads(line) for line in lines]})
            (options.output / "results.json").write_text(json.dumps(results, indent=1) + "\n")
            print(f"{in_flight} in flight: {window['wrong']} wrong, {window['errors']} errors")
            for part, values in ratios(lines, in_flight).items():
                interval = median_interval(values)
                shown = "" if interval is None else f" ({interval[0]:.3f} to {interval[1]:.3f})"
                print(f"  with {part} ÷ without: {statistics.median(values):.3f}{shown}, {len(values)} pairs")


def main() -> None:
    """Parse arguments and measure."""
    if sys.argv[1:2] == ["serve"]:
        path = Path(sys.argv[2])
        del sys.argv[1:3]
        serve(path)
        return
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--in-flight", default="25:240,128:240,512:240", help="requests : seconds, …")
    parser.add_argument("--memory", type=float, default=0.5, help="share of the GPU's memory (0.5)")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    asyncio.run(measure(options))


if __name__ == "__main__":
    main()
