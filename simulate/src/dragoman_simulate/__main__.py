"""`dragoman simulate`: the command line."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dragoman.command_line import seconds, whole
from dragoman_contract.models import DEFAULT_MAX_NUM_SEQS
from dragoman_simulate.calibrate import calibrated, read_page
from dragoman_simulate.deployment import what_if, write_speeds
from dragoman_simulate.errors import SimulateError
from dragoman_simulate.fronts import KnobSetting, front, sweep
from dragoman_simulate.fronts import table as front_table
from dragoman_simulate.plot import draw, draw_fronts
from dragoman_simulate.policies import POLICIES
from dragoman_simulate.replay import ReplayOutcome, fluid
from dragoman_simulate.report import OURS, as_json, compared, fronts_as_json, sentence, table
from dragoman_simulate.sources import page as metrics_page
from dragoman_simulate.speed import SpeedTable, read_speed_table
from dragoman_simulate.trace import Trace, read_trace
from dragoman_simulate.view import TARGET_UTILISATION, ScalingLimits

START_UP_S = 60.0


def main(argv: list[str] | None = None) -> int:
    """Replay traces and print the results.

    Returns:
        0; 2 where the command line, a trace or a table cannot be used, or a file cannot be written.
    """
    parser = _parser()
    try:
        arguments = parser.parse_args(argv)
    except SystemExit as stop:
        return int(stop.code or 0)
    try:
        return _run(arguments)
    except SimulateError as error:
        problem = str(error)
    except OSError as error:
        problem = f"{error.filename}: {error.strerror}"
    sys.stderr.write(f"dragoman simulate: {problem}\n")
    return 2


def _run(arguments: argparse.Namespace) -> int:
    if arguments.min > arguments.max:
        raise SimulateError(f"--min {arguments.min} is above --max {arguments.max}")
    if arguments.from_deployment:
        _say(what_if(arguments))
        return 0
    speed = _speed(arguments)
    if not arguments.trace:
        if arguments.metrics is None:
            raise SimulateError("name a --trace, a deployment with --from-deployment, or --metrics")
        _say(speed.as_json(arguments.metrics))
        return 0
    traces = [read_trace(path) for path in arguments.trace]
    if len({trace.name for trace in traces}) < len(traces):
        raise SimulateError("two traces have the same name: rename one of the files")
    speed = speed.folded(_mean_tokens(traces))
    limits = _limits(arguments, speed)
    if arguments.fronts:
        return _fronts(arguments, traces, limits, speed)
    outcomes: dict[str, dict[str, ReplayOutcome]] = {}
    for trace in traces:
        outcomes[trace.name] = {
            name: fluid(trace, POLICIES[name](limits), limits, speed) for name in arguments.policy
        }
        _print(trace, outcomes[trace.name], limits, speed)
    if arguments.plot is not None:
        draw(arguments.plot, traces, outcomes)
        _say(f"curves: {arguments.plot}")
    if arguments.json:
        _say(as_json(outcomes))
    return 0


def _speed(arguments: argparse.Namespace) -> SpeedTable:
    if arguments.metrics is None:
        return read_speed_table(arguments.speeds)
    page = read_page(metrics_page(arguments.metrics), arguments.metrics)
    speed = calibrated(page, "measured by one pod")
    write_speeds(arguments.output, speed, arguments.metrics)
    return speed


def _mean_tokens(traces: list[Trace]) -> float:
    requests = sum(float(trace.counts.sum()) for trace in traces)
    return sum(float((trace.counts * trace.target_tokens).sum()) for trace in traces) / max(1.0, requests)


def _fronts(
    arguments: argparse.Namespace, traces: list[Trace], limits: ScalingLimits, speed: SpeedTable
) -> int:
    if OURS not in arguments.policy or len(arguments.policy) < 2:
        raise SimulateError(f"--fronts compares {OURS} with others: --policy has to name it and one more")
    fronts: dict[str, dict[str, list[KnobSetting]]] = {}
    for trace in traces:
        fronts[trace.name] = {name: front(sweep(trace, name, limits, speed)) for name in arguments.policy}
        _introduce(trace, limits, speed)
        _say(front_table(fronts[trace.name]) + "\n")
    if arguments.plot is not None:
        draw_fronts(arguments.plot, fronts)
        _say(f"fronts: {arguments.plot}")
    if arguments.json:
        _say(fronts_as_json(fronts))
    return 0


def _print(
    trace: Trace, outcomes: dict[str, ReplayOutcome], limits: ScalingLimits, speed: SpeedTable
) -> None:
    _introduce(trace, limits, speed)
    _say(table(outcomes))
    comparison = compared(outcomes)
    if comparison is not None:
        _say(sentence(comparison))
    _say()


def _introduce(trace: Trace, limits: ScalingLimits, speed: SpeedTable) -> None:
    requests = float(trace.counts.sum())
    _say(
        f"{trace.name}: {requests:,.0f} requests in {trace.duration_s / 3600:.1f} h, peak "
        f"{trace.counts.max():.0f}/s; {limits.minimum} to {limits.maximum} replicas of {limits.max_num_seqs} "
        f"sequences, ready in {limits.start_up_s:g} s; target wait {limits.target_wait_s:g} s; {speed.name}"
    )


def _say(text: str = "") -> None:
    sys.stdout.write(f"{text}\n")


def _limits(arguments: argparse.Namespace, speed: SpeedTable) -> ScalingLimits:
    seats = arguments.max_num_seqs or DEFAULT_MAX_NUM_SEQS
    concurrency = arguments.target_concurrency or max(1.0, TARGET_UTILISATION * seats)
    return ScalingLimits(
        minimum=arguments.min,
        maximum=arguments.max,
        max_num_seqs=seats,
        target_concurrency=concurrency,
        target_wait_s=arguments.target_wait,
        start_up_s=arguments.start_up or START_UP_S,
        kv_cache_tokens=speed.kv_cache_tokens,
        idle_s=arguments.idle,
        tick_s=arguments.tick,
        objective=arguments.objective,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dragoman simulate",
        description="Replay traffic against a model of engine pods, under our autoscaler and its peers' rules.",
        epilog='A trace is JSON lines: {"time": s, "source_tokens": n, "target_tokens": n}, with "count": n for '
        'several alike, and {"event": "metrics_outage", "from": s, "to": s}.',
    )
    add = parser.add_argument
    add("--trace", type=Path, action="append", default=[], metavar="FILE", help="may be repeated")
    deployment = "what other sizes of this TranslationDeployment would cost, by its pods' metrics"
    add("--from-deployment", metavar="[NAMESPACE/]NAME", help=deployment)
    add("--kubeconfig", type=Path, metavar="FILE", help="for --from-deployment; default: as kubectl finds it")
    add("--context", metavar="NAME", help="of the kubeconfig; default: its current one")
    names = ",".join(POLICIES)
    add("--policy", type=_policies, default=list(POLICIES), metavar="NAMES", help=f"of {names} (all)")
    add("--target-wait", type=seconds, default=2.0, metavar="S", help="target for a request's wait (2)")
    add("--start-up", type=seconds, metavar="S", help="time until a replica is ready (60)")
    add("--max-num-seqs", type=whole, metavar="N", help="sequences of a replica at once (32)")
    concurrency = "requests that a replica should have (0.8 of --max-num-seqs); for dragoman and hpa"
    add("--target-concurrency", type=seconds, metavar="N", help=concurrency)
    objective = "requests that should wait at most --target-wait, for dragoman (95%%)"
    add("--objective", type=_percentage, default=0.95, metavar="P%", help=objective)
    add("--min", type=_whole_or_none, default=1, metavar="N", help="minimum replicas; 0 allows zero (1)")
    add("--max", type=whole, default=20, metavar="N", help="maximum replicas (20)")
    add(
        "--idle", type=seconds, default=900.0, metavar="S", help="idle time before dragoman scales to 0 (900)"
    )
    tick = "whole seconds between two decisions of dragoman (5); the others have their published intervals"
    add("--tick", type=whole, default=5, metavar="S", help=tick)
    add("--speeds", type=Path, metavar="FILE", help="measured speeds as JSON (an H200 and a 1.7 B model)")
    add(
        "--metrics",
        metavar="URL|FILE",
        help="the speeds of a pod, from its /metrics; without --trace: print them",
    )
    add("--output", type=Path, metavar="FILE", help="write the speeds of --metrics or --from-deployment")
    fronts = "sweep each rule over its own knob, and compare at each budget of replica-hours"
    add("--fronts", action="store_true", help=fronts)
    add("--json", action="store_true", help="print the results as one JSON object on the last line")
    add("--plot", type=Path, metavar="FILE.png", help="draw the curves")
    return parser


def _policies(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in POLICIES]
    if unknown or not names:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown) or 'none'}: choose from {', '.join(POLICIES)}")
    return list(dict.fromkeys(names))


def _percentage(text: str) -> float:
    value = float(text.removesuffix("%")) / 100
    if not text.endswith("%") or not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a percentage above 0% and below 100%, such as 99.9%")
    return value


def _whole_or_none(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is not 0 or more")
    return value


if __name__ == "__main__":
    sys.exit(main())
