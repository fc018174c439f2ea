"""Which size is recommended, and what it is worth on measured tables."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.tuned_pods import Pod, watched

from dragoman_operator.scraping.values import EngineMetrics
from dragoman_operator.tuning.decision.measurements import LADDER, Evidence, Measurements, TokenTime, evidence
from dragoman_operator.tuning.decision.recommendation import (
    HEADROOM,
    Bounds,
    Recommendation,
    recommend_max_num_seqs,
)
from dragoman_simulate.exact import ExactFleet
from dragoman_simulate.speed import read_speed_table
from dragoman_simulate.view import ScalingLimits

LADDER_RESULTS = Path("bench/results/h200/ladder.json")


def seen(**measured: Any) -> Evidence:
    """A window in which a replica of 16 was busy with 20 requests."""
    base: dict[str, Any] = {
        "window_s": 600.0,
        "samples": 120.0,
        "requests": 10_000.0,
        "p50": 20.0,
        "p95": 20.0,
        "queue_ratio": 0.2,
        "queue_s": 0.1,
        "kv_p95": None,
        "kv_each": None,
        "preemptions": None,
        "token_s": 0.003,
        "tokens_per_s": 5000.0,
        "curve": (TokenTime(16, 0.003),),
    }
    return Evidence(**base | measured)


def size(bounds: Bounds, **measured: Any) -> int:
    found = recommend_max_num_seqs(seen(**measured), bounds)
    assert found is not None
    return found.max_num_seqs


def measured(current: int, in_flight: float) -> Recommendation:
    """What a replica on one H200 shows under a closed loop, and what is recommended then."""
    table = read_speed_table()
    pod = Pod(current, lambda running: 1 / table.tokens_per_s(running))
    tally = watched(pod, [in_flight] * 60)
    found = recommend_max_num_seqs(evidence(tally, pod.now.at), Bounds(current, 1, 4096))
    assert found is not None
    return found


@pytest.mark.parametrize("in_flight", [4, 20, 200])
@pytest.mark.parametrize("current", [1, 4, 8, 16, 32, 64, 256, 512])
def test_on_the_measured_table_no_throughput_is_lost(current: int, in_flight: float) -> None:
    table = read_speed_table()

    def throughput(running: float) -> float:
        return running * table.tokens_per_s(running)

    steps = [current, measured(current, in_flight).max_num_seqs]
    while steps[-1] != steps[-2]:
        steps.append(measured(steps[-1], in_flight).max_num_seqs)
    # At once where it is in reach, else by eight times.
    assert len(steps) <= (3 if 8 * current >= 2 * HEADROOM * in_flight else 5)
    found = steps[-1]
    most = max(throughput(min(step, in_flight)) for step in LADDER)
    assert throughput(min(found, in_flight)) >= 0.99 * most
    assert found <= 4 * HEADROOM * in_flight


def replayed(rate: float, max_num_seqs: int, seed: int = 1, span_s: int = 120) -> tuple[Measurements, float]:
    """A replica of one H200 under Poisson arrivals of unequal length; its tally and the mean wait for a place."""
    draw, table = random.Random(seed), read_speed_table()
    limits = ScalingLimits(
        1, 1, max_num_seqs, max_num_seqs, 2.0, 0.0, table.kv_cache_tokens, 900.0, 5.0, 0.95
    )
    fleet = ExactFleet(limits, table, 1, seed, spread=0.67)
    tally, before = Measurements(), EngineMetrics(0.0, 0, 0, 0, 0, finished=0)
    for second in range(span_s):
        arrived = sum(1 for _ in range(int(4 * rate)) if draw.random() < 0.25)
        fleet.step(second, arrived, 60.0, 85.0)
        if second % 5 == 4:
            seen = fleet.view(second + 1.0, blind=False).metrics
            assert seen is not None
            finished = seen.finished_total
            usage = seen.alike[0].kv_usage
            now = EngineMetrics(
                second + 1.0, seen.running, seen.waiting, usage, 85 * finished, finished=finished
            )
            tally, before = tally.seen(before, now), now
    fleet.close(span_s)
    (p95,) = fleet.waits.percentiles((0.95,))
    return tally, p95


@pytest.mark.slow
@pytest.mark.parametrize("rate", [15.0, 60.0, 150.0])
@pytest.mark.parametrize("current", [4, 16, 512])
def test_replayed_arrivals_find_a_place_and_few_stay_empty(rate: float, current: int) -> None:
    """Arrivals and not a closed loop: where the size is too small the queue grows without end."""
    size = current
    for _ in range(4):
        tally, _ = replayed(rate, size)
        found = recommend_max_num_seqs(evidence(tally, 120.0), Bounds(size, 1, 4096))
        assert found is not None
        if found.max_num_seqs == size:
            break
        size = found.max_num_seqs
    tally, wait_s = replayed(rate, size, seed=2)
    assert wait_s <= 0.05
    assert size <= 4 * evidence(tally, 120.0).p95


def test_the_step_of_the_ladder_s_pods_is_taken() -> None:
    """25 in flight for 16 places lost the seeds' setting two fifths of its throughput, measured: 42 of 74 a second."""
    arms = {arm["arm"]: arm for arm in json.loads(LADDER_RESULTS.read_text())["arms"]}
    (point,) = (
        found
        for found in arms["final"]["points"]
        if (found["load"], found["in_flight"]) == ("variable", 25) and found["steady"]
    )
    (sized,) = (
        found
        for found in arms["sized"]["points"]
        if (found["load"], found["in_flight"]) == ("variable", 25) and found["steady"]
    )
    assert point["requests_per_s"] < 0.6 * sized["requests_per_s"]
    waiting = point["queue_s"] / (point["queue_s"] + point["compute_s"])
    token_s = 16 / point["output_tokens_per_s"]
    measured = {"p95": 25.0, "queue_ratio": waiting, "curve": (TokenTime(16, token_s),)}
    assert size(Bounds(16, 1, 8192), **measured) == 32


