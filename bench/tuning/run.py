"""Tuning of maxNumSeqs under a load that shifts twice, against a grid of fixed values.

    python bench/tuning/run.py --output DIRECTORY [--engine vllm|scripted] [--limit-s 560]

A local cluster with operator and two routers, and two replicas of one GPU each that start with a maxNumSeqs that is too
low. The recommendation of the operator is set in the spec as soon as it differs, as its user would do, under load. Then
the same loads run against fixed values, two engines of one replica at once, each with half of the requests in flight.

Output: `progress.log`, `results.json` and `table.md` in the directory. Each finished part is kept: after an
interruption, or where the time was too short, the same command goes on with the next. Exit status 1 if a request was
lost, 3 if the time was too short.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from tuning.figures import Rollout, interval, table
from tuning.load import Load
from tuning.stage import CHECKOUT, REPLICAS, Engines, Stage, all_ready, stage

from dragoman_bench.checkpoint import SHAPES, write_checkpoint
from dragoman_bench.gpu import GPU
from dragoman_bench.machine import machine
from dragoman_tune.closed_loop import Pace, closed_loop
from dragoman_tune.figures import figures

NAME = "tuned"
EVERY_S = 5.0
"""Length of the intervals of the report."""
POLL_S = 0.5
TICK_S = 2.0
"""Interval of the operator's measurements; the default of 5 s has too few in a short window."""
ROUTERS_RAMP_S = 10.0
"""Time after which routers give a new replica its full share."""
TOO_SHORT = 3


