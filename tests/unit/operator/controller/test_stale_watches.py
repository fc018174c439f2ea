"""Watches that lag behind, stall, or miss changes: nothing is written twice or taken back, and all is found."""

from dataclasses import replace
from typing import Any

import pytest
from tests.support.deployments import KEY, make_body

from dragoman_kube import list_watch
from dragoman_kube.errors import ConflictError, RefusedError, UnavailableError
from dragoman_kube.kinds import DEPLOYMENT, POD, SERVICE
from dragoman_kube.objects import uid_of
from dragoman_operator.autoscaling.decision.values import Rule
from dragoman_operator.autoscaling.loop import Autoscaler
from dragoman_operator.controller.watches import MIRRORED_KINDS
from dragoman_operator.observed.snapshot import TRANSLATION_DEPLOYMENT
from dragoman_operator.scraping.values import TotalLoad

MakeWorld = Any
STATUS = "status TranslationDeployment"


async def test_watches_that_stall_cause_no_second_write(make_world: MakeWorld) -> None:
    world = make_world(make_body())
    await world.cluster.settle()
    world.cluster.stalled |= set(MIRRORED_KINDS)
    await world.reconciled()
    assert await world.written() == [STATUS]
    assert await world.written() == []
    world.cluster.resume()
    assert await world.written() == []


async def test_status_over_a_newer_object_is_a_conflict_and_no_lost_write(make_world: MakeWorld) -> None:
    world = make_world(make_body())
    await world.reconciled(2)
    world.cluster.stalled.add(TRANSLATION_DEPLOYMENT)
    world.edit(TRANSLATION_DEPLOYMENT, lambda td: td["spec"].update(replicas=7))
    world.edit(DEPLOYMENT, lambda found: found.update(status={"observedGeneration": 1, "readyReplicas": 1}))
    with pytest.raises(ConflictError):
        await world.reconciled()
    world.cluster.resume()
    await world.reconciled()
    assert world.found(DEPLOYMENT)["spec"]["replicas"] == 7


class Quiet:
    """Routers without load, and no Prometheus."""

    def load(self, key: object) -> TotalLoad:
        return TotalLoad()

    def named(self, chosen: object) -> str:
        return ""


@pytest.fixture
def scaler() -> Autoscaler:
    quiet: Any = Quiet()
    return Autoscaler(quiet, quiet, lambda key: None, 5.0)


def decide(scaler: Autoscaler, replicas: int) -> None:
    scaled = scaler.deployments()[KEY]
    scaled.latest = scaled.shown = replace(
        scaled.latest, replicas=replicas, rule=Rule.SCALE_DOWN, reason=f"{replicas} replicas: little load"
    )


async def test_watch_that_stalls_after_a_scale_down_does_not_undo_it(
    make_world: MakeWorld, scaler: Autoscaler
) -> None:
    """The former number of replicas in a late event is no request of a user, however late it is."""
    body = make_body(replicas=5, autoscaling={"minReplicas": 1, "maxReplicas": 10})
    world = make_world(body, scaler=scaler)
    await world.reconciled(3)
    decide(scaler, 2)
    world.cluster.stalled.add(TRANSLATION_DEPLOYMENT)
    await world.reconciled()
    assert (world.td["spec"]["replicas"], world.found(DEPLOYMENT)["spec"]["replicas"]) == (2, 2)
    for _ in range(3):  # The events of pods and children, which are streams of their own, enqueue the object.
        world.clock += 60.0
        assert await world.written() == []
    assert scaler.deployments()[KEY].latest.replicas == 2
    world.cluster.resume()
    await world.reconciled(2)
    assert (world.td["spec"]["replicas"], world.found(DEPLOYMENT)["spec"]["replicas"]) == (2, 2)


async def test_request_after_an_own_write_counts(make_world: MakeWorld, scaler: Autoscaler) -> None:
    world = make_world(
        make_body(replicas=5, autoscaling={"minReplicas": 1, "maxReplicas": 10}), scaler=scaler
    )
    await world.reconciled(3)
    decide(scaler, 2)
    await world.reconciled()
    world.edit(TRANSLATION_DEPLOYMENT, lambda td: td["spec"].update(replicas=6))
    await world.reconciled()
    assert world.found(DEPLOYMENT)["spec"]["replicas"] == 6


