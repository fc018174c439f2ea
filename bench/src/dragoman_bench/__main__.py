"""`dragoman bench`: the command line."""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import uvloop

from dragoman.command_line import seconds, whole
from dragoman_bench.catalogue import BY_NAME_ALONE, LADDER, PEERS, arms_named
from dragoman_bench.checkpoint import SHAPES, write_checkpoint
from dragoman_bench.errors import BenchError, TooLittleMemoryError
from dragoman_bench.gpu import GPU
from dragoman_bench.loads import LOADS, UNIFORM
from dragoman_bench.machine import machine
from dragoman_bench.plan import RunPlan
from dragoman_bench.prompting import CHAT_TEMPLATE, COUNTING_TEMPLATE, Prompting
from dragoman_bench.report import compare_table, ladder_table
from dragoman_bench.results import ArmResults, Results
from dragoman_bench.starts.figures import VARIANTS
from dragoman_simulate.errors import SimulateError
from dragoman_tune.closed_loop import Pace
from dragoman_tune.errors import MeasureError
from dragoman_tune.server import until_terminated

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
        return int(uvloop.run(until_terminated(arguments.run(arguments))))
    except (MeasureError, SimulateError) as error:
        sys.stderr.write(f"dragoman bench: {error}\n")
        return 2
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.stderr.write("dragoman bench: stopped; what was measured is in the results\n")
        return 130


async def _reconcile(given: Namespace) -> int:
    from dragoman_bench.reconcile.run import Objects, measure, table

    found = await measure(
        Objects(given.objects, given.idle, given.controllers, given.output, given.seed), _say
    )
    Results(given.output, found)
    _ended(given, table(found))
    return 0


async def _starts(given: Namespace) -> int:
    from dragoman_bench.starts.figures import table
    from dragoman_bench.starts.run import Starts, StartsPlan

    gpu = _gpu(given)
    plan = StartsPlan(
        _plan(given, _model(given), "{text}"),
        given.output.resolve(),
        given.rounds,
        tuple(given.variants),
        tuple(given.load_formats),
        given.budget,
        given.engine_args,
    )
    head = _head(given, gpu) | {"engine_args": plan.engine}
    document = await Starts(plan, head, gpu, _say, lambda: time.monotonic() - STARTED_S).run()
    _ended(given, table(document))
    return int(any(entry.get("failed") for entry in document["starts"]))


async def _replay(given: Namespace) -> int:
    from dragoman_bench.replay.comparison import table
    from dragoman_bench.replay.run import Replay, measure

    gpu = None if given.url else _gpu(given)
    if gpu is not None:
        gpu.require(given.gpu_memory_utilization)
    model = given.tokenizer if given.url else _model(given)
    wanted = Replay(
        _plan(given, model, COUNTING_TEMPLATE),
        given.output,
        given.url,
        given.max_num_seqs,
        given.trace,
        given.rehearsal,
        given.seconds,
        given.peak,
        given.seed,
        given.limit_s,
    )
    head = _head(given, gpu) | {"trace": given.trace.name, "seed": given.seed}
    document = await measure(wanted, head, _say)
    own = document["replay_by_its_own_speeds"]["ratio"]
    ratios = ", ".join(f"{name} {own[name]:.3f}" for name in ("busiest_per_s", "p50_s", "p95_s"))
    _ended(
        given,
        f"{table(document['replay'])}\n\nwith the speeds that the pod measured during the replay: {ratios}",
    )
    return int(document["replay"]["failed"] > 0)


async def _wakes(given: Namespace) -> int:
    from dragoman_bench.wakes import Rounds, measure, table

    gpu, plan = _asleep(given)
    rounds = Rounds(given.rounds, given.sleep_after_s, given.limit_s)
    found = await measure(plan, rounds, given.output, gpu, _say, scripted=given.scripted)
    Results(given.output, _head(given, gpu) | found)
    _ended(given, table(found["figures"]))
    if found["failed"] is not None:
        _say(f"not all rounds: {found['failed']}")
    return int(bool(found["failed"] or found["figures"]["lost"] or found["figures"]["changed"]))


