"""The sums by which a pod reports its speed."""

import pytest
from prometheus_client import CollectorRegistry

from dragoman_service.http.speeds import Speeds


class Pod:
    def __init__(self) -> None:
        self.now_s = 0.0
        self.registry = CollectorRegistry()
        self.speeds = Speeds(self.registry, "m", lambda: self.now_s)

    def value(self, bound: str, name: str) -> float | None:
        labels = {"model_name": "m", "in_flight": bound, "sum": name}
        return self.registry.get_sample_value("dragoman_generation_sums_total", labels)


def test_a_generation_is_counted_by_the_mean_number_in_the_engine() -> None:
    pod = Pod()
    first = pod.speeds.start()
    pod.now_s = 1.0
    second = pod.speeds.start()
    pod.now_s = 2.0
    pod.speeds.end(first, 10)  # 1 for a second, then 2.
    pod.now_s = 3.0
    pod.speeds.end(second, 20)  # 2 for a second, then 1.
    sums = {name: pod.value("2", name) for name in ("count", "in_flight", "seconds", "tokens")}
    assert sums == {"count": 2, "in_flight": 3.0, "seconds": 4.0, "tokens": 30}
    assert pod.value("2", "tokens_squared") == 500
    assert pod.value("2", "token_seconds") == 60
    assert pod.value("1", "count") == 0


def test_a_number_at_a_bound_is_within_it_and_a_large_one_has_the_last() -> None:
    pod = Pod()
    started = [pod.speeds.start() for _ in range(1100)]
    pod.now_s = 0.1
    pod.speeds.end(started.pop(), 1)
    for each in started[8:]:
        pod.speeds.end(each, 0)
    pod.now_s = 0.2
    ninth = pod.speeds.start()
    pod.now_s = 0.3
    pod.speeds.end(ninth, 0)
    assert pod.value("+Inf", "count") == 1
    for each in started[:8]:
        pod.speeds.end(each, 1)
    assert pod.value("8", "elapsed") == pytest.approx(0.1)
    assert pod.value("12", "elapsed") == pytest.approx(0.1)


def test_a_generation_beside_which_the_number_changed_much_has_no_duration() -> None:
    pod = Pod()
    first = pod.speeds.start()
    pod.now_s = 1.0
    others = [pod.speeds.start() for _ in range(9)]
    pod.now_s = 2.0
    pod.speeds.end(first, 10)
    assert pod.value("12", "count") == 0
    assert pod.value("12", "finished") == 1
    pod.now_s = 3.0
    pod.speeds.end(others[-1], 10)
    assert pod.value("12", "count") == 1


def test_time_and_throughput_count_by_the_number_at_the_moment() -> None:
    pod = Pod()
    first, second = pod.speeds.start(), pod.speeds.start()
    pod.now_s = 2.0
    pod.speeds.end(first, 10)
    pod.now_s = 5.0
    pod.speeds.end(second, 20)
    pod.now_s = 9.0  # Nothing is in the engine.
    last = pod.speeds.start()
    pod.now_s = 10.0
    pod.speeds.end(last, 5)
    found = {
        bound: [pod.value(bound, name) for name in ("elapsed", "finished", "finished_tokens")]
        for bound in "12"
    }
    assert found == {"1": [4.0, 2, 25], "2": [2.0, 1, 10]}


def test_failed_generations_leave_the_engine_and_are_not_summed() -> None:
    pod = Pod()
    failed = pod.speeds.start()
    pod.now_s = 1.0
    pod.speeds.end(failed, 0)
    after = pod.speeds.start()
    pod.now_s = 2.0
    pod.speeds.end(after, 7)
    assert pod.value("1", "count") == 1
    assert pod.value("1", "in_flight") == 1.0
