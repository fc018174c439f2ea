"""`dragoman bench`: the command line."""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import signal
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvloop

from dragoman.command_line import seconds, whole
from dragoman_bench.catalogue import BY_NAME_ALONE, LADDER, PEERS, arms_named
from dragoman_bench.checkpoint import SHAPES, write_checkpoint
from dragoman_bench.errors import BenchError, TooLittleMemoryError
from dragoman_bench.gpu import GPU
from dragoman_bench.loads import LOADS, UNIFORM
from dragoman_bench.prompting import CHAT_TEMPLATE, COUNTING_TEMPLATE
from dragoman_bench.report import compare_table, ladder_table
from dragoman_bench.starts.figures import VARIANTS
from dragoman_simulate.errors import SimulateError
from dragoman_tune.closed_loop import Pace
from dragoman_tune.errors import MeasureError
from dragoman_tune.server import until_terminated

if TYPE_CHECKING:
    from dragoman_bench.plan import Plan

STARTED_S = time.monotonic()
SECONDS_TO_START = 600.0
BESIDE_KV_CACHE_BYTES = 9 * 10**9
"""Weights of the largest shape, CUDA graphs, activations and CUDA itself."""

MIN_KV_CACHE_BYTES = 10**9
DEMO_MODEL = Path("examples/demo-model")
BURSTY_TRACE = Path("bench/traces/on-off.jsonl.gz")


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
        if arguments.command == "starts":
            return _starts(arguments)
        return int(uvloop.run(until_terminated(_run(arguments))))
    except (MeasureError, SimulateError) as error:
        sys.stderr.write(f"dragoman bench: {error}\n")
        return 2
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.stderr.write("dragoman bench: stopped; what was measured is in the results\n")
        return 130


async def _run(arguments: argparse.Namespace) -> int:
    runs = {"reconcile": _reconcile, "replay": _replay, "wakes": _wakes, "turns": _turns}
    return await runs.get(arguments.command, _compare)(arguments)


def _starts(arguments: argparse.Namespace) -> int:
    """Without an event loop: a signal interrupts it wherever it waits, and the pod that runs then is ended."""
    from dragoman_bench.machine import machine
    from dragoman_bench.starts.figures import table
    from dragoman_bench.starts.run import Starts, StartsPlan

    output = arguments.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    gpu = GPU() if arguments.device == "cuda" else None
    model = _model(arguments)
    plan = StartsPlan(
        model.resolve(),
        arguments.device,
        output,
        arguments.rounds,
        tuple(arguments.variants),
        tuple(arguments.load_formats),
        arguments.budget,
        SECONDS_TO_START,
        arguments.gpu_memory_utilization,
        arguments.engine_args,
    )
    head = {"kind": "starts", "machine": machine(gpu), "model": model.name, "engine_args": plan.engine}
    run = Starts(plan, head, gpu, _say, lambda: time.monotonic() - STARTED_S)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    document = run.run()
    print(f"\n{table(document)}\n\nresults: {output}", flush=True)
    return int(any(entry.get("failed") for entry in document["starts"]))


def _model(arguments: argparse.Namespace) -> Path:
    """The model that was named, or one of random weights, made in a process that frees the GPU as it ends."""
    if arguments.model is not None:
        return Path(arguments.model)
    model: Path = arguments.output / f"model-{arguments.shape}"
    if not model.is_dir():
        _say(f"model: random weights in {model}")
        made = multiprocessing.get_context("spawn").Process(
            target=write_checkpoint,
            args=(model, SHAPES[arguments.shape], arguments.tokenizer, arguments.device),
        )
        made.start()
        made.join()
        if made.exitcode:
            raise BenchError(f"no model was made (status {made.exitcode}); the reason is above")
    return model


