"""Foreign changes of children are reverted; without changes nothing is written."""

from typing import Any

import pytest

from dragoman_kube.kinds import (
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    HPA,
    NETWORK_POLICY,
    SERVICE,
    SERVICE_ACCOUNT,
    Kind,
)
from dragoman_operator.observed.snapshot import CHILD_KINDS, TRANSLATION_DEPLOYMENT

pytestmark = pytest.mark.cluster

CHILDREN = tuple(kind for kind in CHILD_KINDS if kind is not HPA)
"""Of an object that no HPA scales."""

EDITS: dict[Kind, tuple[dict[str, Any], Any]] = {
    SERVICE_ACCOUNT: (
        {"automountServiceAccountToken": True},
        lambda found: found["automountServiceAccountToken"] is False,
    ),
    NETWORK_POLICY: ({"spec": {"ingress": [{}]}}, lambda found: "ports" in found["spec"]["ingress"][0]),
    SERVICE: (
        {"spec": {"ports": [{"name": "http", "port": 81, "protocol": "TCP", "targetPort": 81}]}},
        lambda found: [port["port"] for port in found["spec"]["ports"]] == [8000],
    ),
    DISRUPTION_BUDGET: (
        {"spec": {"maxUnavailable": None, "minAvailable": 5}},
        lambda found: found["spec"].get("maxUnavailable") == 1 and "minAvailable" not in found["spec"],
    ),
    DEPLOYMENT: (
        {"spec": {"replicas": 3, "template": {"spec": {"terminationGracePeriodSeconds": 1}}}},
        lambda found: (
            found["spec"]["replicas"] == 0
            and found["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 27
        ),
    ),
}


def reports_completion(events: list[tuple[str, str, int]]) -> bool:
    """Whether all events of an object that has become complete are written."""
    return {"Starting", "Ready", "Complete"} <= {reason for _, reason, _ in events}


async def test_edits_are_undone(world):
    world.operator()
    await world.create(replicas=0)
    await world.until_complete()
    for kind, (edit, repaired) in EDITS.items():
        assert not repaired(await world.change(kind, edit))
        await world.until(lambda kind=kind: world.get(kind), repaired)
    await world.until_complete()
    assert (await world.conditions())["Degraded"]["status"] == "False"


async def test_deletions_are_undone(world):
    world.operator()
    await world.create(replicas=0)
    await world.until_complete()
    for kind in CHILDREN:
        gone = await world.remove(kind)
        await world.until(
            lambda kind=kind: world.get(kind),
            lambda found, gone=gone: bool(found) and found["metadata"]["uid"] != gone,
        )


async def test_removed_labels_and_owners_come_back(world):
    world.operator(**{"resync-s": 1})
    await world.create(replicas=0)
    await world.until_complete()
    await world.change(
        SERVICE, {"metadata": {"labels": {"dragoman.io/deployment": None}, "ownerReferences": None}}
    )
    await world.until(
        lambda: world.get(SERVICE),
        lambda found: (
            "dragoman.io/deployment" in found["metadata"].get("labels", {})
            and bool(found["metadata"].get("ownerReferences"))
        ),
    )


async def test_additions_of_other_clients_stay(world):
    world.operator()
    await world.create(replicas=0)
    await world.until_complete()
    await world.change(DEPLOYMENT, {"metadata": {"annotations": {"example.com/note": "mine"}}})
    restart = {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}
    await world.change(DEPLOYMENT, {"spec": {"template": restart}})
    await world.edit(engine={"maxNumSeqs": 5})
    found = await world.until(
        lambda: world.get(DEPLOYMENT),
        lambda found: "5" in found["spec"]["template"]["spec"]["containers"][0]["args"],
    )
    assert found["metadata"]["annotations"]["example.com/note"] == "mine"
    assert "kubectl.kubernetes.io/restartedAt" in found["spec"]["template"]["metadata"]["annotations"]


async def test_nothing_is_written_when_nothing_changes(world):
    operator = world.operator(**{"resync-s": 0.3})
    # Quantities that the API server writes in its own way, and what it drops because it is empty.
    resources = {"limits": {"memory": "1024Mi", "cpu": "0.5"}}
    await world.create(resources=resources, networkPolicy={"egress": []})
    await world.until_quiet()
    # Events are written after the status that they report.
    await world.until(world.events, reports_completion)

    async def versions() -> dict[str, str]:
        objects = [await world.get(kind) for kind in (TRANSLATION_DEPLOYMENT, *CHILDREN)]
        return {found["kind"]: found["metadata"]["resourceVersion"] for found in objects}

    async def reconciles() -> float:
        return float(await operator.metric(r'dragoman_operator_reconciles_total\{result="ok"\}'))

    before, events, seen = await versions(), await world.events(), await reconciles()
    await world.until(reconciles, lambda count: count >= seen + 6)
    assert await versions() == before
    assert await world.events() == events
    assert operator.log.read_text().count("created") == len(CHILDREN)


async def test_events_report_transitions_alone(world):
    world.operator(**{"resync-s": 0.3})
    await world.create()
    await world.until_complete()
    await world.until(world.events, reports_completion)
    assert all(kind == "Normal" for kind, _, _ in await world.events())
    await world.edit(engine={"extraArgs": {"max_num_seqs": 4}})
    await world.until_condition("Degraded", "True", "InvalidSpec")
    await world.until(world.events, lambda events: ("Warning", "InvalidSpec", 1) in events)
    await world.edit(engine={"extraArgs": {"max_num_seqs": None}})
    await world.until_condition("Degraded", "False")
    await world.edit(engine={"extraArgs": {"max_num_seqs": 4}})
    await world.until(world.events, lambda events: ("Warning", "InvalidSpec", 2) in events)
