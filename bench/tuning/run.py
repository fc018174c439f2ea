"""Tuning of maxNumSeqs under a load that shifts twice, against a grid of fixed values.

    python bench/tuning/run.py --output DIRECTORY [--engine vllm|scripted] [--parts tuned grid] [--limit-s 540]

A local cluster with operator and two routers, and two replicas of one GPU each that start with a maxNumSeqs that is too
low. The recommendation of the operator is set in the spec as soon as it differs, as its user would do, under load. Then
the same loads run against fixed values, two engines of one replica at once, each with half of the requests in flight.

Output: `progress.log`, `results.json` and `table.md` in the directory. Each finished part is kept: after an
interruption, or where the time was too short, the same command goes on with the next. Exit status 1 if a request was
lost, 2 if engines did not start, 3 if the time was too short.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from dragoman.demo import DemoError
from dragoman_bench.checkpoint import SHAPES, write_checkpoint
from dragoman_bench.errors import BenchError
from dragoman_bench.gpu import GPU
from dragoman_bench.machine import machine
from dragoman_contract.open_files import raise_file_limit
from dragoman_tune.closed_loop import Pace, closed_loop
from dragoman_tune.figures import figures
from tuning.report import Report
from tuning.stage import CHECKOUT, REPLICAS, Engines, Stage, stage
from tuning.tuned import Tuned

TICK_S = 2.0
"""Interval of the operator's measurements; the default of 5 s has too few in a short window."""
FAILED, TOO_SHORT = 2, 3


async def grid(options: argparse.Namespace, engines: Engines, report: Report, on: Stage) -> None:
    """The fixed values that are not measured yet, two at once: one alone would have the CPUs to itself."""
    measured = report.document["grid"]
    loads = {str(in_flight): in_flight for in_flight in options.phases}
    left = [size for size in options.grid if not loads.keys() <= measured.get(str(size), {}).keys()]
    for pair in (left[at : at + REPLICAS] for at in range(0, len(left), REPLICAS)):
        report.say(f"grid: maxNumSeqs {pair} start")
        async with AsyncExitStack() as deployed:
            manifests = [engines.manifest(f"fixed-{size}", size, 1, {"mode": "Off"}) for size in pair]
            for each in manifests:
                # No load is left when they are deleted.
                each["spec"]["rollout"]["lameDuck"] = "0s"
            starts = (deployed.enter_async_context(on.deployed(each, report.say)) for each in manifests)
            await asyncio.gather(*starts)
            for name, in_flight in loads.items():
                share = in_flight // REPLICAS
                loops = [
                    closed_loop(on.sender(f"fixed-{size}"), engines.requests(seed=2), share, options.pace)
                    for size in pair
                ]
                for size, window in zip(pair, await asyncio.gather(*loops), strict=True):
                    found = figures(window)
                    # Of all replicas: each engine has the share of one.
                    rate = REPLICAS * (found.output_tokens_per_s or 0.0)
                    measured.setdefault(str(size), {})[name] = {**asdict(found), "tokens_per_s": rate}
                    report.say(f"grid: {size} with {name} in flight: {rate:.0f} tokens/s, {found.errors}")
                report.write()


async def play(options: argparse.Namespace, report: Report) -> None:
    """All parts that are not finished."""
    scripted = options.engine == "scripted"
    model = CHECKOUT / "examples/demo-model" if scripted else CHECKOUT / f"build/model-{options.shape}"
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
    state = options.output / "cluster"
    async with stage(state, options.api, TICK_S) as on:
        report.say("operator and routers are ready")
        for part in options.parts:
            if part == "grid":
                await grid(options, engines, report, on)
            elif not (report.document["tuned"] or {}).get("complete"):
                await Tuned(options, engines, report).run(on)


def main() -> int:
    """Run it; see the module."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--output", type=Path, required=True, help="directory of the results, and of the local cluster"
    )
    parser.add_argument("--engine", choices=["vllm", "scripted"], default="vllm")
    parser.add_argument("--shape", choices=[*SHAPES], default="qwen3-1.7b", help="of the model for vLLM")
    parser.add_argument("--api", choices=["auto", "embedded", "kube-apiserver"], default="embedded")
    parser.add_argument(
        "--parts", nargs="+", choices=["tuned", "grid"], default=["tuned", "grid"], help="in this order"
    )
    parser.add_argument("--start", type=int, default=16, help="maxNumSeqs at the start")
    parser.add_argument("--phases", type=int, nargs="+", default=[160, 24, 320], help="requests in flight")
    parser.add_argument(
        "--grid", type=int, nargs="*", default=[128, 256, 64, 96, 16, 32], help="values, in this order"
    )
    parser.add_argument("--window", type=int, default=10, help="seconds, of spec.tuning")
    parser.add_argument("--settle", type=float, default=30, help="seconds without a change that end a phase")
    parser.add_argument(
        "--longest", type=float, default=240, help="seconds after which a phase ends in any case"
    )
    parser.add_argument(
        "--grid-window", type=float, default=12, help="seconds that are measured for each load"
    )
    parser.add_argument("--limit-s", type=float, default=540, help="seconds for everything")
    options = parser.parse_args()
    options.pace = Pace(options.grid_window)
    raise_file_limit()
    report = Report(options.output)
    status = 0
    try:
        asyncio.run(asyncio.wait_for(play(options, report), options.limit_s))
    except (BenchError, DemoError) as error:
        report.say(f"failed: {error}")
        status = FAILED
    except TimeoutError:
        report.say("the time was too short: the same command goes on with what is left")
        status = TOO_SHORT
    print(f"\n{report.write()}\n", flush=True)
    # Also of a phase that did not end.
    lost = sum(row["lost"] for row in (report.document["tuned"] or {}).get("intervals", ()))
    return int(lost > 0) or status


if __name__ == "__main__":
    raise SystemExit(main())
