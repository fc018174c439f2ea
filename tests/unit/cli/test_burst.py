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

    async def pods(self) -> list[str]:
        return ["a"] if self.in_flight <= module.AFTERWARDS else ["a", "b"]


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