@pytest.mark.parametrize(
    ("current", "measured", "wanted"),
    [
        (16, {}, 32),
        (16, {"queue_ratio": 0.001}, 16),  # no request waits for a slot
        (16, {"requests": 99.0}, None),
        (16, {"p95": 0.0}, None),
        (64, {"queue_ratio": 0.0, "curve": (TokenTime(20, 0.003),)}, 32),  # the seeds' own step, down
        (48, {"queue_ratio": 0.0, "curve": (TokenTime(20, 0.003),)}, 48),  # not worth new pods
        # What runs beyond 16 slows all the others by more than it brings.
        (
            64,
            {"queue_ratio": 0.0, "curve": (TokenTime(8, 0.003), TokenTime(16, 0.004), TokenTime(20, 0.008))},
            16,
        ),
        # The batch is bound by arithmetic: twice the sequences write no more.
        (16, {"curve": (TokenTime(8, 0.008), TokenTime(16, 0.016))}, 8),
        # The cache is full with 16.
        (
            32,
            {
                "p95": 32.0,
                "kv_p95": 1.0,
                "kv_each": 1 / 32,
                "preemptions": 0.2,
                "curve": (TokenTime(32, 0.003),),
            },
            24,
        ),
        # The cache has room for 24, not for the 32 that the load would want.
        (16, {"kv_p95": 0.6, "kv_each": 0.6 / 16}, 24),
        (16, {"kv_p95": 0.85, "kv_each": 0.85 / 16}, 16),
    ],
)
def test_sizes(current: int, measured: dict[str, Any], wanted: int | None) -> None:
    found = recommend_max_num_seqs(seen(**measured), Bounds(current, 1, 4096))
    assert (found.max_num_seqs if found else None) == wanted


def test_bounds_are_kept() -> None:
    assert size(Bounds(16, 1, 24)) == 24
    # An autoscaler whose target follows the size would require more replicas instead.
    assert size(Bounds(64, 64, 4096), queue_ratio=0.0) == 64


