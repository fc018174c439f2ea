"""Of several candidates one leads, even if they miss events: with an API server in memory and a clock of our own."""

import asyncio
import random
from collections.abc import Callable
from typing import Any, NoReturn

import pytest
from tests.support.fake_cluster import FakeCluster

from dragoman_kube.client import KubeClient
from dragoman_kube.errors import ConflictError, UnavailableError, WriteForbiddenError
from dragoman_kube.kinds import Kind
from dragoman_kube.objects import Key
from dragoman_operator.controller.leadership import Leadership
from dragoman_operator.settings import Settings

DURATION_S, DEADLINE_S = 15.0, 10.0


class Line:
    """One candidate's connection to the cluster; `up` is false while it is cut."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster
        self.up = True
        self.attempts = 0
        self.before_write: Callable[[], None] = lambda: None

    def _check(self) -> None:
        if not self.up:
            raise UnavailableError("reach the API server", "cut")

    async def get(self, kind: Kind, key: Key) -> dict[str, Any] | None:
        self.attempts += 1
        self._check()
        await asyncio.sleep(0)
        return await self._cluster.get(kind, key)

    async def create(self, kind: Kind, manifest: dict[str, Any]) -> dict[str, Any]:
        self._check()
        return await self._cluster.create(kind, manifest)

    async def replace(self, kind: Kind, manifest: dict[str, Any]) -> dict[str, Any]:
        self._check()
        self.before_write()
        return await self._cluster.replace(kind, manifest)


def lease_of(cluster: FakeCluster) -> dict[str, Any]:
    """The stored Lease itself."""
    (found,) = cluster.objects.values()
    return found


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Lost(BaseException):
    """Instead of the end of the process."""


def lost(reason: str) -> NoReturn:
    raise Lost(reason)


def candidate(
    cluster: FakeCluster, clock: Clock, identity: str, retry_s: float = 0.01
) -> tuple[Leadership, Line]:
    line, settings = Line(cluster), Settings(identity=identity, lease_duration_s=15, lease_retry_s=retry_s)
    return Leadership(line, settings, "ns", clock=clock, lost=lost), line  # type: ignore[arg-type]


async def test_first_operator_leads_and_the_other_waits_for_its_lease_to_expire() -> None:
    cluster, clock = FakeCluster(), Clock()
    (first, line), (second, _) = candidate(cluster, clock, "first"), candidate(cluster, clock, "second")
    assert await first._attempt()
    assert not await second._attempt()
    assert (first.holds(), second.holds()) == (True, False)
    line.up = False
    clock.now += DEADLINE_S
    assert not first.holds()
    assert not await second._attempt()
    clock.now += DURATION_S - DEADLINE_S
    assert await second._attempt()
    line.up = True
    assert not await first._attempt()
    assert first.write_budget_s() == 0


async def test_budget_of_a_write_ends_before_the_lease() -> None:
    cluster, clock = FakeCluster(), Clock()
    leader, _ = candidate(cluster, clock, "me")
    assert leader.write_budget_s() == 0
    await leader.acquire()
    assert leader.write_budget_s() == DURATION_S
    clock.now += 9
    assert leader.write_budget_s() == DURATION_S - 9
    clock.now += 1
    with pytest.raises(Lost, match="not renewed for 10 s"):
        leader.write_budget_s()


@pytest.mark.parametrize("seed", range(20))
async def test_two_never_hold_at_once(seed: int) -> None:
    chance, cluster, clock = random.Random(seed), FakeCluster(), Clock()
    candidates = [candidate(cluster, clock, name) for name in ("a", "b", "c")]
    led = set()
    for _ in range(1500):
        clock.now += chance.uniform(0, 3)
        leadership, line = chance.choice(candidates)
        line.up = chance.random() < 0.6
        try:
            await leadership._attempt()
        except ConflictError:
            pytest.fail("a conflict is another's success, not ours to raise")
        holding = [index for index, (other, _) in enumerate(candidates) if other.holds()]
        assert len(holding) <= 1
        led |= set(holding)
    assert led == {0, 1, 2}


async def test_releasing_empties_the_lease() -> None:
    cluster, clock = FakeCluster(), Clock()
    leader, _ = candidate(cluster, clock, "me")
    await leader.acquire()
    await leader.release()
    assert lease_of(cluster)["spec"]["holderIdentity"] == ""
    assert not leader.holds()
    assert leader.write_budget_s() == 0


async def test_candidate_waits_for_the_lease_through_an_outage() -> None:
    cluster, clock = FakeCluster(), Clock()
    (first, _), (second, line) = candidate(cluster, clock, "first"), candidate(cluster, clock, "second")
    await first.acquire()
    waiting = asyncio.create_task(second.acquire())

    async def tried_again() -> None:
        before = line.attempts
        async with asyncio.timeout(30):
            while True:
                if line.attempts >= before + 2:
                    return
                await asyncio.sleep(0.005)

    line.up = False
    await tried_again()
    clock.now += DURATION_S
    line.up = True
    await tried_again()
    assert not waiting.done(), "it has seen the Lease for the first time"
    clock.now += DURATION_S
    async with asyncio.timeout(30):
        await waiting
    assert lease_of(cluster)["spec"]["holderIdentity"] == "second"


@pytest.mark.parametrize("frozen", [False, True], ids=["renewed too late", "frozen meanwhile"])
async def test_deadline_that_passed_is_a_loss_even_if_the_lease_is_still_ours(frozen: bool) -> None:
    """In the gap writes may have been refused; what they were for is found by the next process."""
    cluster, clock = FakeCluster(), Clock()
    leader, line = candidate(cluster, clock, "me")
    await leader.acquire()

    def pass_the_deadline() -> None:
        clock.now += 2

    clock.now += DEADLINE_S - 1
    if frozen:
        pass_the_deadline()
    else:
        line.before_write = pass_the_deadline
    version = cluster.version
    async with asyncio.timeout(5):
        with pytest.raises(Lost, match="not renewed for 10 s"):
            await leader.renew_forever()
    assert cluster.version == version + (0 if frozen else 1), "one attempt at most"


async def test_lease_of_another_holder_is_lost_at_once() -> None:
    cluster, clock = FakeCluster(), Clock()
    (first, _), (second, _) = candidate(cluster, clock, "first"), candidate(cluster, clock, "second")
    await first.acquire()
    lease_of(cluster)["spec"]["holderIdentity"] = ""
    await second.acquire()
    assert first.holds()
    async with asyncio.timeout(5):
        with pytest.raises(Lost, match="second holds the Lease"):
            await first.renew_forever()


async def test_renewal_that_was_refused_is_repeated_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, clock = FakeCluster(), Clock()
    leader, line = candidate(cluster, clock, "me", retry_s=8)
    await leader.acquire()
    pauses: list[float] = []

    async def sleep(pause_s: float) -> None:
        if pause_s:
            pauses.append(pause_s)
            line.up = len(pauses) != 1
            if len(pauses) == 4:
                raise Lost

    monkeypatch.setattr("dragoman_operator.controller.leadership.asyncio.sleep", sleep)
    with pytest.raises(Lost):
        await leader.renew_forever()
    monkeypatch.undo()
    assert pauses == [8, 2, 8, 8]
    assert leader.holds()


async def test_nothing_is_written_without_the_lease() -> None:
    kube = KubeClient(None, 5).fenced(lambda: 0.0)  # type: ignore[arg-type]
    manifest = {"metadata": {"namespace": "ns", "name": "x", "uid": "1", "resourceVersion": "1"}}
    kind = Kind("v1", "Service", "services")
    for write in (
        kube.apply(kind, manifest),
        kube.create(kind, manifest),
        kube.replace(kind, manifest),
        kube.merge(kind, Key("ns", "x"), {}),
        kube.delete(kind, Key("ns", "x"), "1"),
    ):
        with pytest.raises(WriteForbiddenError):
            await write