class Report:
    """Progress, and the results of the finished parts."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._began_s = time.monotonic()
        file = directory / "results.json"
        self.document: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {"tuned": None, "grid": {}}

    def say(self, message: str) -> None:
        """One line, to the terminal and the log."""
        line = f"{time.monotonic() - self._began_s:6.1f} s  {message}"
        print(line, flush=True)
        with (self._directory / "progress.log").open("a") as log:
            log.write(f"{line}\n")

    def write(self) -> str:
        """Write the results; the table."""
        (self._directory / "results.json").write_text(json.dumps(self.document, indent=1) + "\n")
        phases = (self.document["tuned"] or {}).get("phases", [])
        grid = {
            int(size): {int(in_flight): found["tokens_per_s"] for in_flight, found in rows.items()}
            for size, rows in self.document["grid"].items()
        }
        text = table(phases, grid)
        (self._directory / "table.md").write_text(f"{text}\n")
        return text


class Tuned:
    """The part with tuning."""

    def __init__(self, options: argparse.Namespace, engines: Engines, report: Report) -> None:
        self._options, self._engines, self._report = options, engines, report
        self._size = options.start
        self._reason = ""
        self._intervals: list[dict[str, Any]] = []

    async def run(self, on: Stage) -> None:
        """All phases; each is written when it ends."""
        say, started_s = self._report.say, time.monotonic()
        say(f"{REPLICAS} replicas with maxNumSeqs {self._size} start")
        async with on.deployed(self._manifest()) as cluster:
            say(f"ready after {time.monotonic() - started_s:.0f} s")
            load = Load(on.sender(NAME), self._engines.requests(seed=1))
            phases: list[dict[str, Any]] = []
            self._report.document["tuned"] = {"complete": False, "phases": phases, "intervals": self._intervals}
            with self._reported(load):
                for in_flight in self._options.phases:
                    load.keep(in_flight)
                    phases.append(await self._phase(cluster, load, in_flight))
                    self._report.write()
                await load.aclose()
        self._report.document["tuned"]["complete"] = True
        self._report.write()

    async def _phase(self, cluster: Any, load: Load, in_flight: int) -> dict[str, Any]:
        """Keep the load until a recommendation has fitted for `settle`; set those that do not."""
        options, say, began_s = self._options, self._report.say, time.monotonic()
        say(f"phase: {in_flight} in flight, maxNumSeqs {self._size}")
        rollouts: list[tuple[int, float, float]] = []
        settled_s, wanted = began_s, None
        # A rollout is complete before the phase ends: none is left to the next.
        while (now := time.monotonic()) < began_s + options.longest:
            if wanted is not None and now >= settled_s + options.settle:
                break
            await asyncio.sleep(POLL_S)
            wanted = await self._recommended(cluster)
            if wanted in (None, self._size):
                continue
            say(f"maxNumSeqs {self._size} → {wanted}")
            before, self._size, changed_s = self._size, wanted, time.monotonic()
            await cluster.apply(self._manifest())
            while not await all_ready(cluster, self._manifest()):  # noqa: ASYNC110 - pods set no event
                await asyncio.sleep(POLL_S)
            settled_s = time.monotonic()
            rollouts.append((before, changed_s, settled_s))
            say(f"rolled out after {settled_s - changed_s:.0f} s")
        ended_s = time.monotonic()
        steady_s = settled_s + min(ROUTERS_RAMP_S, options.settle / 2)
        return {
            "in_flight": in_flight,
            "size": self._size,
            "whole": interval(load.samples, began_s, ended_s),
            "steady": interval(load.samples, steady_s, ended_s),
            "rollouts": list(self._rows(load, rollouts, began_s, ended_s)),
        }

    def _rows(
        self, load: Load, rollouts: Sequence[tuple[int, float, float]], began_s: float, ended_s: float
    ) -> Iterator[dict[str, Any]]:
        """Each rollout with the rates before, meanwhile, and after it."""
        ends = [began_s, *(done_s for _, _, done_s in rollouts)]
        starts = [*(changed_s for _, changed_s, _ in rollouts), ended_s]
        sizes = [*(size for size, _, _ in rollouts), self._size]
        rates = [interval(load.samples, *span)["tokens_per_s"] for span in zip(ends, starts, strict=True)]
        for at, (size, changed_s, done_s) in enumerate(rollouts):
            during = interval(load.samples, changed_s, done_s)["tokens_per_s"]
            seconds = done_s - changed_s
            yield asdict(Rollout(size, sizes[at + 1], seconds, rates[at], during, rates[at + 1]))

    async def _recommended(self, cluster: Any) -> int | None:
        """The recommendation; None before the first for the current value. Changes of the reason are reported."""
        status = await cluster.status()
        found = status.get("recommendation") or {}
        tuning = next((c for c in status.get("conditions", ()) if c["type"] == "Tuning"), {})
        reason = f"{tuning.get('reason')}: {found.get('reason') or tuning.get('message')}"
        if reason != self._reason:
            self._report.say(f"status: {reason}")
            self._reason = reason
        return found.get("maxNumSeqs")

    def _manifest(self) -> dict[str, Any]:
        tuning = {"mode": "Recommend", "window": f"{self._options.window}s"}
        return self._engines.manifest(NAME, self._size, REPLICAS, tuning)

    @contextmanager
    def _reported(self, load: Load) -> Iterator[None]:
        async def rows() -> None:
            while True:
                began_s = time.monotonic()
                await asyncio.sleep(EVERY_S)
                row = {"size": self._size, **interval(load.samples, began_s, time.monotonic())}
                self._intervals.append(row)
                self._report.say(" ".join(f"{name}={value}" for name, value in row.items()))

        task = asyncio.create_task(rows())
        try:
            yield
        finally:
            task.cancel()
            load.abort()


async def grid(options: argparse.Namespace, engines: Engines, report: Report, on: Stage) -> None:
    """The fixed values that are not measured yet, two at once: one alone would have the CPUs to itself."""
    left = [size for size in options.grid if str(size) not in report.document["grid"]]
    for pair in (left[at : at + REPLICAS] for at in range(0, len(left), REPLICAS)):
        started_s = time.monotonic()
        report.say(f"grid: maxNumSeqs {pair} start")
        async with AsyncExitStack() as deployed:
            manifests = [engines.manifest(f"fixed-{size}", size, 1, {"mode": "Off"}) for size in pair]
            await asyncio.gather(*(deployed.enter_async_context(on.deployed(each)) for each in manifests))
            report.say(f"ready after {time.monotonic() - started_s:.0f} s")
            rows: dict[int, dict[str, Any]] = {size: {} for size in pair}
            for in_flight in dict.fromkeys(options.phases):
                loops = [
                    closed_loop(on.sender(f"fixed-{size}"), engines.requests(seed=2), in_flight // REPLICAS, options.pace)
                    for size in pair
                ]
                for size, window in zip(pair, await asyncio.gather(*loops), strict=True):
                    found = figures(window)
                    # Of all replicas: each engine has the share of one.
                    tokens_per_s = REPLICAS * (found.output_tokens_per_s or 0.0)
                    rows[size][str(in_flight)] = {**vars(found), "tokens_per_s": tokens_per_s}
                    report.say(f"grid: {size} with {in_flight} in flight: {tokens_per_s:.0f} tokens/s, {found.errors}")
            report.document["grid"] |= {str(size): row for size, row in rows.items()}
            report.write()


async def play(options: argparse.Namespace, report: Report) -> None:
    """All parts that are not finished."""
    scripted = options.engine == "scripted"
    model = CHECKOUT / "examples/demo-model" if scripted else (options.output / "model").resolve()
    if not scripted:
        report.document["machine"] = machine(GPU())
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as own:
            # In a process of its own, which frees its GPU memory when it ends.
            shape, tokenizer = SHAPES[options.shape], CHECKOUT / "examples/demo-model"
            await asyncio.wrap_future(own.submit(write_checkpoint, model, shape, tokenizer, "cuda"))
        report.say(f"model: {options.shape}, random weights")
    report.document["options"] = {name: str(value) for name, value in vars(options).items()}
    engines = Engines(model, scripted)
    next(engines.requests(seed=0))  # The tokenizer is loaded.
    state = Path(tempfile.mkdtemp(prefix="dragoman-tuning-"))
    report.say(f"the local cluster's logs are in {state}")
    async with stage(state, options.api, TICK_S) as on:
        report.say("operator and routers are ready")
        if "tuned" in options.parts and not (report.document["tuned"] or {}).get("complete"):
            await Tuned(options, engines, report).run(on)
        if "grid" in options.parts:
            await grid(options, engines, report, on)


def main() -> int:
    """Run it; see the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, help="directory of the results, and of the model")
    parser.add_argument("--engine", choices=["vllm", "scripted"], default="vllm")
    parser.add_argument("--shape", choices=[*SHAPES], default="qwen3-1.7b", help="of the model for vLLM")
    parser.add_argument("--api", choices=["auto", "embedded", "kube-apiserver"], default="embedded")
    parser.add_argument("--parts", nargs="+", choices=["tuned", "grid"], default=["tuned", "grid"])
    parser.add_argument("--start", type=int, default=16, help="maxNumSeqs at the start")
    parser.add_argument("--phases", type=int, nargs="+", default=[160, 24, 320], help="requests in flight")
    parser.add_argument("--grid", type=int, nargs="*", default=[128, 256, 64, 96, 16, 32], help="values, in this order")
    parser.add_argument("--window", type=int, default=10, help="seconds, of spec.tuning")
    parser.add_argument("--settle", type=float, default=30, help="seconds without a change that end a phase")
    parser.add_argument("--longest", type=float, default=240, help="seconds after which a phase ends in any case")
    parser.add_argument("--grid-window", type=float, default=12, help="seconds that are measured for each load")
    parser.add_argument("--limit-s", type=float, default=560, help="seconds for everything")
    options = parser.parse_args()
    options.pace = Pace(options.grid_window)
    report = Report(options.output)
    status = 0
    try:
        asyncio.run(asyncio.wait_for(play(options, report), options.limit_s))
    except TimeoutError:
        report.say("the time was too short: the same command goes on with what is left")
        status = TOO_SHORT
    print(f"\n{report.write()}\n", flush=True)
    lost = sum(phase["whole"]["lost"] for phase in (report.document["tuned"] or {}).get("phases", ()))
    return int(lost > 0) or status


if __name__ == "__main__":
    raise SystemExit(main())
