"""The fleet request by request, against what can be computed by hand."""

import pytest

from dragoman_simulate.exact import Arrival, served_by
from dragoman_simulate.speed import SpeedTable

POD = SpeedTable("by hand", (1.0, 2.0), (10.0, 20.0), 1000, ms_per_request=(100.0, 200.0), overhead_ms=5.0)


def latencies(arrivals, replicas=1, seats=2):
    served = served_by(arrivals, replicas, seats, POD)
    return [(one.arrival.at_s, pytest.approx(one.latency_s), pytest.approx(one.wait_s)) for one in served]


def test_one_request_takes_its_own_time_and_that_of_its_tokens():
    assert latencies([Arrival(3.0, 50.0)]) == [(3.0, 0.1 + 0.5 + 0.005, 0.0)]


def test_two_requests_slow_each_other():
    # 0.2 s beside the tokens, 50 tokens at 20 ms; then 10 more alone at 10 ms.
    assert latencies([Arrival(0.0, 50.0), Arrival(0.0, 60.0)]) == [(0.0, 1.205, 0.0), (0.0, 1.305, 0.0)]


def test_a_request_waits_for_a_slot():
    arrivals = [Arrival(0.0, 50.0), Arrival(0.1, 10.0)]
    assert latencies(arrivals, seats=1) == [(0.0, 0.605, 0.0), (0.1, 0.705, 0.5)]


def test_another_replica_takes_what_one_would_queue():
    arrivals = [Arrival(0.0, 50.0), Arrival(0.0, 50.0)]
    assert latencies(arrivals, replicas=2, seats=1) == [(0.0, 0.605, 0.0), (0.0, 0.605, 0.0)]


def test_a_late_request_finds_the_time_beside_the_tokens_slowed_by_those_that_run():
    # Alone until 0.3: 20 tokens written; then 0.2 s of both: 10 more; 20 at 20 ms are left, while the second writes 20.
    first, second = latencies([Arrival(0.0, 50.0), Arrival(0.3, 40.0)])
    assert first == (0.0, 0.3 + 0.6 + 0.005, 0.0)
    assert second == (0.3, 0.6 + 20 * 0.01 + 0.005, 0.0)


def test_every_request_is_served_once():
    arrivals = [Arrival(0.01 * number, 5.0 + number % 7) for number in range(500)]
    assert sorted(one.arrival for one in served_by(arrivals, 3, 4, POD)) == sorted(arrivals)
