"""A table of speeds from a pod's metrics: what is known of the pod is found again."""

import random

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from tests.support.clock import Clock

from dragoman_service.http.speeds import Generation, Speeds
from dragoman_simulate.calibrate import calibrated, joined, read_page
from dragoman_simulate.errors import MetricsPageError
from dragoman_simulate.exact import Arrival, Replica
from dragoman_simulate.speed import SpeedTable

SEATS = 16
POD = SpeedTable("true", (1.0, 8.0, 16.0), (10.0, 14.0, 20.0), 1000, ms_per_request=(40.0, 80.0, 120.0))


def page_of(in_flight, generations=400, lengths=(10, 200)):
    """The metrics of a pod of speed `POD`, with so many generations in its engine at all times."""
    clock, registry = Clock(0.0), CollectorRegistry()
    speeds = Speeds(registry, "m", clock)
    draw = random.Random(1)
    started: dict[Arrival, Generation] = {}

    def send():
        arrival = Arrival(clock.now_s + 1e-9 * len(started), float(draw.randint(*lengths)))
        started[arrival] = speeds.start(SEATS)
        replica.arrive(arrival, clock.now_s)

    def served(one):
        finished.append(one.arrival)

    finished: list[Arrival] = []
    replica = Replica(0.0, SEATS, POD, served)
    for _ in range(in_flight):
        send()
    done = 0
    while done < generations:
        clock.now_s += 0.005
        replica.advance(clock.now_s)
        while finished:
            arrival = finished.pop()
            speeds.end(started[arrival], int(arrival.tokens))
            done += 1
            send()
    return generate_latest(registry).decode()


def test_the_speed_of_a_pod_is_found_again():
    pages = [read_page(page_of(in_flight), "a pod") for in_flight in (1, 8, 16)]
    table = calibrated(joined(pages), "found")
    for running in (1, 8, 16):
        assert table.tokens_per_s(running) == pytest.approx(POD.tokens_per_s(running), rel=0.05)
        for tokens in (20, 100):
            found_s = table.request_s(running) + tokens / table.tokens_per_s(running)
            true_s = POD.request_s(running) + tokens / POD.tokens_per_s(running)
            assert found_s == pytest.approx(true_s, rel=0.05)


def capacity_per_s(table):
    """Requests of 105 output tokens that all slots together finish a second."""
    return SEATS / (table.request_s(SEATS) + 105 / table.tokens_per_s(SEATS))


def test_generations_that_were_queued_count_for_the_time_that_they_ran():
    early, late = (read_page(page_of(40, generations), "a pod") for generations in (100, 900))
    table = calibrated(late.since(early), "found")
    assert table.running == (SEATS,)
    assert capacity_per_s(table) == pytest.approx(capacity_per_s(POD), rel=0.05)


def test_answers_of_one_length_have_all_their_time_in_their_tokens():
    table = calibrated(read_page(page_of(in_flight=8, lengths=(64, 64)), "a pod"), "found")
    assert table.ms_per_request == (0.0,)
    assert table.ms_per_token[0] == pytest.approx(14 + 80 / 64, rel=0.05)


def test_only_what_was_measured_after_an_earlier_page_counts():
    early, late = read_page(page_of(8, 100), "a pod"), read_page(page_of(8, 400), "a pod")
    (sums,) = late.since(early).speeds.values()
    assert sums["count"] == 300


def test_speeds_never_fall_as_more_run():
    slow = (
        page_of(1)
        .replace('sum="seconds"} ', 'sum="seconds"} 9')
        .replace('"token_seconds"} ', '"token_seconds"} 9')
    )
    table = calibrated(joined([read_page(slow, "a pod"), read_page(page_of(8), "a pod")]), "found")
    assert list(table.ms_per_token) == sorted(table.ms_per_token)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("vllm:num_requests_running 3\n", "a pod: no dragoman_generation_sums_total"),
        ("dragoman_generation_sums_total{running=\n", "a pod: no metrics in Prometheus' text format"),
    ],
)
def test_a_page_without_speeds_is_refused(text, problem):
    with pytest.raises(MetricsPageError, match=problem):
        read_page(text, "a pod")


def test_a_pod_that_has_measured_too_little_is_refused():
    with pytest.raises(
        MetricsPageError, match="3 generations were measured and 20 under a similar load are needed"
    ):
        calibrated(read_page(page_of(2, 3), "a pod"), "found")
