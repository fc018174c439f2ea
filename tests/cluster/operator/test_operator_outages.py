"""Operators that end, freeze, double or lose the API server."""

import asyncio
import re
import signal
from urllib.parse import urlsplit

import pytest
import yaml
from faults.line import Line

from dragoman_kube.kinds import DEPLOYMENT, HPA, LEASE, SERVICE
from dragoman_operator.observed.snapshot import CHILD_KINDS

pytestmark = pytest.mark.cluster

CHILDREN = tuple(kind for kind in CHILD_KINDS if kind is not HPA)
"""Of an object that no HPA scales."""


async def test_killed_in_the_middle_of_a_rollout(world):
    first = world.operator()
    await world.create(replicas=2)
    await world.until_complete()
    before = {pod["metadata"]["uid"] for pod in await world.pods()}
    await world.edit(engine={"maxNumSeqs": 6})
    await world.until(
        lambda: world.conditions(), lambda conditions: conditions["Progressing"]["reason"] == "Replacing"
    )
    first.kill()
    # Edited while no operator runs.
    await world.edit(engine={"maxNumSeqs": 7})
    await world.remove(SERVICE)
    world.operator("second")
    await world.until_complete()
    after = await world.pods()
    assert not before & {pod["metadata"]["uid"] for pod in after}
    assert all("7" in pod["spec"]["containers"][0]["args"] for pod in after)
    assert await world.get(SERVICE)


async def test_restart_alone_changes_nothing(world):
    first = world.operator()
    await world.create()
    await world.until_quiet()
    versions = [(await world.get(kind))["metadata"]["resourceVersion"] for kind in CHILDREN]
    assert first.stop() == 0
    second = world.operator("second")
    await world.until(lambda: second.metric("dragoman_operator_reconciles_total"), lambda count: count >= 1)
    assert [(await world.get(kind))["metadata"]["resourceVersion"] for kind in CHILDREN] == versions


async def test_stopping_hands_over_at_once(world):
    # The Lease would hold for a minute; two seconds are the default between renewals.
    times = {"lease-duration-s": 60, "lease-renew-deadline-s": 40, "lease-retry-s": 2}
    first = world.operator(**times)
    await world.until(first.leads, bool)
    second = world.operator("second", **times)
    await world.until(lambda: second.metric("dragoman_operator_reconcile_duration_seconds_created"), bool)
    began = asyncio.get_running_loop().time()
    assert first.stop() == 0
    await world.until(second.leads, bool)
    assert asyncio.get_running_loop().time() - began < 20


async def test_standby_stops_at_once_and_keeps_the_lease_unchanged(world):
    first = world.operator("first")
    await world.until(first.leads, bool)
    second = world.operator("second")
    await world.until(lambda: second.metric("dragoman_operator_reconcile_duration_seconds_created"), bool)
    began = asyncio.get_running_loop().time()
    assert second.stop() == 0
    assert asyncio.get_running_loop().time() - began < 5
    lease = await world.get(LEASE, "dragoman-operator")
    assert lease["spec"]["holderIdentity"] == "first"


async def test_one_acts_and_the_other_follows(world):
    first = world.operator("first")
    await world.until(first.leads, bool)
    second = world.operator("second")
    await world.create(replicas=0)
    await world.until_complete()
    assert not await second.leads()
    assert writes(second.log.read_text()) == 0
    first.kill()
    await world.until(second.leads, bool)
    await world.edit(engine={"maxNumSeqs": 6})
    await world.until_complete()
    assert "applied Deployment: spec changed" in second.log.read_text()
    lease = await world.get(LEASE, "dragoman-operator")
    assert lease["spec"]["holderIdentity"] == "second"


async def test_suspended_leader_does_not_act_when_it_continues(world):
    first = world.operator("first")
    await world.create(replicas=0)
    await world.until_complete()
    second = world.operator("second")
    first.send(signal.SIGSTOP)
    await world.until(second.leads, bool)
    done = writes(first.log.read_text())
    # Events for the frozen one pile up in its sockets.
    await world.edit(engine={"maxNumSeqs": 6})
    await world.until_complete()
    second.send(signal.SIGSTOP)
    await world.remove(DEPLOYMENT)
    first.send(signal.SIGCONT)
    await world.until(lambda: _text(first), lambda log: "no longer leading" in log)
    woken = first.log.read_text()
    second.send(signal.SIGCONT)
    await world.until_complete()
    # The last leader repaired it; the resumed process wrote nothing before it found the Lease lost.
    assert writes(woken.split("no longer leading")[0]) == done


def writes(log: str) -> int:
    """Number of children that were created or applied."""
    return len(re.findall(": (?:created|applied) ", log))


async def _text(operator) -> str:
    return str(operator.log.read_text())


async def test_api_server_that_goes_away_for_a_while(world, tmp_path):
    kubeconfig = yaml.safe_load(world.kubeconfig.read_text())
    server = kubeconfig["clusters"][0]["cluster"]["server"]
    line = Line(urlsplit(server).hostname, urlsplit(server).port)
    async with line.laid() as port:
        kubeconfig["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
        (tmp_path / "kubeconfig").write_text(yaml.safe_dump(kubeconfig))
        operator = world.operator(kubeconfig=tmp_path / "kubeconfig")
        await world.create()
        await world.until_complete()
        line.cut()
        await world.until(lambda: _text(operator), lambda log: "no longer leading" in log)
        await world.edit(engine={"maxNumSeqs": 6})
        await world.create("later", replicas=0)
        (pod,) = await world.pods()
        assert pod["status"]["phase"] == "Running"
        line.whole = True
        await world.until_complete()
        await world.until_complete("later")
        assert set(operator.exits) == {1}, "a lost Lease ends the process"
        assert "Traceback" not in operator.log.read_text()