async def test_object_that_changed_meanwhile_is_not_overwritten(
    make_world: MakeWorld, scaler: Autoscaler
) -> None:
    world = make_world(
        make_body(replicas=5, autoscaling={"minReplicas": 1, "maxReplicas": 10}), scaler=scaler
    )
    await world.reconciled(3)
    decide(scaler, 2)
    world.cluster.stalled.add(TRANSLATION_DEPLOYMENT)
    world.edit(TRANSLATION_DEPLOYMENT, lambda td: td["spec"].update(replicas=6))
    with pytest.raises(ConflictError):
        await world.reconciled()
    world.cluster.resume()
    await world.reconciled()
    assert world.td["spec"]["replicas"] == 6


async def test_changes_that_a_watch_misses_are_found(make_world: MakeWorld) -> None:
    """As after a restore of etcd, or behind a proxy that serves old states: no event reports them."""
    world = make_world(make_body(), resync_s=0.02)
    await world.reconciled(2)
    rs = world.add_replica_set()
    world.add_pod("a", rs, status={"phase": "Running"})
    await world.reconciled()
    world.enqueued.clear()
    (pod,) = world.mirror.list(POD)
    missed = {**pod, "status": {"phase": "Failed"}}
    world.cluster.put(missed, reported=False)
    world.cluster.put({**pod, "metadata": {**pod["metadata"], "name": "b", "uid": "b"}}, reported=False)
    world.cluster.remove(SERVICE, KEY, reported=False)
    world.edit(TRANSLATION_DEPLOYMENT, lambda td: td["spec"].update(replicas=3), reported=False)

    def are_found() -> bool:
        world.cluster.end_watches()  # The end of each watch is the time of the next list.
        pods = {pod["metadata"]["name"]: pod["status"]["phase"] for pod in world.mirror.list(POD)}
        td = world.mirror.get(TRANSLATION_DEPLOYMENT, KEY)
        service = world.mirror.get(SERVICE, KEY)
        return (pods, td["spec"]["replicas"], service) == ({"a": "Failed", "b": "Running"}, 3, None)

    await world.until(are_found)
    assert world.enqueued == {KEY}
    assert {"create Service", "apply Deployment"} <= set(await world.written())


async def test_object_that_was_deleted_unseen_by_kopf_is_found_soon(
    make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kopf lists again after a broken watch, and reports no deletions."""
    monkeypatch.setattr(list_watch, "SETTLE_S", 0.01)
    gone, stays = make_body("gone"), make_body()
    gone["metadata"]["uid"] = "gone"
    world = make_world(gone, stays)
    await world.cluster.settle()
    world.cluster.remove(TRANSLATION_DEPLOYMENT, KEY._replace(name="gone"), reported=False)
    world.kopf_lists()
    await world.until(lambda: len(world.mirror.list(TRANSLATION_DEPLOYMENT)) == 1)
    assert world.mirror.get(TRANSLATION_DEPLOYMENT, KEY)


async def test_namespace_that_may_not_be_read_is_known(make_world: MakeWorld) -> None:
    world = make_world(make_body())
    await world.reconciled()
    rs = world.add_replica_set()
    world.add_pod("a", rs)
    await world.cluster.settle()

    def pods() -> object:
        return world.mirror.controlled(POD, KEY.namespace, [uid_of(rs)])

    assert pods()
    for error, refused in (
        (UnavailableError("watch", "down"), False),
        (RefusedError("watch", "forbidden"), True),
    ):
        world.cluster.failures = {"watch Pod": error, "list Pod": error}
        world.cluster.end_watches()
        await world.until(lambda refused=refused: world.mirror.refused(KEY.namespace) is refused)
        assert pods(), "the known objects are kept"
    world.cluster.failures.clear()
    await world.until(lambda: not world.mirror.refused(KEY.namespace))
