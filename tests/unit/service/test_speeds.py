"""The sums by which a pod reports its speed."""

from prometheus_client import CollectorRegistry

from dragoman_service.http.speeds import Speeds


class Pod:
    def __init__(self) -> None:
        self.now_s = 0.0
        self.registry = CollectorRegistry()
        self.speeds = Speeds(self.registry, "m", lambda: self.now_s)

    def value(self, bound: str, name: str) -> float | None:
        labels = {"model_name": "m", "running": bound, "sum": name}
        return self.registry.get_sample_value("dragoman_generation_sums_total", labels)


def test_a_generation_is_counted_by_the_mean_number_that_ran_meanwhile() -> None:
    pod = Pod()
    first = pod.speeds.start(8)
    pod.now_s = 1.0
    second = pod.speeds.start(8)
    pod.now_s = 2.0
    pod.speeds.end(first, 10)  # 1 for a second, then 2.
    pod.now_s = 3.0
    pod.speeds.end(second, 20)  # 2 for a second, then 1.
    sums = {name: pod.value("2", name) for name in ("count", "running", "seconds", "tokens")}
    assert sums == {"count": 2, "running": 3.0, "seconds": 4.0, "tokens": 30}
    assert pod.value("2", "tokens_squared") == 500
    assert pod.value("2", "token_seconds") == 60
    assert pod.value("1", "count") is None


def test_a_number_at_a_bound_is_within_it_and_a_large_one_has_the_last() -> None:
    pod = Pod()
    started = [pod.speeds.start(2000) for _ in range(1100)]
    pod.now_s = 0.1
    pod.speeds.end(started.pop(), 1)
    for each in started[8:]:
        pod.speeds.end(each, 0)
    assert pod.value("+Inf", "count") == 1
    for each in started[:8]:
        pod.speeds.end(each, 0)
    started = [pod.speeds.start(2000) for _ in range(8)]
    pod.now_s = 0.2
    pod.speeds.end(started[0], 1)
    assert pod.value("8", "count") == 1


def test_the_wait_for_a_slot_is_no_part_of_the_duration() -> None:
    pod = Pod()
    first, second, third = (pod.speeds.start(1) for _ in range(3))
    pod.now_s = 1.0
    pod.speeds.end(first, 10)
    pod.now_s = 3.0
    pod.speeds.end(second, 20)
    pod.now_s = 6.0
    pod.speeds.end(third, 30)
    found = [pod.value("1", name) for name in ("count", "running", "seconds", "tokens")]
    assert found == [3, 3.0, 6.0, 60]


def test_a_generation_that_is_cancelled_while_it_waits_gives_its_place_to_the_next() -> None:
    pod = Pod()
    first, second, third = (pod.speeds.start(1) for _ in range(3))
    pod.now_s = 1.0
    pod.speeds.end(second, 0)
    pod.now_s = 2.0
    pod.speeds.end(first, 10)
    pod.now_s = 3.0
    pod.speeds.end(third, 10)
    assert pod.value("1", "seconds") == 3.0


def test_failed_generations_leave_the_engine_and_are_not_summed() -> None:
    pod = Pod()
    failed = pod.speeds.start(8)
    pod.now_s = 1.0
    pod.speeds.end(failed, 0)
    after = pod.speeds.start(8)
    pod.now_s = 2.0
    pod.speeds.end(after, 7)
    assert pod.value("1", "count") == 1
    assert pod.value("1", "running") == 1.0
