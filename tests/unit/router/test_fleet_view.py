"""The fleet view as values: what is read of a deployment, what is kept of it, and who may see it."""

from random import Random
from typing import Any

import pytest
from tests.support.clock import Clock

from dragoman_protocols.fleet import Sample
from dragoman_router.access.addresses import is_local
from dragoman_router.fleet.backend import DURATION_BUCKETS_S
from dragoman_router.fleet.fleet import Fleet
from dragoman_router.fleet.history import (
    KEPT,
    MAX_DEPLOYMENTS,
    STEP_S,
    TICK_S,
    FleetHistory,
    Reading,
    latest,
    quantile,
    summary,
)
from dragoman_router.fleet.queue import QueueLimits
from dragoman_router.fleet.status import Status, status
from dragoman_router.routing.deployments import Deployment, Replica

NO_DURATIONS = (0,) * (len(DURATION_BUCKETS_S) + 1)
A_MINUTE = STEP_S // TICK_S


def reading(
    time: int, characters: int = 0, durations: tuple[int, ...] = NO_DURATIONS, **fields: Any
) -> Reading:
    values: dict[str, Any] = {"ready": 1, "wanted": 1, "queued": 0, "running": 0} | fields
    return Reading(Sample(time=time, characters=characters, **values), durations)


def object_with(**fields: Any) -> dict[str, Any]:
    found = {
        "replicas": 3,
        "readyReplicas": 2,
        "desiredReplicas": 3,
        "conditions": [
            {"type": "Available", "status": "True", "reason": "ReplicasReady", "message": "2 are ready"},
            {
                "type": "Progressing",
                "status": "True",
                "reason": "ScalingUp",
                "message": "one starts",
                "observedGeneration": 3,
            },
        ],
        "scaling": {
            "rule": "Backlog",
            "reason": "118 requests wait",
            "evaluationTime": "2026-11-25T03:00:00Z",
            "signals": {"running": 8.0, "waiting": 110, "kvCacheUsage": 0.41, "replicasByLoad": 2.5},
            "changes": [
                {"time": "2026-11-25T03:00:00Z", "from": 2, "to": 3, "rule": "Backlog", "reason": "118 wait"}
            ],
            "state": "eJw=",
        },
    }
    limits = {"nvidia.com/gpu": "2", "memory": "32Gi"}
    return {"metadata": {}, "spec": {"resources": {"limits": limits}}, "status": found | fields}


def test_a_status_has_replicas_load_decisions_and_gpus() -> None:
    found = status(object_with())
    assert found is not None
    assert (found.ready, found.wanted, found.running, found.waiting) == (2, 3, 8.0, 110)
    assert (found.kv_cache_usage, found.gpus) == (0.41, 6.0)
    assert (found.state, found.message, found.degraded) == ("ScalingUp", "one starts", False)
    assert (found.scaling.rule, found.scaling.reason) == ("Backlog", "118 requests wait")
    (change,) = found.scaling.changes
    assert (change.from_, change.to, change.rule) == (2, 3, "Backlog")


def test_a_degraded_object_says_so_first() -> None:
    conditions = [
        {"type": "Available", "status": "True", "reason": "ReplicasReady"},
        {"type": "Degraded", "status": "True", "reason": "EngineFailed", "message": "no such model"},
    ]
    found = status(object_with(conditions=conditions, scaling=None))
    assert found is not None
    assert (found.state, found.message, found.degraded) == ("EngineFailed", "no such model", True)
    assert found.scaling.changes == ()


@pytest.mark.parametrize(
    "fields",
    [
        {"conditions": []},
        {"replicas": "many"},
        {"scaling": {"changes": [{"from": 1}]}},
        {"conditions": ["x"]},
    ],
)
def test_a_status_that_is_not_there_or_broken_is_none(fields: dict[str, Any]) -> None:
    assert status(object_with(**fields)) is None


@pytest.mark.parametrize("spec", [{}, {"resources": {"limits": {"memory": "1Gi"}}}])
def test_an_object_without_gpus_has_none(spec: dict[str, Any]) -> None:
    found = status(object_with() | {"spec": spec})
    assert found is not None
    assert found.gpus is None


def test_a_minute_is_its_highest_load_its_characters_and_its_percentile() -> None:
    durations = list(NO_DURATIONS)
    durations[4] = 100  # 0.1 to 0.25 s
    found = summary(
        [
            reading(0, 1000, queued=2, kv_cache_usage=0.1),
            reading(30, 1500, queued=90, running=8, kv_cache_usage=0.7),
            reading(60, 4000, tuple(durations), ready=2, wanted=3),
        ]
    )
    assert found == Sample(
        time=60,
        ready=2,
        wanted=3,
        queued=90,
        running=8,
        characters=3000,
        p95_s=0.2425,
        kv_cache_usage=0.7,
    )
    assert latest([reading(0, queued=90), reading(5)]).queued == 0


