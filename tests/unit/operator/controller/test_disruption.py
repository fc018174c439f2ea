"""Karpenter leaves pods alone until they are ready."""

from collections.abc import Mapping
from typing import Any, cast

import pytest
from tests.support.deployments import running_pod
from tests.support.fake_cluster import FakeCluster

from dragoman_kube.client import KubeClient
from dragoman_kube.errors import RefusedError
from dragoman_operator.controller.disruption import (
    DO_NOT_DISRUPT,
    NODE_POOL,
    OURS,
    DisruptionGuard,
    change_of,
)

ADDED: dict[str, str | None] = {DO_NOT_DISRUPT: "true", OURS: "true"}
REMOVED: dict[str, str | None] = {DO_NOT_DISRUPT: None, OURS: None}
STARTED: dict[str, Any] = {"containerStatuses": [{"name": "engine", "started": True}]}


@pytest.mark.parametrize(
    ("pod", "change"),
    [
        (running_pod("a", False), ADDED),
        (running_pod("a", False, **STARTED), {}),
        (running_pod("a", False, {"annotations": ADDED}), {}),
        (running_pod("a", False, {"annotations": {DO_NOT_DISRUPT: "true"}}), {}),
        (running_pod("a", False, phase="Failed"), {}),
        (running_pod("a", True), {}),
        (running_pod("a", True, {"annotations": ADDED}), REMOVED),
        (running_pod("a", True, {"annotations": {DO_NOT_DISRUPT: "true"}}), {}),
    ],
    ids=[
        "starts",
        "unready later",
        "known",
        "of podTemplate",
        "ended",
        "ready",
        "ready now",
        "ready, of podTemplate",
    ],
)
def test_pods_that_start_are_annotated_until_ready(
    pod: dict[str, Any], change: Mapping[str, str | None]
) -> None:
    assert change_of(pod) == change


@pytest.mark.parametrize("karpenter", [True, False])
async def test_only_in_a_cluster_with_karpenter(karpenter: bool) -> None:
    cluster = FakeCluster(running_pod("a", False) | {"apiVersion": "v1", "kind": "Pod"})
    if not karpenter:
        cluster.unserved.add(NODE_POOL)
    guard = DisruptionGuard(cast(KubeClient, cluster))
    (pod,) = cluster.objects.values()
    await guard([pod])
    assert cluster.calls == (["merge Pod"] if karpenter else [])


async def test_missing_permission_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    cluster = FakeCluster(running_pod("a", False) | {"apiVersion": "v1", "kind": "Pod"})
    cluster.failures["merge Pod"] = RefusedError("change Pod", "forbidden", 403)
    (pod,) = cluster.objects.values()
    await DisruptionGuard(cast(KubeClient, cluster))([pod])
    assert "forbidden" in caplog.text
