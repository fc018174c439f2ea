"""A missing permission is named at the start, where kopf would wait for ever, and not while the Lease is held."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from tests.support.fake_cluster import FakeCluster

from dragoman_kube.client import KubeClient
from dragoman_kube.errors import ConflictError, RefusedError, UnavailableError
from dragoman_kube.kinds import HPA, LEASE, POD, REPLICA_SET
from dragoman_kube.objects import Key
from dragoman_operator.controller import watches
from dragoman_operator.controller.runtime import Runtime
from dragoman_operator.controller.watches import MAX_CHECKS, MIRRORED_KINDS, readable
from dragoman_operator.metrics import Metrics
from dragoman_operator.settings import Settings


async def readable_of(cluster: FakeCluster, *namespaces: str) -> list[str]:
    return await readable(cast(KubeClient, cluster), namespaces)


def forbidden(verb: str, plural: str, place: str) -> RefusedError:
    return RefusedError(f"{verb} {plural} in {place}", "forbidden", 403)


async def test_everything_may_be_read_and_an_unknown_kind_is_not_watched() -> None:
    cluster = FakeCluster()
    cluster.unserved.add(HPA)
    assert await readable_of(cluster) == []
    assert await readable_of(cluster, "a", "b") == ["a", "b"]


@pytest.mark.parametrize("verb", ["list", "watch"])
async def test_missing_right_is_named(verb: str) -> None:
    cluster = FakeCluster()
    cluster.failures[f"{verb} {REPLICA_SET.name}"] = forbidden(verb, "replicasets", "all namespaces")
    with pytest.raises(
        RefusedError, match=f"{verb} replicasets in all namespaces: forbidden; grant"
    ) as error:
        await readable_of(cluster)
    assert error.value.status == 403


async def test_one_of_several_namespaces_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    cluster = FakeCluster()
    cluster.failures[f"list {POD.name} b"] = forbidden("list", "pods", "b")
    assert await readable_of(cluster, "a", "b") == ["a"]
    assert "namespace b is left out: list pods in b: forbidden" in caplog.text


async def test_no_namespace_at_all_is_an_error() -> None:
    cluster = FakeCluster()
    cluster.failures["list Pod"] = forbidden("list", "pods", "a")
    with pytest.raises(RefusedError):
        await readable_of(cluster, "a")


async def test_namespaces_are_checked_concurrently_with_a_bound() -> None:
    cluster = FakeCluster()
    cluster.lag_s = 0.01
    namespaces = [f"ns-{number}" for number in range(10)]
    assert await readable_of(cluster, *namespaces) == namespaces
    assert len(namespaces) * len(MIRRORED_KINDS) > cluster.max_requests == MAX_CHECKS


class Throttled(FakeCluster):
    """A cluster that refuses the first check of each kind."""

    def __init__(self) -> None:
        super().__init__()
        self.checks: list[str] = []

    async def check_readable(self, kind: Any, namespace: str = "", *, labels: str = "") -> None:
        self.checks.append(kind.name)
        if self.checks.count(kind.name) == 1:
            raise UnavailableError(f"list {kind.plural}", "too many requests", 429)


async def test_check_that_was_throttled_is_repeated_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watches, "CHECK_RETRY_S", 0.01)
    cluster = Throttled()
    assert await readable_of(cluster, "a") == ["a"]
    assert sorted(cluster.checks) == sorted(2 * [kind.name for kind in MIRRORED_KINDS])


class Led(FakeCluster):
    """A cluster whose Lease another operator holds until `led` is cleared."""

    def __init__(self) -> None:
        super().__init__()
        self.led, self.checked = True, 0
        self.checked_before_leading = 0

    async def check_readable(self, kind: Any, namespace: str = "", *, labels: str = "") -> None:
        self.checked += 1

    async def create(self, kind: Any, manifest: Any) -> Any:
        if kind is LEASE:
            if self.led:
                raise ConflictError("create Lease", "another was faster", 409)
            self.checked_before_leading = self.checked
        return await super().create(kind, manifest)

    def fenced(self, _budget_s: Any) -> Led:
        return self


async def test_permissions_are_checked_while_another_operator_leads() -> None:
    cluster = Led()
    settings = Settings(namespaces=("a", "b"), lease_retry_s=0.05, lease_namespace="here")
    runtime = Runtime(settings, cast(KubeClient, cluster), Metrics(), None)
    starting = asyncio.create_task(runtime.start())
    expected = 2 * len(MIRRORED_KINDS)
    async with asyncio.timeout(30):
        while cluster.checked < expected:  # noqa: ASYNC110 - what is waited for sets no event
            await asyncio.sleep(0.005)
        assert await cluster.get(LEASE, Key("here", settings.lease_name)) is None
        cluster.led = False
        await starting
    assert (cluster.checked_before_leading, cluster.checked) == (expected, expected)
    await runtime.stop()