def test_counts_that_start_anew_are_not_negative() -> None:
    assert latest([reading(0, 1000), reading(60, 10)]).characters == 0


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({}, None),
        ({0: 10}, 0.0095),
        ({0: 95, 5: 5}, 0.01),
        ({0: 90, 5: 10}, 0.375),
        ({len(DURATION_BUCKETS_S): 1}, 60.0),
    ],
)
def test_quantiles_are_those_of_prometheus(counts: dict[int, int], expected: float | None) -> None:
    filled = [counts.get(each, 0) for each in range(len(DURATION_BUCKETS_S) + 1)]
    found = quantile(0.95, filled)
    assert found == (None if expected is None else pytest.approx(expected))


@pytest.fixture
async def fleet() -> Fleet:
    return Fleet(QueueLimits(10, 10, 10), Random(1))


async def test_a_sample_is_kept_each_minute_and_as_many_as_are_shown(fleet: Fleet) -> None:
    clock = Clock(1_000_000.0)
    history = FleetHistory(fleet, clock)
    backend = fleet.put(Deployment("default/one"))
    fleet.set_replicas(
        "default/one", [Replica("a", "127.0.0.1", 1), Replica("b", "127.0.0.1", 2, ready=False)]
    )
    for _ in range(A_MINUTE * 2 + 1):
        history.tick()
        backend.responses.characters += 10
        clock.now_s += TICK_S
    now, samples = history.of("default/one")
    assert [each.time - 1_000_000 for each in samples] == [0, 60, 120]
    assert [each.characters for each in samples] == [0, 120, 120]
    assert (now.ready, now.wanted, now.time) == (1, 2, int(clock.now_s))
    for _ in range(A_MINUTE * KEPT):
        history.tick()
    assert len(history.of("default/one")[1]) == KEPT


async def test_the_status_of_the_operator_comes_before_what_the_router_sees(fleet: Fleet) -> None:
    history = FleetHistory(fleet, Clock())
    fleet.put(Deployment("default/one"))
    fleet.statuses["default/one"] = Status(ready=2, wanted=3, running=8, waiting=4, gpus=6)
    now, samples = history.of("default/one")
    assert (now.ready, now.wanted, now.running, now.queued, now.gpus, samples) == (2, 3, 8, 4, 6, ())
    fleet.remove("default/one")
    assert fleet.statuses == {}


async def test_the_history_is_bounded_and_goes_with_its_deployment(fleet: Fleet) -> None:
    history = FleetHistory(fleet, Clock())
    for number in range(MAX_DEPLOYMENTS + 5):
        fleet.put(Deployment(f"default/{number}"))
    history.tick()
    kept = [key for key in fleet.backends if history.of(key)[1]]
    assert len(kept) == MAX_DEPLOYMENTS
    for key in kept[:5]:
        fleet.remove(key)
    fleet.put(Deployment(kept[0]))
    assert history.of(kept[0])[1], "until the next tick it is the same deployment"
    fleet.remove(kept[0])
    history.tick()
    fleet.put(Deployment(kept[0]))
    assert history.of(kept[0])[1] == ()


HOST = (b"host", b"127.0.0.1:8080")


@pytest.mark.parametrize(
    ("peer", "headers", "expected"),
    [
        ("127.0.0.1", [HOST], True),
        ("::1", [(b"host", b"[::1]:8080")], True),
        ("127.0.0.1", [(b"host", b"LOCALHOST")], True),
        ("::ffff:127.0.0.1", [HOST], True),
        ("::ffff:10.0.0.7", [HOST], False),
        ("10.0.0.7", [HOST], False),
        ("127.0.0.1", [], False),
        ("127.0.0.1", [(b"host", b"rebound.example.org")], False),
        ("127.0.0.1", [(b"host", b"localhost.example.org")], False),
        ("127.0.0.1", [HOST, (b"host", b"rebound.example.org")], False),
        ("127.0.0.1", [HOST, (b"x-forwarded-for", b"127.0.0.1")], False),
        ("127.0.0.1", [HOST, (b"forwarded", b"for=127.0.0.1")], False),
        ("", [HOST], False),
    ],
)
def test_a_local_request_comes_over_loopback_for_a_host_of_loopback(
    peer: str, headers: list[tuple[bytes, bytes]], expected: bool
) -> None:
    assert is_local(peer, headers) is expected
