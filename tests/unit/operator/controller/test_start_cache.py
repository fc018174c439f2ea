"""The Secret of the start cache: planned before pods refer to it, owned by the Service whose address it has."""

from typing import Any

import pytest
from tests.support.deployments import KEY, make_body, make_td
from tests.support.operator_world import RESYNC_S, World

from dragoman_kube.errors import RefusedError
from dragoman_kube.kinds import DEPLOYMENT, SECRET, SERVICE
from dragoman_kube.objects import Key, controller_of
from dragoman_operator.controller.reconcile import REFUSED_S
from dragoman_operator.observed.snapshot import TRANSLATION_DEPLOYMENT
from dragoman_operator.resources.children import start_cache, with_address

SECRET_KEY = Key(KEY.namespace, f"{KEY.name}-start-cache")
MakeWorld = Any


def secret_of(world: World) -> dict[str, Any] | None:
    return world.cluster.objects.get((SECRET.name, SECRET_KEY))


def is_of_the_service(world: World) -> bool:
    """Whether there is a Secret, of the Service as it is now."""
    secret, service = secret_of(world), world.found(SERVICE)
    return (
        secret is not None
        and (controller_of(secret) or {})["uid"] == service["metadata"]["uid"]
        and secret["stringData"]["url"] == f"http://{service['spec']['clusterIP']}:8000"
    )


async def test_it_is_created_once_for_each_object(make_world: MakeWorld) -> None:
    world, other = make_world(make_body()), make_world(make_body())
    await world.reconciled(3)
    await other.reconciled()
    assert is_of_the_service(world)
    assert world.cluster.calls.count("create Secret") == 1
    first, second = ((secret_of(each) or {})["stringData"]["secret"] for each in (world, other))
    assert len(first) == 64
    assert first != second


async def test_service_with_a_new_address_gets_a_new_one(make_world: MakeWorld) -> None:
    world = make_world(make_body())
    await world.reconciled(2)
    world.edit(DEPLOYMENT, lambda found: found.update(status={"observedGeneration": 1}))
    world.cluster.remove(SERVICE, KEY)
    # The garbage collector is late: the old one is in the way.
    assert await world.reconciled(2) == REFUSED_S
    assert not is_of_the_service(world)
    assert world.condition("Progressing")["reason"] == "Starting", "pods can do without it"
    world.cluster.collect_garbage()
    await world.reconciled()
    assert is_of_the_service(world)
    assert await world.reconciled() == RESYNC_S


async def test_service_that_was_replaced_before_a_restart_gets_one(make_world: MakeWorld) -> None:
    world = make_world(make_body())
    await world.reconciled(2)
    world.cluster.now = world.cluster.now.replace(minute=59)
    world.cluster.remove(SERVICE, KEY)
    await world.reconciled()
    world.restarted()
    world.cluster.collect_garbage()
    await world.reconciled()
    assert is_of_the_service(world)


async def test_successor_of_an_object_gets_one_of_its_own(make_world: MakeWorld) -> None:
    world = make_world(make_body())
    await world.reconciled(2)
    former = secret_of(world)
    world.cluster.remove(TRANSLATION_DEPLOYMENT, KEY)
    await world.reconciled()
    # Its children are collected, the last one late.
    world.cluster.collect_garbage()
    world.cluster.put(former)
    successor = make_body()
    successor["metadata"]["uid"] = "successor"
    world.cluster.put(successor)
    await world.reconciled(2)
    assert not is_of_the_service(world)
    world.cluster.collect_garbage()
    await world.reconciled()
    assert is_of_the_service(world)


async def test_one_that_was_deleted_is_there_again_before_pods_refer_to_it(make_world: MakeWorld) -> None:
    world = make_world(make_body())
    await world.reconciled(2)
    world.restarted()
    world.cluster.remove(SECRET, SECRET_KEY)
    assert "create Secret" not in await world.written(), "the operator cannot see Secrets"
    world.edit(TRANSLATION_DEPLOYMENT, lambda td: td["spec"].update(replicas=3))
    calls = await world.written()
    assert calls.index("create Secret") < calls.index("apply Deployment")
    assert is_of_the_service(world)


async def test_restart_costs_no_writes(make_world: MakeWorld) -> None:
    world = make_world(make_body())
    await world.reconciled(3)
    world.restarted()
    assert await world.written() == []


async def test_one_of_another_owner_stays_and_is_not_tried_for_ever(make_world: MakeWorld) -> None:
    metadata = {"name": SECRET_KEY.name, "namespace": SECRET_KEY.namespace}
    world = make_world(make_body(), {"kind": "Secret", "metadata": metadata, "stringData": {"mine": "1"}})
    assert await world.reconciled(2) == REFUSED_S
    assert (secret_of(world) or {})["stringData"] == {"mine": "1"}
    world.cluster.now = world.cluster.now.replace(minute=59)
    assert await world.reconciled() == RESYNC_S
    assert "create Secret" not in await world.written()


async def test_permission_to_create_it_can_be_left_out(
    make_world: MakeWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world = make_world(make_body())
    world.cluster.failures["create Secret"] = RefusedError("create Secret", "forbidden (403)")
    assert await world.reconciled(3) == RESYNC_S
    assert world.condition("Degraded")["status"] == "False"
    assert caplog.text.count("pods start without the cache of a ready one") == 1


@pytest.mark.parametrize(
    ("address", "url"), [("10.0.0.7", "http://10.0.0.7:8000"), ("fd00::7", "http://[fd00::7]:8000")]
)
def test_url_has_the_address(address: str, url: str) -> None:
    service = {"metadata": {"name": "demo", "uid": "s"}, "spec": {"clusterIP": address}}
    assert with_address(start_cache(make_td()), service, "x")["stringData"]["url"] == url


@pytest.mark.parametrize("address", ["", "None"])
async def test_service_without_an_address_has_none(make_world: MakeWorld, address: str) -> None:
    world = make_world(make_body())

    def headless(manifest: dict[str, Any]) -> None:
        if manifest["kind"] == SERVICE.name:
            manifest["spec"]["clusterIP"] = address

    world.cluster.admit = headless
    await world.reconciled(2)
    assert "create Secret" not in world.cluster.calls
