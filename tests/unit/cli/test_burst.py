"""The demo's burst: what it sends, says and waits for, and which requests are counted as lost."""

import asyncio
from collections.abc import Iterable
from typing import Any

import aiohttp
import pytest

from dragoman import burst as module
from dragoman.burst import BurstError, burst
from dragoman.cluster import RefusedForLoad
from dragoman.sentences import Sentence

WANTED = [Sentence("en", "de", "One.", "Eins."), Sentence("en", "de", "Two.", "Zwei.")]


class Cluster:
    """Desires a second pod once `enough` requests are in flight; the pod is ready after its phases.

    Args:
        failures: Raised by the first requests.
        phases: Of the second pod's start; the start named `cancelled` ends there, and few requests were in flight.
        reasons: Why there is no scale-down yet, one for each look.
        enough: More requests than one pod takes.
    """

    def __init__(
        self,
        failures: Iterable[Exception] = (),
        phases: Iterable[str] = (),
        reasons: Iterable[str] = (),
        enough: int = 20,
    ) -> None:
        self.failures, self.phases, self.reasons = list(failures), iter(phases), iter(reasons)
        self.enough = enough
        self.in_flight = 0
        self.desired = self.ready = 1
        self.reason: str | None = "1 replica: little load"
        self.in_flight_at_starts: list[int] = []
        self.in_flight_meanwhile: list[int] = []
        self.conditions: list[dict[str, str]] = []

    async def translate(self, request: dict[str, str]) -> str:
        if self.failures:
            raise self.failures.pop()
        self.in_flight += 1
        if self.in_flight >= self.enough and self.desired == 1:
            self.desired = 2
            self.in_flight_at_starts.append(self.in_flight)
        await asyncio.sleep(0.01)
        self.in_flight -= 1
        return "Eins."

    async def status(self) -> dict[str, Any]:
        change = {"from": 1, "to": 2, "rule": "Load", "reason": "2 replicas: busy"}
        scaling = {
            "changes": [change] if self.desired == 2 else [],
            "signals": {"waiting": 12.0},
            "reason": self.reason,
        }
        return {
            "desiredReplicas": self.desired,
            "readyReplicas": self.ready,
            "scaling": scaling,
            "conditions": self.conditions,
        }

    async def loading(self) -> list[str]:
        if self.desired == 1:
            return ["a: ready"]
        self.in_flight_meanwhile.append(self.in_flight)
        phase = next(self.phases, None)
        if phase == "cancelled":
            self.desired = 1
            self.enough = 10**6
            asyncio.get_running_loop().call_later(0.05, setattr, self, "enough", 30)
            return ["a: ready"]
        if phase is None:
            self.ready = 2
        return ["a: ready 100%", f"b: {phase or 'ready 100%'}"]

    async def pods(self) -> list[str]:
        self.reason = next(self.reasons, None)
        return ["a"] if self.reason is None and self.in_flight <= module.AFTERWARDS else ["a", "b"]


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("POLL_S", "SERVED_BY_ALL_S", "RETRY_S"):
        monkeypatch.setattr(module, name, 0.01)


async def played(cluster: Cluster, in_flight: int = 40) -> tuple[module.Tally, list[str]]:
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
    _, lines = await played(Cluster(phases=("resolving", "loading", "loading", "warming-up")))
    assert [line for line in lines if line[:3] in ("a: ", "b: ")] == [
        "b: resolving",
        "b: loading",
        "b: warming-up",
    ]


async def test_few_requests_are_in_flight_while_the_second_pod_starts() -> None:
    cluster = Cluster(phases=("resolving", *["loading"] * 10))
    await played(cluster)
    assert cluster.in_flight_meanwhile[-1] == module.AFTERWARDS


async def test_during_a_slow_start_the_load_goes_on_to_require_the_second_pod(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "SLOW_START_S", 0.05)
    cluster = Cluster(phases=("resolving", *["loading"] * 20))
    _, lines = await played(cluster)
    assert cluster.in_flight_meanwhile[-1] == module.DURING_SLOW_START > 16
    assert "the other pod starts slowly; 20 sentences at once until it is ready" in lines
    assert cluster.in_flight == 0


async def test_after_a_cancelled_start_the_burst_is_repeated_and_goes_on_until_the_pod_is_ready() -> None:
    cluster = Cluster(phases=("resolving", "loading", "cancelled", "resolving", *["loading"] * 10))
    tally, lines = await played(cluster)
    assert (tally.replicas_max, len(cluster.in_flight_at_starts)) == (2, 2)
    assert cluster.in_flight_meanwhile[-1] > module.DURING_SLOW_START
    assert (
        "the start of the other pod was cancelled (1 replica: little load); the burst again, 40 sentences at once "
        "until the pod is ready" in lines
    )


async def test_after_three_cancelled_starts_the_reason_is_told() -> None:
    phases = ["loading", "cancelled"] * 3
    with pytest.raises(BurstError, match=r"3 starts .* cancelled, at last because: 1 replica: little load"):
        await played(Cluster(phases=phases))


async def test_without_a_scale_up_it_says_what_it_waits_for_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SCALE_UP_S", 0.45)
    monkeypatch.setattr(module, "REPEAT_S", 0.02)
    cluster = Cluster(enough=10**6)
    lines: list[str] = []
    with pytest.raises(
        BurstError, match=r"no scale-up after 0 s of 40 sentences at once: 1 replica: little load"
    ):
        await burst(cluster, WANTED, 40, 5.0, lines.append)  # type: ignore[arg-type]
    assert lines.count("waiting for the scale-up: 1 replica: little load") >= 2
    assert cluster.in_flight == 0


async def test_a_pod_that_cannot_start_ends_it_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DEGRADED_S", 0.1)
    cluster = Cluster(phases=["resolving"] * 10**6)
    cluster.conditions = [{"type": "Degraded", "status": "True", "message": "no CPU is left for b"}]
    with pytest.raises(BurstError, match="no CPU is left for b"):
        await played(cluster)


async def test_the_end_of_the_second_pod_is_waited_for_with_a_message() -> None:
    cluster = Cluster(reasons=("high load", "ScaleDown", "ScaleDown"))
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
    _, lines = await played(Cluster(reasons=("kept for bursts", "kept for bursts", "high load")))
    assert lines[-3:] == [
        "waiting for the scale-down: kept for bursts",
        "waiting for the scale-down: high load",
        "1 replica is left",
    ]


async def test_refusals_for_load_are_retried_and_other_errors_are_lost() -> None:
    failures = (RefusedForLoad("429"), aiohttp.ServerDisconnectedError(), RuntimeError("503: draining"))
    tally, _ = await played(Cluster(failures))
    assert tally.lost == 2
    assert "draining" in tally.first_loss


async def test_a_start_is_waited_for_no_longer_than_the_timeout() -> None:
    with pytest.raises(BurstError, match=r"the other pod is not ready after 0 s: b: loading"):
        await burst(Cluster(phases=["loading"] * 10**6), WANTED, 40, 0.2, lambda _: None)  # type: ignore[arg-type]
