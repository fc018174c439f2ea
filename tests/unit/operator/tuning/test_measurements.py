"""What is tallied, what is missing, and that it stays small."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.tuned_pods import Pod, watched

from dragoman_operator.errors import MetricsError
from dragoman_operator.scraping.engine_metrics import TUNING_NAMES, read_page
from dragoman_operator.scraping.values import EngineMetrics
from dragoman_operator.tuning.decision.measurements import LADDER, Measurements, evidence

PAGE = """
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="demo"} 16.0
vllm:num_requests_running{engine="1",model_name="demo"} 4.0
vllm:num_requests_waiting{engine="0",model_name="demo"} 3.0
vllm:kv_cache_usage_perc{engine="0",model_name="demo"} 0.5
vllm:generation_tokens_total{engine="0",model_name="demo"} 1000.0
vllm:generation_tokens_created{engine="0",model_name="demo"} 1.7e9
vllm:request_success_total{engine="0",finished_reason="stop",model_name="demo"} 50.0
vllm:request_success_total{engine="0",finished_reason="error",model_name="demo"} 2.0
vllm:num_preemptions_total{engine="0",model_name="demo"} 7.0
vllm:request_queue_time_seconds_bucket{engine="0",le="0.3",model_name="demo"} 40.0
vllm:request_queue_time_seconds_sum{engine="0",model_name="demo"} 5.0
vllm:request_queue_time_seconds_count{engine="0",model_name="demo"} 52.0
vllm:request_decode_time_seconds_sum{engine="0",model_name="demo"} 3.0
vllm:request_decode_time_seconds_count{engine="0",model_name="demo"} 50.0
vllm:request_generation_tokens_sum{engine="0",model_name="demo"} 1000.0
vllm:request_generation_tokens_count{engine="0",model_name="demo"} 50.0
"""


def test_counters_of_a_page() -> None:
    assert read_page(PAGE, TUNING_NAMES, 9.0) == EngineMetrics(
        9.0, 20, 3, 0.5, 1000, 3.0, 950, 5.0, 52, 52, 7
    )


def test_what_a_page_does_not_have_is_missing() -> None:
    bare = "vllm:num_requests_running 1\nvllm:num_requests_waiting 0\n"
    assert read_page(bare, TUNING_NAMES, 9.0) == EngineMetrics(9.0, 1, 0)
    # Requests that left the queue have ended or will: better than nothing.
    assert read_page(bare + "vllm:request_queue_time_seconds_count 5\n", TUNING_NAMES, 9.0).finished == 5
    assert read_page(bare + "vllm:request_decode_time_seconds_sum 5\n", TUNING_NAMES, 9.0).decode_s == 5
    assert read_page(bare + "vllm:request_generation_tokens_sum 5\n", TUNING_NAMES, 9.0).decode_n is None


def test_a_page_without_the_running_requests_is_none() -> None:
    with pytest.raises(MetricsError, match="vllm:num_requests_running"):
        read_page("vllm:num_requests_waiting 0\n", TUNING_NAMES, 9.0)


def test_a_sample_and_its_sums() -> None:
    pod = Pod(16, noise=0.0)
    found = evidence(watched(pod, [20.0] * 10), pod.now.at)
    assert (found.window_s, found.samples) == (50.0, 10.0)
    assert (found.p50, found.p95) == (20.0, 20.0)
    assert found.queue_ratio == pytest.approx(0.2)
    assert found.token_s == pytest.approx(0.0033)
    assert found.tokens_per_s == pytest.approx(16 / 0.0033)
    (point,) = found.curve
    assert point.running == 16.0
    assert point.token_s == pytest.approx(0.0033)
    assert found.queue_s == pytest.approx(4 / (16 / 0.0033 / 85))


def test_percentiles_are_of_the_time_with_requests() -> None:
    pod = Pod(64)
    found = evidence(watched(pod, [0.0] * 50 + [4.0] * 90 + [40.0] * 10), pod.now.at)
    assert (found.p50, found.p95) == (4.0, 40.0)
    assert [point.running for point in found.curve] == [4.0, 40.0]


def test_missing_metrics_stay_missing() -> None:
    samples = [EngineMetrics(at, 4, 0) for at in (0.0, 5.0, 10.0)]
    tally = Measurements()
    for before, now in pairwise(samples):
        tally = tally.seen(before, now)
    found = evidence(tally, 10.0)
    missing = (found.queue_s, found.kv_p95, found.preemptions, found.token_s)
    assert (found.p95, missing, found.curve) == (4.0, (None,) * 4, ())


def test_a_sample_of_a_restarted_engine_is_ignored() -> None:
    before, now = Pod(16).sample(20.0)
    assert Measurements().seen(now, replace(before, at=now.at + 5)) == Measurements()
    assert Measurements().seen(now, now) == Measurements()


@given(st.lists(st.tuples(st.sampled_from([1, 8, 64]), st.floats(0, 9000)), max_size=40))
def test_tallies_add_up_and_stay_small(samples: list[tuple[int, float]]) -> None:
    pods = {size: Pod(size, seed=size) for size in (1, 8, 64)}
    whole = first = second = Measurements()
    for at, (size, load) in enumerate(samples):
        sample = pods[size].sample(load)
        whole = whole.seen(*sample)
        if at % 2:
            first = first.seen(*sample)
        else:
            second = second.seen(*sample)
    both = first.plus(second)
    assert both.finished == pytest.approx(whole.finished)
    assert both.bins.keys() == whole.bins.keys() <= set(LADDER)
    for step, one in both.bins.items():
        assert one.tokens == pytest.approx(whole.bins[step].tokens)
        assert one.in_flight_s == pytest.approx(whole.bins[step].in_flight_s)