async def _turns(given: Namespace) -> int:
    from dragoman_bench.turns import Sharing, measure, table

    gpu, plan = _asleep(given)
    sharing = Sharing(given.pods, given.per_s, given.duration_s, given.limit_s)
    found = await measure(plan, sharing, given.output, gpu, _say, scripted=given.scripted)
    Results(given.output, _head(given, gpu) | found)
    _ended(given, table(found["figures"]))
    return int(found["figures"]["lost"] > 0)


def _asleep(given: Namespace) -> tuple[GPU | None, RunPlan]:
    """What pods that sleep have in common; scripted ones have no model."""
    gpu = _gpu(given)
    if gpu is not None:
        gpu.require(given.gpu_memory_utilization)
    given.output.mkdir(parents=True, exist_ok=True)
    model = given.output / "none" if given.scripted else _model(given)
    return gpu, _plan(given, model, COUNTING_TEMPLATE, given.limit_s)


async def _ladder(given: Namespace) -> int:
    from dragoman_bench.runs import climb

    return await _arms(given, LADDER, lambda arms, bench: climb(arms, bench, together=given.together))


async def _compare(given: Namespace) -> int:
    from dragoman_bench.runs import compare

    return await _arms(given, PEERS, lambda arms, bench: compare(arms, bench, given.repetitions))


async def _arms(given: Namespace, default: Collection[Any], measure: Callable[..., Any]) -> int:
    from transformers import AutoTokenizer

    from dragoman_bench.fleet import Bench

    if (given.model is None) != (given.requests is None):
        raise BenchError(
            "--model needs --requests, a sample of requests; without both, --shape makes a model"
        )
    arms = arms_named(given.arms) if given.arms else [*default]
    if given.model is None and not (given.tokenizer / "tokenizer.json").is_file():
        raise BenchError(
            f"{given.tokenizer} has no tokenizer.json: name a model's directory with --tokenizer"
        )
    gpu = _gpu(given)
    template = given.template or (COUNTING_TEMPLATE if given.model is None else CHAT_TEMPLATE)
    plan = _plan(given, _model(given), template, kv_cache_bytes=_kv_cache_bytes(given, gpu))
    head = _head(given, gpu) | {
        "max_model_len": plan.max_model_len,
        "gpu_memory_utilization": None if gpu is None else plan.memory_ratio,
        "window_s": given.window,
        "seed": given.seed,
    }
    results = ArmResults(given.output, head)
    prompting = Prompting(AutoTokenizer.from_pretrained(plan.model), plan.template, plan.max_model_len)
    pace = Pace(given.window, given.ramp)
    if gpu is not None:
        gpu.start()
    try:
        await measure(arms, Bench(plan, _points(given), pace, given.seed, prompting, results, gpu, _say))
    finally:
        if gpu is not None:
            gpu.stop()
        text = (ladder_table if given.command == "ladder" else compare_table)(results.document)
        (given.output / "table.md").write_text(text + "\n", encoding="utf-8")
        _ended(given, text)
    return int(any(entry["failed"] for entry in results.document["arms"]))


def _kv_cache_bytes(given: Namespace, gpu: GPU | None) -> int | None:
    """What an engine's share of memory leaves for its KV cache, where several start at once."""
    if gpu is None or not (given.command == "compare" or given.together):
        return None
    share: float = given.gpu_memory_utilization
    left = round(share * gpu.total_bytes) - BESIDE_KV_CACHE_BYTES
    if left < MIN_KV_CACHE_BYTES:
        raise TooLittleMemoryError(
            f"{share:.0%} of {gpu.total_bytes / 1e9:.0f} GB leave too little for weights, "
            "CUDA graphs and a KV cache: raise --gpu-memory-utilization and choose fewer --arms"
        )
    return left


def _points(given: Namespace) -> list[tuple[str, int]]:
    kinds = ["real"] if given.requests is not None else given.loads
    at = {UNIFORM: given.uniform_in_flight or given.in_flight}
    points = [(kind, in_flight) for kind in kinds for in_flight in at.get(kind, given.in_flight)]
    return sorted(points, key=lambda point: point[1])


def _gpu(given: Namespace) -> GPU | None:
    return None if given.device == "cpu" or given.scripted else GPU()


