"""Pods as replicas: which count, how long they took to start, and what the decision is shown of them."""

from __future__ import annotations

from typing import Any

from dragoman_operator.core.autoscale import ReplicaSample
from dragoman_operator.core.engine_pods import EnginePod, Starts, engine_pods, samples_of
from dragoman_operator.core.leaving import MOST, deletion_costs
from dragoman_operator.core.observed import Key
from dragoman_operator.core.router_load import TotalLoad

T0 = 1_767_323_045.0  # 2026-01-02T03:04:05Z


def manifest(name: str, ready: bool = True, **changes: Any) -> dict[str, Any]:
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "creationTimestamp": "2026-01-02T03:04:05Z",
        "labels": {"dragoman.io/deployment": "demo"},
    }
    condition = {
        "type": "Ready",
        "status": str(ready),
        "lastTransitionTime": "2026-01-02T03:04:35Z",
    }
    status = {"phase": "Running", "podIP": "127.0.0.9", "conditions": [condition]}
    return {"metadata": metadata | changes.pop("metadata", {}), "status": status | changes}


def pod(name: str, ready: bool = True, start_s: float = 30.0, restarts: int = 0) -> EnginePod:
    return EnginePod(f"uid-{name}", "default", name, "demo", "127.0.0.9", ready, T0, T0 + start_s, restarts)


def test_pod_as_it_is_read() -> None:
    (found,) = engine_pods([manifest("a")])
    assert found == pod("a")
    assert found.key == Key("default", "demo")


def test_pods_that_end_or_have_ended_do_not_count() -> None:
    going = manifest("a", metadata={"deletionTimestamp": "2026-01-02T03:05:00Z"})
    assert engine_pods([going, manifest("b", phase="Failed"), manifest("c", phase="Succeeded")]) == []


def test_pod_that_nobody_has_placed_yet() -> None:
    new = manifest("a")
    new["status"] = {}
    (found,) = engine_pods([new])
    assert (found.address, found.ready, found.changed_s) == ("", False, T0)


def test_time_to_ready_is_the_median_of_the_last_starts() -> None:
    starts = Starts(before=77.0)
    assert starts.time_to_ready_s == 77.0
    starts = starts.seen([pod("a", start_s=20), pod("b", start_s=30), pod("c", start_s=900)])
    assert starts.time_to_ready_s == 30
    assert starts.seen([pod("a", start_s=5000)]) is starts
    more = starts.seen([pod(str(number), start_s=40 + number) for number in range(5)])
    assert more.time_to_ready_s == 42
    assert len(more.measured) == 5


def test_restarted_or_unready_pods_say_nothing_of_a_start() -> None:
    assert Starts().seen([pod("a", restarts=1), pod("b", ready=False)]).time_to_ready_s is None


def test_samples_count_what_is_asked_for_and_not_there() -> None:
    heard = {"uid-a": ReplicaSample(T0, 1.0, 2.0)}
    pods = [pod("a"), pod("b"), pod("c", ready=False, start_s=10)]
    load = TotalLoad(held=3, silent=1)
    samples = samples_of(5, T0 + 50, pods, heard, load, 30.0, T0 + 60)
    assert samples.replicas == (heard["uid-a"], ReplicaSample(None))
    assert (samples.desired, samples.pending, samples.pending_s) == (5, 3, 50.0)
    assert (samples.held, samples.silent_routers, samples.time_to_ready_s) == (3.0, 1, 30.0)


def test_more_pods_than_desired_are_starting_in_a_rollout() -> None:
    samples = samples_of(1, T0, [pod("a"), pod("b", ready=False)], {}, TotalLoad(), None, T0 + 60)
    assert (samples.pending, samples.pending_s) == (1, 30.0)


def test_the_least_busy_pod_is_the_cheapest_and_the_silent_one_the_dearest() -> None:
    heard = {
        "uid-a": ReplicaSample(T0, 2.0, 5.0),
        "uid-b": ReplicaSample(T0, 1.0, 0.0),
        "uid-c": ReplicaSample(None),
    }
    costs = deletion_costs([pod("a"), pod("b"), pod("c"), pod("d")], heard)
    assert costs == {"a": 7, "b": 1, "c": MOST, "d": MOST}
