"""Samples of each pod in a response of Prometheus, with the time of the scrape."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman_operator.errors import MetricsError
from dragoman_operator.scraping.prometheus import pod_readings, query
from dragoman_operator.scraping.values import EngineMetrics


def series(name: str, values: list[tuple[float, float]], pod: str = "a", **labels: str) -> dict[str, Any]:
    metric = {"__name__": name, "namespace": "default", "pod": pod, **labels}
    return {"metric": metric, "values": [[at, str(value)] for at, value in values]}


def matrix(*result: dict[str, Any]) -> dict[str, Any]:
    return {"resultType": "matrix", "result": list(result)}


RUNNING = series("vllm:num_requests_running", [(100, 1), (115, 4)])
WAITING = series("vllm:num_requests_waiting", [(100, 0), (115, 7)])


def test_latest_scrape_with_the_rate_since_the_one_before() -> None:
    finished = [
        series("vllm:request_success_total", [(100, 10), (115, 40)], finished_reason="stop"),
        series("vllm:request_success_total", [(100, 5), (115, 5)], finished_reason="length"),
    ]
    usage = series("vllm:kv_cache_usage_perc", [(100, 0.1), (115, 0.3)])
    found = pod_readings(matrix(RUNNING, WAITING, usage, *finished))["default", "a"]
    assert found == (
        EngineMetrics(115, 4, 7, 0.3, finished=45),
        EngineMetrics(100, 1, 0, 0.1, finished=15),
    )


def test_scrape_that_misses_a_name_is_passed_over() -> None:
    running = series("vllm:num_requests_running", [(100, 1), (115, 4), (130, 9)])
    assert pod_readings(matrix(running, WAITING))["default", "a"].now.at == 115


def test_pod_without_queue_metrics_has_no_sample() -> None:
    assert pod_readings(matrix(RUNNING)) == {}


def test_first_scrape_has_no_rate() -> None:
    one = [
        series("vllm:num_requests_running", [(100, 1)], pod="b"),
        series("vllm:num_requests_waiting", [(100, 1)], pod="b"),
    ]
    found = pod_readings(matrix(*one))["default", "b"]
    assert found == (EngineMetrics(100, 1, 1), None)


@pytest.mark.parametrize(
    "data",
    [None, [], {}, {"resultType": "vector", "result": []}, matrix({"metric": {}, "values": []}), matrix({})],
    ids=["null", "list", "empty", "vector", "no labels", "no series"],
)
def test_answers_in_other_forms_are_errors(data: object) -> None:
    with pytest.raises(MetricsError, match=r"answers|malformed"):
        pod_readings(data)


def test_query_quotes_what_it_is_given() -> None:
    assert query(["a.b", "c"]).endswith('namespace=~"a\\\\.b|c",pod!=""}[2m]')
