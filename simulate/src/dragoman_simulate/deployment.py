"""`dragoman simulate --from-deployment`: the table of what other sizes of one deployment would cost."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragoman_contract.reports import COUNT, TOKENS, TOKENS_SQUARED
from dragoman_simulate.calibrate import Page, calibrated, joined, read_page
from dragoman_simulate.errors import SimulateError
from dragoman_simulate.sources import deployed
from dragoman_simulate.speed import SpeedTable
from dragoman_simulate.trace import Trace, read_trace
from dragoman_simulate.whatif import predicted, replicas_of, size_of, sizes, steady, table


def what_if(arguments: argparse.Namespace) -> str:
    """Read the deployment, replay its load with each size, and return a few lines and the table.

    Raises:
        SimulateError: The deployment cannot be read, or has measured too little.
    """
    found = deployed(arguments.from_deployment, arguments.kubeconfig, arguments.context)
    page = joined([read_page(text, pod) for pod, text in found.pages.items()])
    pods = f"{len(found.pages)} pod" + ("s" if len(found.pages) > 1 else "")
    speed = calibrated(page, f"measured by {pods}")
    now = size_of(found.manifest, speed.kv_cache_tokens)
    write_speeds(arguments.output, speed, f"metrics of {pods} of a TranslationDeployment")
    trace = _load(arguments.trace, found.manifest, page)
    predictions = [
        predicted(size, trace, speed, spread(page))
        for size in sizes(now, arguments.max_num_seqs, arguments.start_up)
    ]
    limits = now.limits
    introduction = (
        f"{arguments.from_deployment}: {replicas_of(now.replicas)} of {limits.max_num_seqs} sequences, ready in "
        f"{limits.start_up_s:g} s; {speed.name}, {measured(speed)}\n"
        f"load: {trace.name}: {trace.counts.sum():,.0f} requests in {trace.duration_s / 60:.0f} min"
    )
    return f"{introduction}\n\n{table(predictions)}"


def write_speeds(path: Path | None, speed: SpeedTable, source: str) -> None:
    """Write a table of speeds for `--speeds`, if a file is named."""
    if path is not None:
        path.write_text(speed.as_json(source), encoding="utf-8")


def measured(speed: SpeedTable) -> str:
    """The range that a table covers, in words: outside it the simulator extrapolates."""
    return f"with {speed.running[0]:.3g} to {speed.running[-1]:.3g} sequences running"


def spread(page: Page) -> float:
    """Deviation of a generation's output tokens over their mean."""
    count, tokens, squared = (
        sum(sums[name] for sums in page.speeds.values()) for name in (COUNT, TOKENS, TOKENS_SQUARED)
    )
    mean = tokens / count
    return math.sqrt(max(0.0, squared / count - mean * mean)) / mean


def _load(traces: list[Path], manifest: Mapping[str, Any], page: Page) -> Trace:
    if len(traces) > 1:
        raise SimulateError("--from-deployment takes one --trace")
    if traces:
        return read_trace(traces[0])
    scaling = (manifest.get("status") or {}).get("scaling") or {}
    rate = (scaling.get("signals") or {}).get("arrivalsPerSecond")
    if not rate:
        raise SimulateError(
            "the status has no arrivals per second (it needs spec.autoscaling of mode Internal and a load): "
            "name a --trace"
        )
    return steady(rate, page.source_tokens, page.target_tokens)
