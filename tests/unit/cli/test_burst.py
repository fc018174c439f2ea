"""The demo's burst: which requests are counted as lost."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest

from dragoman import burst as module
from dragoman.burst import burst
from dragoman.cluster import RefusedForLoad
from dragoman.sentences import Sentence

WANTED = [Sentence("en", "de", "One.", "Eins."), Sentence("en", "de", "Two.", "Zwei.")]


class Cluster:
    """Scales up once enough is in flight, and down once little is."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.in_flight = self.max_in_flight = 0
        self.replicas = 1

    async def translate(self, request: dict[str, str]) -> str:
        if self.failures:
            raise self.failures.pop()
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        await asyncio.sleep(0.01)
        self.in_flight -= 1
        return "Eins."

    async def status(self) -> dict[str, Any]:
        if self.max_in_flight >= 20:
            self.replicas = 2
        change = {"from": 1, "to": 2, "rule": "Load", "reason": "2 replicas: busy"}
        scaling = {"changes": [change] if self.replicas == 2 else [], "signals": {"waiting": 12.0}}
        return {"desiredReplicas": self.replicas, "readyReplicas": self.replicas, "scaling": scaling}

    async def loading(self) -> list[str]:
        return ["a: ready"]

    async def pods(self) -> list[str]:
        return ["a"] if self.in_flight <= module.AFTERWARDS else ["a", "b"]


class Starting(Cluster):
    """Its second pod is ready after some phases."""

    def __init__(self, *phases: str) -> None:
        super().__init__()
        self.phases = iter(phases)
        self.started = False
        self.in_flight_meanwhile: list[int] = []

    async def status(self) -> dict[str, Any]:
        return await super().status() | {"readyReplicas": 2 if self.started else 1}

    async def loading(self) -> list[str]:
        self.in_flight_meanwhile.append(self.in_flight)
        phase = next(self.phases, None)
        self.started = phase is None
        return ["a: ready 100%", f"b: {phase or 'ready 100%'}"]


class Keeping(Cluster):
    """Keeps the second pod while there is another reason."""

    def __init__(self, *reasons: str) -> None:
        super().__init__()
        self.reasons = iter(reasons)
        self.reason: str | None = ""

    async def status(self) -> dict[str, Any]:
        status = await super().status()
        status["scaling"]["reason"] = self.reason
        return status

    async def pods(self) -> list[str]:
        self.reason = next(self.reasons, None)
        return ["a"] if self.reason is None else ["a", "b"]


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("POLL_S", "SERVED_BY_ALL_S", "RETRY_S"):
        monkeypatch.setattr(module, name, 0.01)


async def played(cluster: Cluster, in_flight: int = 20) -> tuple[module.Tally, list[str]]:
    lines: list[str] = []
    tally = await burst(cluster, WANTED, in_flight, 5.0, lines.append)  # type: ignore[arg-type]
    return tally, lines


async def test_burst_scales_up_and_down_and_loses_nothing() -> None:
    cluster = Cluster()
    tally, lines = await played(cluster)
    assert (tally.lost, tally.replicas_max) == (0, 2)
    assert tally.answered >= 20
    assert cluster.in_flight == 0
    assert "1 → 2 replicas (Load; 12 requests wait in the engines): 2 replicas: busy" in lines


async def test_each_phase_of_the_second_pod_s_start_is_reported_once() -> None:
    _, lines = await played(Starting("resolving", "loading", "loading", "warming-up"))
    assert [line for line in lines if line[:3] in ("a: ", "b: ")] == [
        "b: resolving",
        "b: loading",
        "b: warming-up",
    ]


async def test_few_requests_are_in_flight_while_the_second_pod_starts() -> None:
    cluster = Starting("resolving", *["loading"] * 10)
    await played(cluster, in_flight=40)
    assert cluster.in_flight_meanwhile[-1] == module.AFTERWARDS


async def test_during_a_slow_start_the_load_goes_on_to_require_the_second_pod(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "SLOW_START_S", 0.05)
    cluster = Starting("resolving", *["loading"] * 20)
    _, lines = await played(cluster, in_flight=40)
    assert cluster.in_flight_meanwhile[-1] == module.DURING_SLOW_START > 16
    assert "the other pod starts slowly; 20 sentences at once until it is ready" in lines
    assert cluster.in_flight == 0


async def test_the_end_of_the_second_pod_is_waited_for_with_a_message() -> None:
    cluster = Keeping("high load", "ScaleDown", "ScaleDown")
    wanted = cluster.status

    async def status() -> dict[str, Any]:
        return await wanted() | ({"desiredReplicas": 1} if cluster.reason == "ScaleDown" else {})

    cluster.status = status  # type: ignore[method-assign]
    _, lines = await played(cluster)
    assert lines[-3:] == [
        "waiting for the scale-down: high load",
        "the other pod completes its requests and ends",
        "1 replica is left",
    ]


async def test_each_reason_why_there_is_no_scale_down_yet_is_reported_once() -> None:
    _, lines = await played(Keeping("kept for bursts", "kept for bursts", "high load"))
    assert lines[-3:] == [
        "waiting for the scale-down: kept for bursts",
        "waiting for the scale-down: high load",
        "1 replica is left",
    ]


async def test_refusals_for_load_are_retried_and_other_errors_are_lost() -> None:
    failures = (RefusedForLoad("429"), aiohttp.ServerDisconnectedError(), RuntimeError("503: draining"))
    tally, _ = await played(Cluster(*failures))
    assert tally.lost == 2
    assert "draining" in tally.first_loss


async def test_replicas_that_do_not_follow_are_waited_for_no_longer_than_the_timeout() -> None:
    with pytest.raises(TimeoutError):
        await burst(Cluster(), WANTED, 2, 0.2, lambda _: None)  # type: ignore[arg-type]
