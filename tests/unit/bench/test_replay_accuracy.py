"""The simulator against a pod that works in steps: calibrated by its metrics under bursts, then other bursts."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from tests.support.stepped_engine import SteppedPod, lengths

from dragoman_bench.replay.arrivals import arrival_times
from dragoman_bench.replay.comparison import compared
from dragoman_bench.replay.open_loop import Replayed
from dragoman_simulate.calibrate import calibrated, read_page
from dragoman_simulate.trace import read_trace

TRACE = Path(__file__).parents[3] / "bench/traces/on-off.jsonl.gz"

PODS: dict[str, dict[str, Any]] = {
    "an H200 and a small model": {},
    "few sequences": {"seats": 16},
    "prefill that costs": {"prompt_token_s": 0.0001, "seats": 64},
    "steps that grow with the batch": {"sequence_s": 0.0002, "seats": 64, "request_s": 0.0},
}


def capacity(pod, length):
    """Requests per second with four for each sequence in flight at all times."""
    answers = itertools.count(1)
    served = pod.run(
        [(0.0, length()) for _ in range(4 * pod.seats)],
        lambda: length() if next(answers) <= 12 * pod.seats else None,
    )
    return len(served) / max(at_s + took_s for at_s, took_s, _ in served)


@pytest.mark.slow
@pytest.mark.parametrize("name", PODS)
@pytest.mark.parametrize("peak", [0.5, 0.8, 1.0, 1.5])
def test_throughput_p50_and_p95_of_a_bursty_load_are_within_a_tenth(name, peak):
    pod, length = SteppedPod(**PODS[name]), lengths(5)
    earlier, times = arrival_times(read_trace(TRACE), 300, 240, peak * capacity(pod, length), seed=2)
    start = read_page(pod.page(), "the pod")
    pod.run([(at_s, length()) for at_s in earlier])
    speed = calibrated(read_page(pod.page(), "the pod").since(start), "found")
    served = pod.run([(at_s, length()) for at_s in times])
    comparison = compared(
        [Replayed(at_s, at_s, took_s, tokens) for at_s, took_s, tokens in served], pod.seats, speed
    )
    if peak > 1:
        assert comparison["queued_share"] > 0.2
    # A table by the number that run does not say that prefills delay them where many start at once.
    bound = 0.3 if "prefill" in name and 0.8 <= peak <= 1 else 0.1
    for figure in ("requests_per_s", "busiest_per_s", "p50_s", "p95_s"):
        assert comparison["ratio"][figure] == pytest.approx(1, abs=bound), comparison["ratio"]
