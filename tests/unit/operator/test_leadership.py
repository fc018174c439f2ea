"""Of several candidates one leads, whatever they miss: with an API server in memory and a clock of our own."""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import Callable
from typing import Any

import pytest

from dragoman_operator.controller.leadership import Leadership
from dragoman_operator.errors import ConflictError, NotLeaderError, UnavailableError
from dragoman_operator.kube import Kube
from dragoman_operator.observed.snapshot import Kind
from dragoman_operator.settings import Settings

DURATION_S, DEADLINE_S = 15.0, 10.0


class Api:
    """Leases in memory, with resourceVersions."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0

    def _store(self, lease: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        self.lease = copy.deepcopy(lease)
        self.lease["metadata"]["resourceVersion"] = str(self.version)
        return self.lease


class Line:
    """One candidate's connection to it; `up` is false while it is cut."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.up = True
        self.before_write: Callable[[], None] = lambda: None

    def _check(self) -> None:
        if not self.up:
            raise UnavailableError("reach the API server", "cut")

    async def get(self, kind: Kind, namespace: str, name: str) -> dict[str, Any] | None:
        self._check()
        await asyncio.sleep(0)
        return copy.deepcopy(self._api.lease)

    async def create(self, kind: Kind, manifest: dict[str, Any]) -> dict[str, Any]:
        self._check()
        if self._api.lease is not None:
            raise ConflictError("create", "exists")
        return self._api._store(manifest)

    async def replace(self, kind: Kind, manifest: dict[str, Any]) -> dict[str, Any]:
        self._check()
        assert self._api.lease is not None
        self.before_write()
        if manifest["metadata"]["resourceVersion"] != self._api.lease["metadata"]["resourceVersion"]:
            raise ConflictError("replace", "changed")
        return self._api._store(manifest)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def candidate(api: Api, clock: Clock, identity: str) -> tuple[Leadership, Line]:
    line = Line(api)
    return Leadership(line, Settings(identity=identity), "ns", clock), line  # type: ignore[arg-type]


async def test_first_come_leads_and_the_other_waits_for_its_silence() -> None:
    api, clock = Api(), Clock()
    (first, line), (second, _) = candidate(api, clock, "first"), candidate(api, clock, "second")
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
    api, clock = Api(), Clock()
    leader, _ = candidate(api, clock, "me")
    assert leader.write_budget_s() == 0
    assert await leader._attempt()
    assert leader.write_budget_s() == DURATION_S
    clock.now += 9
    assert leader.write_budget_s() == DURATION_S - 9
    clock.now += 1
    assert leader.write_budget_s() == 0


@pytest.mark.parametrize("seed", range(20))
async def test_two_never_hold_at_once(seed: int) -> None:
    chance, api, clock = random.Random(seed), Api(), Clock()
    candidates = [candidate(api, clock, name) for name in ("a", "b", "c")]
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


async def test_stopping_releases_the_lease() -> None:
    api, clock = Api(), Clock()
    leader, _ = candidate(api, clock, "me")
    started, ended = asyncio.Event(), asyncio.Event()

    async def lead() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    running = asyncio.create_task(leader.run(lead))
    async with asyncio.timeout(5):
        await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended.is_set()
    assert api.lease is not None
    assert api.lease["spec"]["holderIdentity"] == ""
    assert not leader.holds()


@pytest.mark.parametrize("frozen", [False, True], ids=["renewed too late", "frozen meanwhile"])
async def test_deadline_that_passed_is_a_loss_even_if_the_lease_is_still_ours(frozen: bool) -> None:
    """In the gap writes are refused; what they were for is found by starting anew."""
    api, clock = Api(), Clock()
    line = Line(api)
    leader = Leadership(line, Settings(identity="me", lease_retry_s=0.01), "ns", clock)  # type: ignore[arg-type]
    started: asyncio.Queue[int] = asyncio.Queue()
    ended: list[bool] = []

    async def lead() -> None:
        await started.put(len(ended))
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(leader.holds())

    def pass_the_deadline() -> None:
        line.before_write = lambda: None
        clock.now += 2

    running = asyncio.create_task(leader.run(lead))
    async with asyncio.timeout(5):
        assert await started.get() == 0
        clock.now += DEADLINE_S - 1
        if frozen:
            pass_the_deadline()
        else:
            line.before_write = pass_the_deadline
        assert await started.get() == 1
    assert ended == [False]
    assert leader.holds()
    running.cancel()
    await asyncio.wait([running])


async def test_failure_of_the_leading_part_comes_out() -> None:
    leader, _ = candidate(Api(), Clock(), "me")

    async def lead() -> None:
        raise KeyError("surprise")

    async with asyncio.timeout(5):
        with pytest.raises(KeyError):
            await leader.run(lead)


async def test_no_write_leaves_without_the_lease() -> None:
    kube = Kube(None, 5, lambda: 0.0)  # type: ignore[arg-type]
    manifest = {"metadata": {"namespace": "ns", "name": "x", "uid": "1", "resourceVersion": "1"}}
    kind = Kind("v1", "Service", "services")
    for write in (
        kube.apply(kind, manifest),
        kube.create(kind, manifest),
        kube.replace(kind, manifest),
        kube.merge(kind, "ns", "x", {}),
        kube.delete(kind, "ns", "x", "1"),
        kube.write_status(manifest, {}),
    ):
        with pytest.raises(NotLeaderError):
            await write
