"""`dragoman tune`: the command line."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from pathlib import Path

import uvloop

from dragoman.command_line import seconds, whole
from dragoman_tune.closed_loop import Pace
from dragoman_tune.errors import MeasureError
from dragoman_tune.report import patch, table
from dragoman_tune.requests import read_requests
from dragoman_tune.scrape import watched
from dragoman_tune.search import Goal, Stop, decide
from dragoman_tune.server import until_terminated
from dragoman_tune.state import State, fingerprint
from dragoman_tune.trial import TUNED_FLAGS, Workload, measured

STARTED_S = time.monotonic()


def main(argv: list[str] | None = None) -> int:
    """Sweep, and write a table and a patch.

    Returns:
        0; 1 where no setting keeps the SLO; 2 where nothing could be measured; 130 where it was stopped.
    """
    try:
        arguments = _arguments(sys.argv[1:] if argv is None else argv)
    except SystemExit as stop:
        return int(stop.code or 0)
    try:
        return int(uvloop.run(until_terminated(_run(arguments))))
    except MeasureError as error:
        sys.stderr.write(f"dragoman tune: {error}\n")
        return 2
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.stderr.write("dragoman tune: stopped; the same command goes on from here\n")
        return 130


async def _run(arguments: argparse.Namespace) -> int:
    requests = read_requests(arguments.requests)
    in_flight = arguments.in_flight
    if in_flight is None:
        _say(f"watching {arguments.metrics_url} for {arguments.watch:g} s")
        in_flight = await watched(arguments.metrics_url, arguments.watch)
        _say(f"{in_flight} requests in flight (95th percentile)")
    if len({request.text for request in requests}) < in_flight:
        _say(
            f"fewer texts than {in_flight}, the requests in flight: a pod translates equal ones once; give more"
        )
    policy = Goal(slo_p95_s=arguments.slo_p95, in_flight=in_flight, first_tokens=arguments.batched_tokens)
    flags = ["--model", arguments.model, *arguments.serve]
    mark = fingerprint(requests, flags=flags, in_flight=in_flight, window_s=arguments.window)
    state = State(arguments.output, mark)
    if state.trials:
        _say(f"going on after {len(state.trials)} trials in {arguments.output}")
    pace = Pace(arguments.window, arguments.ramp)
    workload = Workload(flags, requests, in_flight, pace, arguments.output)
    while not isinstance(step := decide(state.trials, policy), Stop):
        setting = step.setting
        _say(
            f"trying {setting.max_num_seqs} sequences, {setting.max_num_batched_tokens} tokens a step: {step.why}"
        )
        trial = await measured(setting, workload)
        state.add(trial)
        p95 = "–" if trial.p95_s is None else f"{trial.p95_s:.2f} s"
        _say(f"  {trial.requests_per_s:.2f} req/s, p95 {p95}" + (f"; {trial.failed}" if trial.failed else ""))
    return _report(arguments.output, state, step, policy)


def _report(output: Path, state: State, stop: Stop, policy: Goal) -> int:
    text = table(state.trials, stop, policy)
    (output / "table.md").write_text(f"{text}\n\n{stop.why}\n", encoding="utf-8")
    sys.stdout.write(f"\n{text}\n\n{stop.why}\n")
    if stop.best is None:
        return 1
    (output / "patch.yaml").write_text(patch(stop.best), encoding="utf-8")
    sys.stdout.write(f"kubectl patch td NAME --type merge --patch-file {output / 'patch.yaml'}\n")
    return 0


def _say(line: str) -> None:
    sys.stdout.write(f"{time.monotonic() - STARTED_S:6.0f} s  {line}\n")
    sys.stdout.flush()


def _arguments(argv: list[str]) -> argparse.Namespace:
    at = argv.index("--") if "--" in argv else len(argv)
    parser = _parser()
    arguments = parser.parse_args(argv[:at])
    arguments.serve = argv[at + 1 :]
    for flag in arguments.serve:
        if flag.partition("=")[0] in (*TUNED_FLAGS, "--model", "--host", "--port"):
            parser.error(f"{flag} is set by the sweep itself")
    return arguments


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dragoman tune",
        description="Find the engine settings that a measured load wants, by measuring.",
        epilog="What follows -- goes to `dragoman serve`: dragoman tune … -- --device cuda --prompt-family hy-mt2",
    )
    add = parser.add_argument
    add("--model", required=True, help="as `dragoman serve` takes it")
    add(
        "--slo-p95",
        type=seconds,
        required=True,
        metavar="S",
        help="longest 95th percentile of answer times",
    )
    add(
        "--requests",
        type=Path,
        required=True,
        metavar="FILE",
        help="JSON lines of text, source_lang, target_lang",
    )
    load = parser.add_mutually_exclusive_group(required=True)
    load.add_argument("--in-flight", type=whole, metavar="N", help="requests that a replica has at its peak")
    load.add_argument("--metrics-url", metavar="URL", help="a running pod, to measure that by its metrics")
    add("--watch", type=seconds, default=60.0, metavar="S", help="how long to watch the pod (60)")
    add("--output", type=Path, required=True, metavar="DIR", help="where trials, table and patch go")
    add("--batched-tokens", type=whole, default=8192, metavar="N", help="tokens a step to begin with (8192)")
    add("--window", type=seconds, default=15.0, metavar="S", help="seconds that a setting is measured (15)")
    add("--ramp", type=seconds, default=30.0, metavar="S", help="most seconds before that (30)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