def _model(given: Namespace) -> Path:
    """The model that was named, or one of random weights, made in a process that frees the GPU as it ends."""
    if given.model is not None:
        return Path(given.model).resolve()
    given.output.mkdir(parents=True, exist_ok=True)
    model: Path = given.output / f"model-{given.shape}"
    if not model.is_dir():
        _say(f"model: random weights in {model}")
        made = multiprocessing.get_context("spawn").Process(
            target=write_checkpoint, args=(model, SHAPES[given.shape], given.tokenizer, given.device)
        )
        made.start()
        made.join()
        if made.exitcode:
            raise BenchError(f"no model was made (status {made.exitcode}); the reason is above")
    return model.resolve()


def _plan(
    given: Namespace,
    model: Path,
    template: str,
    start_s: float = SECONDS_TO_START,
    kv_cache_bytes: int | None = None,
) -> RunPlan:
    share, length = given.gpu_memory_utilization, given.max_model_len
    return RunPlan(
        model.resolve(), template, given.device, share, length, given.requests, start_s, kv_cache_bytes
    )


def _head(given: Namespace, gpu: GPU | None) -> dict[str, Any]:
    """What the results begin with."""
    model = "scripted" if given.scripted else f"{given.shape}, random weights"
    if given.model is not None:
        model = given.model.name
    return {"kind": given.command, "machine": machine(gpu), "model": None if given.url else model}


def _ended(given: Namespace, text: str) -> None:
    print(f"\n{text}\n\nresults: {given.output}", flush=True)


def _say(line: str) -> None:
    print(f"{time.monotonic() - STARTED_S:6.0f} s  {line}", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dragoman bench", description="Measure the pod against its past and its peers."
    )
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name: str, run: Callable[[Namespace], Any], help_: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=help_)
        # What only some of the commands have.
        added.set_defaults(run=run, device="cuda", scripted=False, model=None, requests=None, url=None)
        added.add_argument(
            "--output", type=Path, required=True, metavar="DIR", help="where results, logs and models go"
        )
        return added

    ladder = command("ladder", _ladder, "from multiprocessing queues to the pod, one arm after the other")
    together = "start as many arms at once as memory has space for: takes less time"
    ladder.add_argument("--together", action="store_true", help=together)
    _shared(ladder, [1, 4, 8, 16, 25, 128, 512], 0.3)
    peers = command("compare", _compare, "the pod, vllm serve and AsyncLLM side by side")
    peers.add_argument("--repetitions", type=whole, default=3, help="of every point (3)")
    _shared(peers, [25, 128, 512], 0.2)
    _add_reconcile(
        command(
            "reconcile", _reconcile, "the operator with many objects, on a kube-apiserver of its own"
        ).add_argument
    )
    replay = command(
        "replay",
        _replay,
        "a bursty trace on one pod: what dragoman simulate predicts against what is measured",
    )
    _add_replay(replay.add_argument)
    _device(replay)
    _checkpoint(replay, 0.85)
    starts = command("starts", _starts, "how long a pod takes to start, and beside a ready one")
    _add_starts(starts.add_argument)
    _device(starts)
    _checkpoint(starts, 0.9)
    wakes = command("wakes", _wakes, "the first request to a sleeping pod, and the same one awake")
    add = wakes.add_argument
    _scripted(wakes, 0.9)
    add("--rounds", type=whole, default=50, metavar="N", help="times that the pod sleeps and wakes (50)")
    add("--sleep-after-s", type=seconds, default=1.0, metavar="S", help="of the pod (1)")
    add("--limit-s", type=seconds, default=480.0, metavar="S", help="no round begins after this time (480)")
    turns = command("turns", _turns, "pods that share one GPU and are awake in turn")
    add = turns.add_argument
    _scripted(turns, 0.8)
    add("--pods", type=whole, default=4, metavar="N", help="pods on the GPU (4)")
    add("--per-s", type=seconds, default=0.2, metavar="R", help="requests per second for each (0.2)")
    add("--duration-s", type=seconds, default=600.0, metavar="S", help="for how long (600)")
    add("--limit-s", type=seconds, default=480.0, metavar="S", help="that each pod gets to start (480)")
    return parser


def _add_reconcile(add: Callable[..., Any]) -> None:
    add("--objects", type=whole, default=1000, metavar="N", help="TranslationDeployments (1000)")
    add("--idle", type=seconds, default=60.0, metavar="S", help="seconds that the idle load is measured (60)")
    add(
        "--controllers", action="store_true", help="also run the local cluster's controllers, which make pods"
    )
    add("--seed", type=int, default=7, help="of the choice of objects that are changed (7)")


