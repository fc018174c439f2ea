"""Pods as replicas: which count, how long they took to start, and what the decision is shown of them."""

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.support.deployments import running_pod

from dragoman_operator.autoscaling.decision.values import ReplicaSample
from dragoman_operator.autoscaling.inputs import samples_of
from dragoman_operator.autoscaling.starts import Starts
from dragoman_operator.autoscaling.writes import MAX_COST, deletion_cost
from dragoman_operator.observed.snapshot import EnginePod, engine_pods
from dragoman_operator.scraping.values import EngineMetrics, Reading, TotalLoad

LONGEST_S = 900.0
T0 = 1_767_323_045.0  # 2026-01-02T03:04:05Z


def pod(name: str, ready: bool = True, start_s: float = 30.0, restarts: int = 0) -> EnginePod:
    return EnginePod(f"uid-{name}", "default", name, "127.0.0.9", ready, T0, T0 + start_s, restarts)


def test_pod_as_it_is_read() -> None:
    (found,) = engine_pods([running_pod("a")])
    assert found == pod("a")


def test_pods_that_end_or_have_ended_do_not_count() -> None:
    going = running_pod("a", metadata={"deletionTimestamp": "2026-01-02T03:05:00Z"})
    assert engine_pods([going, running_pod("b", phase="Failed"), running_pod("c", phase="Succeeded")]) == []


def test_pod_that_is_not_scheduled_yet() -> None:
    new = running_pod("a")
    new["status"] = {}
    (found,) = engine_pods([new])
    assert (found.address, found.ready, found.changed_s) == ("", False, T0)


def test_time_to_ready_is_the_median_of_the_last_starts() -> None:
    starts = Starts()
    assert starts.time_to_ready_s is None
    starts = starts.seen([pod("a", start_s=20), pod("b", start_s=30), pod("c", start_s=900)], LONGEST_S)
    assert starts.time_to_ready_s == 30
    later = [
        replace(pod(str(n), start_s=40 + n), created_s=T0 + 100, changed_s=T0 + 140 + n) for n in range(5)
    ]
    more = starts.seen(later, LONGEST_S)
    assert more.time_to_ready_s == 42
    assert len(more.measured) == 5


def test_restarted_or_unready_pods_are_not_measured() -> None:
    starts = Starts().seen([pod("a", restarts=1), pod("b", ready=False)], LONGEST_S)
    assert starts.time_to_ready_s is None


def test_start_that_waited_for_something_else_is_left_out() -> None:
    assert Starts().seen([pod("a", start_s=LONGEST_S + 1), pod("b", start_s=-5)], LONGEST_S).measured == ()


@pytest.mark.parametrize("restarted", [False, True], ids=["same operator", "another operator"])
def test_pod_that_becomes_ready_again_is_not_measured_again(restarted: bool) -> None:
    """Its status has only the latest transition; more pods than starts that are kept."""
    pods = [pod(str(number)) for number in range(8)]
    starts = Starts().seen([replace(each, ready=False) for each in pods], LONGEST_S).seen(pods, LONGEST_S)
    assert starts.time_to_ready_s == 30
    for flaps in range(8):
        flapped = [replace(each, changed_s=T0 + 300) for each in pods[: flaps + 1]]
        if restarted:
            stored = json.loads(json.dumps(starts.to_fields()))
            starts = Starts.from_fields(stored, LONGEST_S, T0 + 400)
        unready = [replace(each, ready=False) for each in flapped]
        starts = starts.seen(unready, LONGEST_S).seen([*flapped, *pods[flaps + 1 :]], LONGEST_S)
    assert starts.time_to_ready_s == 30


def test_pod_that_starts_while_operators_change_is_measured() -> None:
    starting = Starts().seen([pod("a", ready=False)], LONGEST_S)
    starts = Starts.from_fields(json.loads(json.dumps(starting.to_fields())), LONGEST_S, T0 + 400)
    assert starts.seen([pod("a", start_s=50)], LONGEST_S).time_to_ready_s == 50


@pytest.mark.parametrize(
    "fields",
    [
        None,
        "odd",
        {"measured": [259_198.0, -3, "x"], "newest_s": 1e300, "starting": 5},
        {"measured": None, "newest_s": None, "starting": [1, None]},
    ],
)
def test_starts_that_are_not_plausible_are_not_read_back(fields: Any) -> None:
    starts = Starts.from_fields(fields, LONGEST_S, T0 + 1000)
    assert starts.time_to_ready_s is None
    assert starts.newest_s <= T0 + 1000


def test_samples_count_desired_replicas_without_a_pod() -> None:
    scraped = {"uid-a": Reading(EngineMetrics(T0, 1.0, 2.0))}
    pods = [pod("a"), pod("b"), pod("c", ready=False, start_s=10)]
    load = TotalLoad(queued=3, not_reporting=1)
    samples = samples_of(5, T0 + 50, pods, scraped, load, Starts((30.0,)), T0 + 60)
    assert samples.replicas == (ReplicaSample(T0, 1.0, 2.0), ReplicaSample(None))
    assert (samples.desired, samples.pending, samples.pending_s) == (5, 3, 50.0)
    assert (samples.queued, samples.routers_not_reporting, samples.time_to_ready_s) == (3.0, 1, 30.0)


def test_more_pods_than_desired_are_starting_in_a_rollout() -> None:
    samples = samples_of(1, T0, [pod("a"), pod("b", ready=False)], {}, TotalLoad(), Starts(), T0 + 60)
    assert (samples.pending, samples.pending_s) == (1, 30.0)


def test_starts_may_be_cancelled_of_pods_that_were_never_ready_and_not_in_a_rollout() -> None:
    pods = [pod("a"), replace(pod("b"), ready=False), replace(pod("c"), ready=False)]
    starts = Starts(starting=frozenset({"uid-c"}))
    assert samples_of(3, T0, pods, {}, TotalLoad(), starts, T0 + 60).cancellable == 1
    rollout = [replace(pods[0], template="old"), *pods[1:]]
    assert samples_of(3, T0, rollout, {}, TotalLoad(), starts, T0 + 60).cancellable == 0


def test_deletion_cost_is_the_number_of_requests_and_the_maximum_without_metrics() -> None:
    readings = [Reading(EngineMetrics(T0, 2.0, 5.0)), Reading(EngineMetrics(T0, 1.0, 0.0)), None]
    assert [deletion_cost(reading) for reading in readings] == [7, 1, MAX_COST]


def with_labels(labels: Any) -> dict[str, Any]:
    return running_pod("x", metadata={"labels": labels})


MALFORMED: dict[str, dict[str, Any]] = {
    "no labels": with_labels(None),
    "no deployment label": with_labels({"app.kubernetes.io/part-of": "dragoman"}),
    "empty deployment label": with_labels({"dragoman.io/deployment": ""}),
    "no metadata": {"status": {"phase": "Running"}},
    "no time of creation": running_pod("x", metadata={"creationTimestamp": None}),
    "odd time of creation": running_pod("x", metadata={"creationTimestamp": "yesterday"}),
    "odd condition": running_pod("x", conditions=["Ready"]),
    "odd status": {**running_pod("x"), "status": ["Running"]},
    "odd restarts": running_pod("x", containerStatuses=[{"restartCount": "many"}]),
}


@pytest.mark.parametrize("pod", MALFORMED.values(), ids=MALFORMED)
def test_malformed_pod_is_no_replica_and_no_failure(pod: dict[str, Any]) -> None:
    assert [found.name for found in engine_pods([pod, running_pod("a")])] == ["a"]
