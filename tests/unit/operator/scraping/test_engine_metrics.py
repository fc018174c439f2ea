"""vLLM's metrics, under their names of today and of before."""

import pytest
from prometheus_client.samples import Sample

from dragoman_operator.autoscaling.decision.values import ReplicaSample
from dragoman_operator.autoscaling.inputs import replica_sample
from dragoman_operator.errors import MetricsError
from dragoman_operator.scraping.engine_metrics import (
    LOAD_NAMES,
    read_page,
    read_samples,
)
from dragoman_operator.scraping.values import EngineMetrics, Reading

FULL = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="demo"} 16.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="demo"} 41.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="demo",reason="capacity"} 41.0
vllm:kv_cache_usage_perc{engine="0",model_name="demo"} 0.25
# TYPE vllm:request_success_total counter
vllm:request_success_total{engine="0",finished_reason="stop",model_name="demo"} 90.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="demo"} 10.0
vllm:request_success_created{engine="0",finished_reason="stop",model_name="demo"} 1.7e+09
vllm:e2e_request_latency_seconds_bucket{le="0.3",model_name="demo"} broken
"""
FEW = """\
vllm:num_requests_running{model_name="demo"} 3.0
vllm:num_requests_waiting{model_name="demo"} 0.0
vllm:kv_cache_usage_perc{model_name="demo"} 0.5
"""


def read(page: str, at: float = 10.0) -> EngineMetrics:
    return read_page(page, LOAD_NAMES, at)


def test_a_full_page() -> None:
    assert read(FULL) == EngineMetrics(10.0, 16.0, 41.0, 0.25, finished=100.0)


def test_what_is_absent_is_missing() -> None:
    assert read(FEW) == EngineMetrics(10.0, 3.0, 0.0, 0.5)


def test_rate_of_refused_requests() -> None:
    refusals = """\
dragoman_admission_refusals_total{{model_name="demo",reason="sequences"}} {}.0
dragoman_admission_refusals_total{{model_name="demo",reason="tokens"}} 2.0
"""
    before, now = (read(FULL + refusals.format(count), at) for count, at in ((5, 10.0), (25, 12.0)))
    assert (before.refused, now.refused) == (7.0, 27.0)
    assert replica_sample(Reading(now, before)).refused_per_s == 10.0
    assert replica_sample(Reading(before)).refused_per_s is None


def test_engines_of_one_pod_are_added_up_and_their_caches_averaged() -> None:
    second = FULL.replace('engine="0"', 'engine="1"').replace("0.25", "0.75")
    assert read(FULL + second) == EngineMetrics(10.0, 32.0, 82.0, 0.5, finished=200.0)


@pytest.mark.parametrize("gone", ["vllm:num_requests_running", "vllm:num_requests_waiting"])
def test_without_queue_metrics_there_is_an_error(gone: str) -> None:
    page = "\n".join(line for line in FULL.splitlines() if not line.startswith(f"{gone}{{"))
    with pytest.raises(MetricsError, match=f"there is no {gone} among the metrics"):
        read(page)


@pytest.mark.parametrize("page", ["", "<html>not found</html>", "{}"])
def test_other_pages_are_errors(page: str) -> None:
    with pytest.raises(MetricsError, match="is this a vLLM"):
        read(page)


def test_broken_line_is_an_error() -> None:
    with pytest.raises(MetricsError, match="no metrics in Prometheus' text format"):
        read(FEW + "vllm:num_requests_running{\n")


def test_not_a_number_is_missing() -> None:
    with pytest.raises(MetricsError):
        read(FEW.replace("3.0", "NaN"))


@pytest.mark.parametrize(
    ("before", "rate"),
    [
        (None, None),
        (EngineMetrics(5.0, 1, 1, finished=50.0), 10.0),
        (EngineMetrics(5.0, 1, 1, finished=100.0), 0.0),
        (EngineMetrics(5.0, 1, 1, finished=900.0), None),
        (EngineMetrics(5.0, 1, 1, finished=None), None),
        (EngineMetrics(10.0, 1, 1, finished=50.0), None),
    ],
    ids=["first", "rose", "stood", "restarted", "was missing", "same moment"],
)
def test_rate_of_finished_requests(before: EngineMetrics | None, rate: float | None) -> None:
    assert replica_sample(Reading(read(FULL), before)) == ReplicaSample(10.0, 16.0, 41.0, 0.25, rate)


@pytest.mark.parametrize("value", [-1.0, 1e300])
def test_implausible_values_are_ignored(value: float) -> None:
    with pytest.raises(MetricsError):
        read_samples(
            [Sample("vllm:num_requests_running", {}, value), Sample("vllm:num_requests_waiting", {}, 0.0)],
            0.0,
        )