def _add_replay(add: Callable[..., Any]) -> None:
    add("--seed", type=int, default=7, help="of the loads (7)")
    add("--url", help="a pod that runs, with an admission that refuses no burst; default: one is started")
    requests = "JSON lines of text, source_lang, target_lang; for --url"
    add("--requests", type=Path, metavar="FILE", help=requests)
    add("--max-num-seqs", type=whole, default=128, metavar="N", help="of the pod (128)")
    add("--trace", type=Path, default=BURSTY_TRACE, metavar="FILE", help=f"arrivals ({BURSTY_TRACE})")
    add("--seconds", type=whole, default=600, metavar="S", help="of the trace, where it is burstiest (600)")
    rehearsal = "of its second burstiest part, by which the simulation is calibrated (300)"
    add("--rehearsal", type=whole, default=300, metavar="S", help=rehearsal)
    peak = "its busiest 10 s, as multiple of the capacity (1.5)"
    add("--peak", type=seconds, default=1.5, metavar="R", help=peak)
    limit = "for everything; the replay is shortened to fit (1500)"
    add("--limit-s", type=seconds, default=1500.0, metavar="S", help=limit)


def _add_starts(add: Callable[..., Any]) -> None:
    add("--model", type=Path, metavar="DIR", help="the model; without it, --shape makes one")
    add("--rounds", type=whole, default=5, help="of all variants in turn (5)")
    which = "of sibling, warm (no sibling, but the cache of the start before) and cold (sibling,cold)"
    add("--variants", type=_some_of(VARIANTS), default=["sibling", "cold"], metavar="NAMES", help=which)
    formats = "further values of vLLM's load_format, such as fastsafetensors,runai_streamer"
    add("--load-formats", type=_names, default=[], metavar="NAMES", help=formats)
    add("--budget", type=seconds, metavar="S", help="seconds after which nothing more begins")
    add("--engine-args", type=json.loads, default={}, metavar="JSON", help="further engine arguments")


def _scripted(parser: argparse.ArgumentParser, memory: float) -> None:
    help_ = "scripted engines instead of vLLM on a GPU: tries the bench"
    parser.add_argument("--scripted", action="store_true", help=help_)
    _checkpoint(parser, memory)


def _shared(parser: argparse.ArgumentParser, in_flight: list[int], memory: float) -> None:
    _device(parser)
    _checkpoint(parser, memory)
    add = parser.add_argument
    add("--seed", type=int, default=7, help="of the loads (7)")
    add("--model", type=Path, metavar="DIR", help="a model to measure with; needs --requests")
    add("--requests", type=Path, metavar="FILE", help="JSON lines of text, source_lang, target_lang")
    add("--template", help="the prompt, with {text} and optionally {source} and {target}")
    names = ", ".join(arm.name for arm in (*LADDER, *PEERS, *BY_NAME_ALONE))
    add("--arms", type=_names, metavar="NAMES", help=f"of {names}, and settings such as pod-32-8192")
    kinds = f"of {','.join(LOADS)} (both)"
    add("--loads", type=_some_of(LOADS), default=list(LOADS), metavar="KINDS", help=kinds)
    add("--in-flight", type=_numbers, default=in_flight, metavar="N,…", help="requests at all times")
    add("--uniform-in-flight", type=_numbers, metavar="N,…", help="the same for uniform (as --in-flight)")
    add("--window", type=seconds, default=10.0, metavar="S", help="seconds that a point is measured (10)")
    add("--ramp", type=seconds, default=15.0, metavar="S", help="maximum seconds before that (15)")


def _device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device", choices=("cuda", "cpu"), default="cuda", help="what the model runs on (cuda)"
    )


def _checkpoint(parser: argparse.ArgumentParser, memory: float) -> None:
    add = parser.add_argument
    shape = "random weights of this shape (qwen3-1.7b)"
    add("--shape", choices=list(SHAPES), default="qwen3-1.7b", help=shape)
    add("--tokenizer", type=Path, default=DEMO_MODEL, metavar="DIR", help=f"for --shape ({DEMO_MODEL})")
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