async def _reconcile(arguments: argparse.Namespace) -> int:
    from dragoman_bench.reconcile.run import Plan, measure, table

    output = arguments.output
    plan = Plan(arguments.objects, arguments.idle, arguments.controllers, output, arguments.seed)
    document = await measure(plan, _say)
    (output / "results.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"\n{table(document)}\n\nresults: {output}", flush=True)
    return 0


async def _replay(arguments: argparse.Namespace) -> int:
    from dragoman_bench.machine import machine
    from dragoman_bench.plan import Plan
    from dragoman_bench.replay.comparison import table
    from dragoman_bench.replay.run import Replay, measure

    gpu = GPU() if arguments.url is None and arguments.device == "cuda" else None
    if gpu is not None:
        gpu.require(arguments.gpu_memory_utilization)
    model = arguments.tokenizer
    if arguments.url is None:
        model = arguments.output / f"model-{arguments.shape}"
        _say(f"model: random weights in {model}")
        write_checkpoint(model, SHAPES[arguments.shape], arguments.tokenizer, arguments.device)
    plan = Plan(
        model.resolve(),
        COUNTING_TEMPLATE,
        arguments.device,
        arguments.gpu_memory_utilization,
        arguments.max_model_len,
        arguments.requests,
        SECONDS_TO_START,
    )
    seats = arguments.max_num_seqs
    wanted = Replay(
        plan,
        arguments.output,
        arguments.url,
        seats,
        arguments.trace,
        arguments.rehearsal,
        arguments.seconds,
        arguments.peak,
        arguments.seed,
        arguments.limit_s,
    )
    head = {
        "kind": "replay",
        "machine": machine(gpu),
        "model": f"{arguments.shape}, random weights" if arguments.url is None else None,
        "trace": arguments.trace.name,
        "seed": arguments.seed,
    }
    document = await measure(wanted, head, _say)
    print(f"\n{table(document['replay'])}\n", flush=True)
    own = document["replay_by_its_own_speeds"]["ratio"]
    figures = ", ".join(f"{name} {own[name]:.3f}" for name in ("busiest_per_s", "p50_s", "p95_s"))
    print(f"with the speeds that the pod measured during the replay: {figures}", flush=True)
    print(f"\nresults: {arguments.output}", flush=True)
    return int(document["replay"]["failed"] > 0)


async def _wakes(arguments: argparse.Namespace) -> int:
    from dragoman_bench.wakes import Rounds, measure, table

    output = arguments.output
    gpu, plan = _asleep(arguments)
    rounds = Rounds(arguments.rounds, arguments.sleep_after_s, arguments.limit_s)
    found = await measure(plan, rounds, output, gpu, _say, scripted=arguments.scripted)
    _written("wakes", arguments, gpu, found, table)
    if found["failed"] is not None:
        _say(f"not all rounds: {found['failed']}")
    return int(bool(found["failed"] or found["figures"]["lost"] or found["figures"]["changed"]))


async def _turns(arguments: argparse.Namespace) -> int:
    from dragoman_bench.turns import Sharing, measure, table

    gpu, plan = _asleep(arguments)
    sharing = Sharing(arguments.pods, arguments.per_s, arguments.duration_s, arguments.limit_s)
    found = await measure(plan, sharing, arguments.output, gpu, _say, scripted=arguments.scripted)
    _written("turns", arguments, gpu, found, table)
    return int(found["figures"]["lost"] > 0)


def _asleep(arguments: argparse.Namespace) -> tuple[GPU | None, Plan]:
    """What pods that sleep have in common."""
    from dragoman_bench.plan import Plan

    arguments.output.mkdir(parents=True, exist_ok=True)
    gpu = None if arguments.scripted else GPU()
    model = arguments.output / f"model-{arguments.shape}"
    if gpu is not None:
        _say(f"model: random weights in {model}")
        write_checkpoint(model, SHAPES[arguments.shape], arguments.tokenizer, "cuda")
        gpu.require(arguments.gpu_memory_utilization)
    share = arguments.gpu_memory_utilization
    length, limit_s = arguments.max_model_len, arguments.limit_s
    return gpu, Plan(model.resolve(), COUNTING_TEMPLATE, "cuda", share, length, None, limit_s)


def _written(
    kind: str,
    arguments: argparse.Namespace,
    gpu: GPU | None,
    found: dict[str, Any],
    table: Callable[[dict[str, Any]], str],
) -> None:
    from dragoman_bench.machine import machine

    model = "scripted" if arguments.scripted else f"{arguments.shape}, random weights"
    head = {"kind": kind, "machine": machine(gpu), "model": model}
    path = arguments.output / "results.json"
    path.write_text(json.dumps(head | found, indent=1) + "\n", encoding="utf-8")
    print(f"\n{table(found['figures'])}\n\nresults: {arguments.output}", flush=True)


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
    replay = commands.add_parser(
        "replay", help="a bursty trace on one pod: what dragoman simulate predicts against what is measured"
    )
    add = replay.add_argument
    _machine(replay, 0.85)
    add("--url", help="a pod that runs, with an admission that refuses no burst; default: one is started")
    add(
        "--requests",
        type=Path,
        metavar="FILE",
        help="JSON lines of text, source_lang, target_lang; for --url",
    )
    add("--max-num-seqs", type=whole, default=128, metavar="N", help="of the pod (128)")
    add("--trace", type=Path, default=BURSTY_TRACE, metavar="FILE", help=f"arrivals ({BURSTY_TRACE})")
    add("--seconds", type=whole, default=600, metavar="S", help="of the trace, where it is burstiest (600)")
    add(
        "--rehearsal",
        type=whole,
        default=300,
        metavar="S",
        help="of its second burstiest part, by which the simulation is calibrated (300)",
    )
    add(
        "--peak",
        type=seconds,
        default=1.5,
        metavar="R",
        help="its busiest 10 s, as multiple of the capacity (1.5)",
    )
    add(
        "--limit-s",
        type=seconds,
        default=1500.0,
        metavar="S",
        help="for everything; the replay is shortened to fit (1500)",
    )
    starts = commands.add_parser("starts", help="how long a pod takes to start, and beside a ready one")
    add = starts.add_argument
    add("--output", type=Path, required=True, metavar="DIR", help="where results, logs and the model go")
    add("--device", choices=("cuda", "cpu"), default="cuda", help="what the model runs on (cuda)")
    add("--model", type=Path, metavar="DIR", help="the model; without it, --shape makes one")
    _checkpoint(starts)
    add("--rounds", type=whole, default=5, help="of all variants in turn (5)")
    which = "of sibling, warm (no sibling, but the cache of the start before) and cold (sibling,cold)"
    add("--variants", type=_some_of(VARIANTS), default=["sibling", "cold"], metavar="NAMES", help=which)
    formats = "further values of vLLM's load_format, such as fastsafetensors,runai_streamer"
    add("--load-formats", type=_names, default=[], metavar="NAMES", help=formats)
    add("--budget", type=seconds, metavar="S", help="seconds after which nothing more begins")
    add("--gpu-memory-utilization", type=_share, default=0.9, metavar="R", help="of each pod (0.9)")
    add("--engine-args", type=json.loads, default={}, metavar="JSON", help="further engine arguments")
    wakes = commands.add_parser("wakes", help="the first request to a sleeping pod, and the same one awake")
    add = wakes.add_argument
    _sleepers(wakes, 0.9)
    add("--rounds", type=whole, default=50, metavar="N", help="times that the pod sleeps and wakes (50)")
    add("--sleep-after-s", type=seconds, default=1.0, metavar="S", help="of the pod (1)")
    add("--limit-s", type=seconds, default=480.0, metavar="S", help="no round begins after this time (480)")
    turns = commands.add_parser("turns", help="pods that share one GPU and are awake in turn")
    add = turns.add_argument
    _sleepers(turns, 0.8)
    add("--pods", type=whole, default=4, metavar="N", help="pods on the GPU (4)")
    add("--per-s", type=seconds, default=0.2, metavar="R", help="requests per second for each (0.2)")
    add("--duration-s", type=seconds, default=600.0, metavar="S", help="for how long (600)")
    add("--limit-s", type=seconds, default=480.0, metavar="S", help="that each pod gets to start (480)")
    _shared(ladder, [1, 4, 8, 16, 25, 128, 512], 0.3)
    _shared(peers, [25, 128, 512], 0.2)
    return parser


def _sleepers(parser: argparse.ArgumentParser, memory: float) -> None:
    add = parser.add_argument
    add("--output", type=Path, required=True, metavar="DIR", help="where results and logs go")
    add("--scripted", action="store_true", help="scripted engines instead of vLLM on a GPU: tries the bench")
    _checkpoint(parser)
    _memory(parser, memory)


def _machine(parser: argparse.ArgumentParser, memory: float) -> None:
    add = parser.add_argument
    add("--output", type=Path, required=True, metavar="DIR", help="where results, logs and the table go")
    add("--device", choices=("cuda", "cpu"), default="cuda", help="what the model runs on (cuda)")
    _checkpoint(parser)
    add("--seed", type=int, default=7, help="of the loads (7)")
    _memory(parser, memory)


def _shared(parser: argparse.ArgumentParser, in_flight: list[int], memory: float) -> None:
    _machine(parser, memory)
    add = parser.add_argument
    add("--model", type=Path, metavar="DIR", help="a model to measure with; needs --requests")
    add("--requests", type=Path, metavar="FILE", help="JSON lines of text, source_lang, target_lang")
    add("--template", help="the prompt, with {text} and optionally {source} and {target}")
    names = ", ".join(arm.name for arm in (*LADDER, *PEERS, *BY_NAME_ALONE))
    add("--arms", type=_names, metavar="NAMES", help=f"of {names}, and settings such as pod-32-8192")
    add(
        "--loads",
        type=_some_of(LOADS),
        default=list(LOADS),
        metavar="KINDS",
        help=f"of {','.join(LOADS)} (both)",
    )
    add("--in-flight", type=_numbers, default=in_flight, metavar="N,…", help="requests at all times")
    add("--uniform-in-flight", type=_numbers, metavar="N,…", help="the same for uniform (as --in-flight)")
    add("--window", type=seconds, default=10.0, metavar="S", help="seconds that a point is measured (10)")
    add("--ramp", type=seconds, default=15.0, metavar="S", help="maximum seconds before that (15)")


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


def _some_of(known: Collection[str]) -> Callable[[str], list[str]]:
    """The type of an argument with at least one of these names."""

    def parsed(text: str) -> list[str]:
        names = _names(text)
        if not names or set(names) - set(known):
            raise argparse.ArgumentTypeError(f"{text}: choose from {', '.join(known)}")
        return names

    return parsed


def _numbers(text: str) -> list[int]:
    return [whole(part) for part in text.split(",")]


def _share(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and at most 1")
    return value


if __name__ == "__main__":
    sys.exit(main())
