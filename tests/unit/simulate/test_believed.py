"""The simulator against a pod that works in steps: calibrated by its metrics, then the same bursts."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from tests.support.stepped_engine import SteppedPod, lengths

from dragoman_bench.__main__ import concurrencies
from dragoman_bench.replay.arrivals import arrival_times
from dragoman_bench.replay.comparison import compared
from dragoman_bench.replay.open_loop import Replayed
from dragoman_simulate.calibrate import calibrated, joined, read_page
from dragoman_simulate.trace import read_trace

TRACE = Path(__file__).parents[3] / "bench/traces/on-off.jsonl.gz"

PODS: dict[str, dict[str, Any]] = {
    "an H200 and a small model": {},
    "few sequences": {"seats": 16},
    "prefill that costs": {"prompt_token_s": 0.0001, "seats": 64},
    "steps that grow with the batch": {"sequence_s": 0.0002, "seats": 64, "request_s": 0.0},
}


def window(pod, in_flight, requests, length):
    """What the pod measures with so many requests in flight at all times, each of which was answered once before."""
    answers = itertools.count(1)
    pages = []

    def again():
        answer = next(answers)
        if answer in (2 * in_flight, 2 * in_flight + requests):
            pages.append(read_page(pod.page(), "the pod"))
        return length() if answer < 2 * in_flight + requests else None

    pod.run([(0.0, length()) for _ in range(in_flight)], again)
    early, late = pages
    return late.since(early)


@pytest.mark.slow
@pytest.mark.parametrize("name", PODS)
@pytest.mark.parametrize("peak", [0.8, 1.5])
def test_throughput_p50_and_p95_of_a_bursty_load_are_within_a_tenth(name, peak):
    pod, length = SteppedPod(**PODS[name]), lengths(5)
    windows = [window(pod, each, 150 + 6 * each, length) for each in concurrencies(pod.seats)]
    speed = calibrated(joined(windows), pod.seats, "found")
    times = arrival_times(read_trace(TRACE), 240, peak * speed.capacity_per_s(pod.seats, 85), seed=2)
    served = pod.run([(at_s, length()) for at_s in times])
    comparison = compared(
        [Replayed(at_s, at_s, took_s, tokens) for at_s, took_s, tokens in served], pod.seats, speed
    )
    if peak > 1:
        assert comparison["queued_share"] > 0.2
    for figure in ("requests_per_s", "busiest_per_s", "p50_s", "p95_s"):
        assert comparison["ratio"][figure] == pytest.approx(1, abs=0.1), comparison["ratio"]