def test_what_the_busiest_hour_needed_is_kept() -> None:
    measured = {"p95": 4.0, "queue_ratio": 0.0, "curve": (TokenTime(4, 0.003),)}
    assert size(Bounds(32, 1, 4096), **measured) == 8
    found = recommend_max_num_seqs(seen(**measured), Bounds(32, 1, 4096, busiest=20.0))
    assert found is not None
    assert (found.max_num_seqs, "the maximum of the last day is 20" in found.reason) == (32, True)


def test_a_quiet_window_lowers_nothing_before_a_day_was_measured() -> None:
    measured = {"p95": 4.0, "queue_ratio": 0.0, "curve": (TokenTime(4, 0.003),)}
    found = recommend_max_num_seqs(seen(**measured), Bounds(32, 1, 4096, covers_a_day=False))
    assert found is not None
    assert (found.max_num_seqs, "less than a day was measured" in found.reason) == (32, True)
    # More throughput needs no history.
    slower = {"queue_ratio": 0.0, "curve": (TokenTime(8, 0.003), TokenTime(16, 0.004), TokenTime(20, 0.008))}
    assert size(Bounds(64, 1, 4096, covers_a_day=False), **slower) == 16


def test_reason_has_the_measurements() -> None:
    found = recommend_max_num_seqs(seen(), Bounds(16, 1, 4096))
    assert found is not None
    assert found.reason == (
        "32 instead of 16: 20 requests are in flight on a replica at the 95th percentile, and 20% of them wait "
        "because only 16 sequences run at once"
    )


@pytest.mark.parametrize(
    ("measured", "why"),
    [
        ({"kv_p95": 0.85, "kv_each": 0.85 / 16}, "the KV cache has no space for more: a sequence takes 5.3%"),
        (
            {"curve": (TokenTime(8, 0.004), TokenTime(16, 0.0078))},
            "by the measured time per token more at once generate no more tokens",
        ),
    ],
)
def test_reason_of_a_value_that_stays_although_requests_wait(measured: dict[str, Any], why: str) -> None:
    found = recommend_max_num_seqs(seen(**measured), Bounds(16, 1, 4096))
    load = "20 requests are in flight on a replica at the 95th percentile"
    assert found == Recommendation(16, f"16 stays: {load}, but {why}")


curves = st.lists(
    st.builds(TokenTime, st.floats(1, 500), st.floats(1e-4, 1)),
    max_size=8,
    unique_by=lambda point: round(point.running),
).map(lambda points: tuple(sorted(points)))


@given(
    st.integers(1, 512),
    st.floats(0, 600),
    st.floats(0, 1),
    st.none() | st.floats(0, 1),
    st.none() | st.floats(1e-6, 1),
    st.none() | st.floats(0, 2),
    curves,
    st.integers(1, 64),
    st.integers(512, 4096),
    st.floats(0, 600),
)
def test_whatever_was_seen_the_size_is_within_bounds(
    current: int,
    load: float,
    queue: float,
    usage: float | None,
    each: float | None,
    preemptions: float | None,
    curve: tuple[TokenTime, ...],
    minimum: int,
    maximum: int,
    busiest: float,
) -> None:
    measured = {
        "p95": load,
        "queue_ratio": queue,
        "kv_p95": usage,
        "kv_each": each,
        "preemptions": preemptions,
        "curve": curve,
    }
    found = recommend_max_num_seqs(seen(**measured), Bounds(current, minimum, maximum, busiest))
    if found is not None:
        assert found.max_num_seqs == current or minimum <= found.max_num_seqs <= maximum
        assert found.reason.startswith(str(found.max_num_seqs))


@given(st.floats(1, 400), st.sampled_from(LADDER[:14]))
def test_what_is_recommended_stays_recommended(load: float, current: int) -> None:
    """Under the same load it comes to rest within a few steps: pods are not replaced again and again."""
    size = current
    for _ in range(4):
        size = measured(size, load).max_num_seqs
    assert measured(size, load).max_num_seqs == size
