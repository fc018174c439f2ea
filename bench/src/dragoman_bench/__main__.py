"""`dragoman bench`: the command line."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from pathlib import Path

import uvloop

from dragoman_bench.catalogue import BY_NAME_ALONE, LADDER, PEERS, arms_named
from dragoman_bench.checkpoint import SHAPES, write_checkpoint
from dragoman_bench.errors import BenchError, TooLittleMemoryError
from dragoman_bench.gpu import GPU
from dragoman_bench.loads import LOADS, UNIFORM
from dragoman_bench.prompting import CHAT_TEMPLATE, COUNTING_TEMPLATE
from dragoman_bench.report import compare_table, ladder_table
from dragoman_tune.closed_loop import Pace
from dragoman_tune.command import seconds, until_terminated, whole
from dragoman_tune.errors import MeasureError

STARTED_S = time.monotonic()
SECONDS_TO_START = 600.0
BESIDE_KV_CACHE_BYTES = 9 * 10**9
"""Weights of the largest shape, CUDA graphs, activations and CUDA itself."""

MIN_KV_CACHE_BYTES = 10**9
DEMO_MODEL = Path("examples/demo-model")


def main(argv: list[str] | None = None) -> int:
    """Measure, and write results and tables.

    Returns:
        0; 1 where an arm failed (the others' results are there); 2 where nothing could be measured.
    """
    try:
        arguments = _parser().parse_args(argv)
    except SystemExit as stop:
        return int(stop.code or 0)
    try:
        return int(uvloop.run(until_terminated(_run(arguments))))
    except MeasureError as error:
        sys.stderr.write(f"dragoman bench: {error}\n")
        return 2
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.stderr.write("dragoman bench: stopped; what was measured is in the results\n")
        return 130


async def _run(arguments: argparse.Namespace) -> int:
    runs = {"reconcile": _reconcile, "wakes": _wakes}
    return await runs.get(arguments.command, _compare)(arguments)


async def _reconcile(arguments: argparse.Namespace) -> int:
    from dragoman_bench.reconcile.run import Plan, measure, table

    output = arguments.output
    plan = Plan(arguments.objects, arguments.idle, arguments.controllers, output, arguments.seed)
    document = await measure(plan, _say)
    (output / "results.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"\n{table(document)}\n\nresults: {output}", flush=True)
    return 0


async def _wakes(arguments: argparse.Namespace) -> int:
    from dragoman_bench.machine import machine
    from dragoman_bench.plan import Plan
    from dragoman_bench.wakes import Rounds, measure, table

    output = arguments.output
    output.mkdir(parents=True, exist_ok=True)
    gpu = None if arguments.scripted else GPU()
    model = output / f"model-{arguments.shape}"
    if gpu is not None:
        _say(f"model: random weights in {model}")
        write_checkpoint(model, SHAPES[arguments.shape], arguments.tokenizer, "cuda")
        gpu.require(arguments.gpu_memory_utilization)
    plan = Plan(
        model.resolve(),
        COUNTING_TEMPLATE,
        "cuda",
        arguments.gpu_memory_utilization,
        arguments.max_model_len,
        None,
        arguments.limit_s,
    )
    rounds = Rounds(arguments.rounds, arguments.sleep_after_s, arguments.limit_s)
    found = await measure(plan, rounds, output, gpu, _say, scripted=arguments.scripted)
    head = {
        "kind": "wakes",
        "machine": machine(gpu),
        "model": "scripted" if arguments.scripted else f"{arguments.shape}, random weights",
    }
    (output / "results.json").write_text(json.dumps(head | found, indent=1) + "\n", encoding="utf-8")
    print(f"\n{table(found['figures'])}\n\nresults: {output}", flush=True)
    if found["failed"] is not None:
        _say(f"not all rounds: {found['failed']}")
    return int(bool(found["failed"] or found["figures"]["lost"] or found["figures"]["changed"]))


async def _compare(arguments: argparse.Namespace) -> int:
    from transformers import AutoTokenizer

    from dragoman_bench.fleet import Bench
    from dragoman_bench.machine import machine
    from dragoman_bench.plan import Plan
    from dragoman_bench.prompting import Prompting
    from dragoman_bench.results import Results
    from dragoman_bench.runs import climb, compare

    if (arguments.model is None) != (arguments.requests is None):
        raise BenchError(
            "--model needs --requests, a sample of requests; without both, --shape makes a model"
        )
    is_ladder = arguments.command == "ladder"
    arms = arms_named(arguments.arms) if arguments.arms else [*(LADDER if is_ladder else PEERS)]
    if arguments.model is None and not (arguments.tokenizer / "tokenizer.json").is_file():
        raise BenchError(
            f"{arguments.tokenizer} has no tokenizer.json: name a model's directory with --tokenizer"
        )
    gpu = GPU() if arguments.device == "cuda" else None
    model = arguments.model
    if model is None:
        model = arguments.output / f"model-{arguments.shape}"
        _say(f"model: random weights in {model}")
        write_checkpoint(model, SHAPES[arguments.shape], arguments.tokenizer, arguments.device)
    template = CHAT_TEMPLATE if arguments.model is not None else COUNTING_TEMPLATE
    plan = Plan(
        model.resolve(),
        arguments.template or template,
        arguments.device,
        arguments.gpu_memory_utilization,
        arguments.max_model_len,
        arguments.requests,
        SECONDS_TO_START,
        _kv_cache_bytes(arguments, gpu),
    )
    head = {
        "kind": arguments.command,
        "machine": machine(gpu),
        "model": arguments.model.name
        if arguments.model is not None
        else f"{arguments.shape}, random weights",
        "max_model_len": plan.max_model_len,
        "gpu_memory_utilization": None if gpu is None else plan.memory_ratio,
        "window_s": arguments.window,
        "seed": arguments.seed,
    }
    results = Results(arguments.output, head)
    prompting = Prompting(AutoTokenizer.from_pretrained(plan.model), plan.template, plan.max_model_len)
    pace = Pace(arguments.window, arguments.ramp)
    bench = Bench(plan, _points(arguments), pace, arguments.seed, prompting, results, gpu, _say)
    if gpu is not None:
        gpu.start()
    try:
        if is_ladder:
            await climb(arms, bench, together=arguments.together)
        else:
            await compare(arms, bench, arguments.repetitions)
    finally:
        if gpu is not None:
            gpu.stop()
        text = (ladder_table if is_ladder else compare_table)(results.document)
        (arguments.output / "table.md").write_text(text + "\n", encoding="utf-8")
        print(f"\n{text}\n\nresults: {arguments.output}", flush=True)
    return int(any(entry["failed"] for entry in results.document["arms"]))


def _kv_cache_bytes(arguments: argparse.Namespace, gpu: GPU | None) -> int | None:
    """What an engine's share of memory leaves for its KV cache, where several start at once."""
    if gpu is None or not (arguments.command == "compare" or arguments.together):
        return None
    share: float = arguments.gpu_memory_utilization
    left = round(share * gpu.total_bytes) - BESIDE_KV_CACHE_BYTES
    if left < MIN_KV_CACHE_BYTES:
        raise TooLittleMemoryError(
            f"{share:.0%} of {gpu.total_bytes / 1e9:.0f} GB leave too little for weights, "
            "CUDA graphs and a KV cache: raise --gpu-memory-utilization and choose fewer --arms"
        )
    return left


def _points(arguments: argparse.Namespace) -> list[tuple[str, int]]:
    kinds = ["real"] if arguments.requests is not None else arguments.loads
    at = {UNIFORM: arguments.uniform_in_flight or arguments.in_flight}
    points = [(kind, in_flight) for kind in kinds for in_flight in at.get(kind, arguments.in_flight)]
    return sorted(points, key=lambda point: point[1])


def _say(line: str) -> None:
    print(f"{time.monotonic() - STARTED_S:6.0f} s  {line}", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dragoman bench", description="Measure the pod against its past and its peers."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    ladder = commands.add_parser(
        "ladder", help="from multiprocessing queues to the pod, one arm after the other"
    )
    together = "start as many arms at once as memory has space for: takes less time"
    ladder.add_argument("--together", action="store_true", help=together)
    peers = commands.add_parser("compare", help="the pod, vllm serve and AsyncLLM side by side")
    peers.add_argument("--repetitions", type=whole, default=3, help="of every point (3)")
    reconcile = commands.add_parser(
        "reconcile", help="the operator with many objects, on a kube-apiserver of its own"
    )
    add = reconcile.add_argument
    add("--output", type=Path, required=True, metavar="DIR", help="where results, logs and state go")
    add("--objects", type=whole, default=1000, metavar="N", help="TranslationDeployments (1000)")
    add("--idle", type=seconds, default=60.0, metavar="S", help="seconds that the idle load is measured (60)")
    add(
        "--controllers", action="store_true", help="also run the local cluster's controllers, which make pods"
    )
    add("--seed", type=int, default=7, help="of the choice of objects that are changed (7)")
    wakes = commands.add_parser("wakes", help="the first request to a sleeping pod, and the same one awake")
    add = wakes.add_argument
    add("--output", type=Path, required=True, metavar="DIR", help="where results and the pod's log go")
    add("--rounds", type=whole, default=50, metavar="N", help="times that the pod sleeps and wakes (50)")
    add("--sleep-after-s", type=seconds, default=1.0, metavar="S", help="of the pod (1)")
    add("--limit-s", type=seconds, default=480.0, metavar="S", help="no round begins after this time (480)")
    add("--scripted", action="store_true", help="a scripted engine instead of vLLM on a GPU: tries the bench")
    _checkpoint(wakes)
    _memory(wakes, 0.9)
    _shared(ladder, [1, 4, 8, 16, 25, 128, 512], 0.3)
    _shared(peers, [25, 128, 512], 0.2)
    return parser


def _shared(parser: argparse.ArgumentParser, in_flight: list[int], memory: float) -> None:
    add = parser.add_argument
    add("--output", type=Path, required=True, metavar="DIR", help="where results, logs and the table go")
    add("--device", choices=("cuda", "cpu"), default="cuda", help="what the model runs on (cuda)")
    add("--model", type=Path, metavar="DIR", help="a model to measure with; needs --requests")
    add("--requests", type=Path, metavar="FILE", help="JSON lines of text, source_lang, target_lang")
    add("--template", help="the prompt, with {text} and optionally {source} and {target}")
    _checkpoint(parser)
    names = ", ".join(arm.name for arm in (*LADDER, *PEERS, *BY_NAME_ALONE))
    add("--arms", type=_names, metavar="NAMES", help=f"of {names}, and settings such as pod-32-8192")
    add("--loads", type=_loads, default=list(LOADS), metavar="KINDS", help=f"of {','.join(LOADS)} (both)")
    add("--in-flight", type=_numbers, default=in_flight, metavar="N,…", help="requests at all times")
    add("--uniform-in-flight", type=_numbers, metavar="N,…", help="the same for uniform (as --in-flight)")
    add("--window", type=seconds, default=10.0, metavar="S", help="seconds that a point is measured (10)")
    add("--ramp", type=seconds, default=15.0, metavar="S", help="maximum seconds before that (15)")
    add("--seed", type=int, default=7, help="of the loads (7)")
    _memory(parser, memory)


def _checkpoint(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    shape = "random weights of this shape (qwen3-1.7b)"
    add("--shape", choices=list(SHAPES), default="qwen3-1.7b", help=shape)
    add("--tokenizer", type=Path, default=DEMO_MODEL, metavar="DIR", help=f"for --shape ({DEMO_MODEL})")


def _memory(parser: argparse.ArgumentParser, memory: float) -> None:
    add = parser.add_argument
    add("--max-model-len", type=whole, default=2048, metavar="N", help="tokens of prompt and output (2048)")
    add("--gpu-memory-utilization", type=_share, default=memory, metavar="R", help=f"per engine ({memory})")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _loads(text: str) -> list[str]:
    names = _names(text)
    if not names or set(names) - set(LOADS):
        raise argparse.ArgumentTypeError(f"{text}: choose from {', '.join(LOADS)}")
    return names


def _numbers(text: str) -> list[int]:
    return [whole(part) for part in text.split(",")]


def _share(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and at most 1")
    return value


if __name__ == "__main__":
    sys.exit(main())
