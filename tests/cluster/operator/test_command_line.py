"""`dragoman status` and `dragoman translate` against a cluster, as processes of their own."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest
from tests.support.servers import bare_environment

from dragoman_contract.kubernetes import (
    LABEL_COMPONENT,
    LABEL_PART_OF,
    LOCAL_ADDRESS,
    PART_OF,
    ROUTER_COMPONENT,
)
from dragoman_kube.kinds import SERVICE
from dragoman_operator.api.labels import selector

pytestmark = pytest.mark.cluster


async def dragoman(*arguments: str) -> tuple[int, str]:
    """The exit status and the output of a command."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dragoman", *arguments),
        env=bare_environment(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode is not None
    return process.returncode, output.decode()


async def front(world: Any) -> None:
    """A Service as the chart's router has it, before the engine pods."""
    labels = {LABEL_PART_OF: PART_OF, LABEL_COMPONENT: ROUTER_COMPONENT}
    spec = {"selector": selector("demo"), "ports": [{"name": "http", "port": 80, "targetPort": "http"}]}
    metadata = {"name": "front", "namespace": world.namespace, "labels": labels}
    await world.kube.create(
        SERVICE, {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
    )
    await world.until(
        lambda: world.get(SERVICE, "front"),
        lambda found: LOCAL_ADDRESS in (found["metadata"].get("annotations") or {}),
    )


async def test_a_person_sees_the_object_and_translates_with_it(world):
    world.operator()
    await world.create()
    await world.until_complete()
    cluster = ("--kubeconfig", str(world.kubeconfig))

    status, table = await dragoman("status", *cluster, "--namespace", world.namespace)
    assert status == 0
    title, line = table.splitlines()
    assert title.startswith("NAMESPACE")
    assert line.split()[:3] == [world.namespace, "demo", "1/1"]
    status, explained = await dragoman("status", *cluster, f"{world.namespace}/demo")
    assert status == 0
    assert "1 of 1 replicas are ready" in explained
    assert "AsExpected: nothing needs attention" in explained

    to = ("--to", "de", "abc def")
    assert await dragoman("translate", *cluster, "--deployment", f"{world.namespace}/demo", *to) == (
        0,
        "fed cba\n",
    )
    await front(world)
    assert await dragoman("translate", *cluster, *to) == (0, "fed cba\n")
    status, reason = await dragoman("translate", *cluster, "--deployment", "nowhere/demo", *to)
    assert status == 2
    assert "no Service nowhere/demo" in reason
