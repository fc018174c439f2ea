"""Throughput of a pod before, while and after it captures the CUDA graphs that it deferred, on a GPU.

    python bench/overhead/deferred_graphs.py --model DIR --output DIR

DIR has a checkpoint of `dragoman_bench.checkpoint`, whose answers are known. Each round starts a pod with the start
cache of the one before, and measures all loads with the first sizes alone. Then the pod captures the other sizes, in
the first round under load, in the others while idle. All loads are measured again. Each answer is compared with the
known one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import runpy
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dragoman_bench.known import gpu_pod, measured
from dragoman_tune.closed_loop import Pace
from dragoman_tune.server import Server, running

START_S = 240.0
CAPTURE_S = 240.0
COMPLETE = "no CUDA graphs are left to capture"
PACE = Pace(window_s=8.0, ramp_s=8.0)


def serve(gate: Path) -> None:
    """The pod, which captures no deferred graph before `gate` exists."""
    from dragoman_service.engine.vllm import engine
    from dragoman_service.engine.vllm.deferral import capture_rest

    async def gated(capture_next: Any, generating: Any, is_awake: Callable[[], bool]) -> None:
        while not gate.exists():  # noqa: ASYNC110, ASYNC240 - a file has no event
            await asyncio.sleep(0.05)
        await capture_rest(capture_next, generating, is_awake)

    vars(engine)["capture_rest"] = gated
    runpy.run_module("dragoman", run_name="__main__", alter_sys=True)


def pod(name: str, options: argparse.Namespace) -> tuple[Server, Path, Path]:
    """A pod, its gate and its log."""
    gate, log = options.output / f"gate-{name}", options.output / f"pod-{name}.log"
    program = (sys.executable, __file__, "serve", str(gate))
    return gpu_pod(program, options.model, options.output, options.memory, log), gate, log


async def one_round(number: int, options: argparse.Namespace) -> dict[str, Any]:
    """Start a pod and measure it."""
    began_s = time.monotonic()
    server, gate, log = pod(str(number), options)
    found: dict[str, Any] = {"first": [], "while": [], "all": []}
    async with running(server, START_S):
        found["ready_s"] = time.monotonic() - began_s
        loads = [int(each) for each in options.in_flight.split(",")]
        for load in loads:
            found["first"].append(await measured(server, options.model, load, PACE))
        gate.touch()
        opened_s = time.monotonic()
        while COMPLETE not in log.read_text(errors="replace") and time.monotonic() - opened_s < CAPTURE_S:
            if number:
                await asyncio.sleep(0.2)
            else:
                found["while"].append(await measured(server, options.model, loads[1], PACE))
        found["captured_s"] = time.monotonic() - opened_s
        for load in loads:
            found["all"].append(await measured(server, options.model, load, PACE))
    return found


async def measure(options: argparse.Namespace) -> None:
    """All rounds; the results are written after each."""
    rounds: list[dict[str, Any]] = []
    # Compiles, and captures all graphs.
    async with running(pod("compiling", options)[0], START_S):
        pass
    for number in range(options.rounds):
        rounds.append(await one_round(number, options))
        (options.output / "results.json").write_text(json.dumps(rounds, indent=1) + "\n", encoding="utf-8")
        print(f"round {number}: ready {rounds[-1]['ready_s']:.1f} s, rest {rounds[-1]['captured_s']:.1f} s")
        for name in ("first", "while", "all"):
            for each in rounds[-1][name]:
                print(
                    f"  {name:6} {each['in_flight']:4} in flight: {each['requests_per_s']:.1f} requests/s, p95 "
                    f"{each['p95_s']}, wrong {each['wrong']}, errors {each['errors']}",
                    flush=True,
                )
    for position, load in enumerate(options.in_flight.split(",")):
        ratios = [
            each["first"][position]["requests_per_s"] / each["all"][position]["requests_per_s"]
            for each in rounds
        ]
        print(
            f"{load} in flight: first sizes ÷ all sizes {statistics.median(ratios):.2f} ({len(ratios)} pairs)"
        )


def main() -> None:
    """Parse arguments and measure."""
    if sys.argv[1:2] == ["serve"]:
        gate = Path(sys.argv[2])
        del sys.argv[1:3]
        serve(gate)
        return
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3, help="starts of a pod (3)")
    parser.add_argument("--in-flight", default="25,128,512")
    parser.add_argument("--memory", type=float, default=0.5, help="share of the GPU's memory (0.5)")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    asyncio.run(measure(options))


if __name__ == "__main__":
    main()
